import { type RequestHandler, urlencoded } from 'express';
import type { z } from 'zod';
import { type SchemaFault, schemaFaults } from '../../../http/faults';
import { type Content, type Html, html } from '../../../http/html';
import { bodySchema, valuesAfter } from '../resources/body';
import type { BodyOf, MetadataOf, Resource } from '../resources/resource';
import type { Choice } from './elements';
import type { PageQuery } from './search';

/** Reads what a form of the dashboard sends. */
export const readForm: RequestHandler = urlencoded({ extended: false, limit: '64kb' });

/** What a form sent, field by field. */
export class FormBody {
  readonly #fields: ReadonlyMap<string, unknown>;

  /** @param body as the body parser left it; `undefined` when nothing was sent. */
  constructor(body?: unknown) {
    this.#fields = new Map(typeof body === 'object' && body !== null ? Object.entries(body) : []);
  }

  /** The field's text, or the first one's when it was sent several times; empty when it was not sent. */
  text(name: string): string {
    return this.texts(name)[0] ?? '';
  }

  /** Whether the field was sent, empty or not. */
  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** Every value of a field, such as the boxes that were ticked. */
  texts(name: string): string[] {
    const value = this.#fields.get(name);
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.filter((one) => typeof one === 'string');
  }

  /** The text's parts between commas. */
  list(name: string): string[] {
    return this.text(name)
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  }
}

export type ReadForm<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: string[] };

/**
 * What a form asks for, under the rules of the API's own body.
 * @param labels what the form shows for the fields of that body, by their paths.
 */
export function checkedForm<Output>(
  schema: z.ZodType<Output>,
  body: unknown,
  labels: Readonly<Record<string, string>>,
): ReadForm<Output> {
  const read = schema.safeParse(body);
  if (read.success) return { ok: true, value: read.data };
  const faults = schemaFaults(schema, read.error, body);
  return { ok: false, problems: faults.map((fault) => sentenceOf(fault, labels)) };
}

/** The metadata of a new resource, under the rules of the management API's own call. */
export function checkedMetadata<R extends Resource>(
  resource: R,
  metadata: object,
  labels: Readonly<Record<string, string>>,
): ReadForm<MetadataOf<R>> {
  const read = checkedForm(bodySchema(resource, 'create'), { metadata }, labels);
  if (!read.ok) return read;
  const { metadata: given } = read.value as BodyOf<R>;
  return { ok: true, value: valuesAfter(resource.metadata, given) as MetadataOf<R> };
}

function sentenceOf(fault: SchemaFault, labels: Readonly<Record<string, string>>): string {
  const path = fault.path.join('.');
  const field = Object.keys(labels).find((name) => path === name || path.startsWith(`${name}.`));
  const what = fault.kind === 'wrong' ? fault.sentence : `has no field ${fault.name}`;
  return `${labels[field ?? ''] ?? path} ${what}.`;
}

interface Field {
  readonly name: string;
  /** Of the input, behind `field-`, when the name alone is on the page already. */
  readonly id?: string;
  readonly label: string;
  readonly hint?: string;
}

interface TextField extends Field {
  readonly value: string;
  readonly type?: 'text' | 'url' | 'number';
  readonly required?: boolean;
  readonly maxLength?: number;
}

/** A text field with its label; the hint is read out with it. */
export function textField({ name, label, hint, value, type = 'text', required, maxLength }: TextField): Html {
  return html`<div class="field">
    <label for="field-${name}">${label}</label>
    <input id="field-${name}" name="${name}" type="${type}" value="${value}" autocomplete="off"${
      required === true && html` required`
    }${maxLength !== undefined && html` maxlength="${maxLength}"`}${describedBy(name, hint)}>
    ${hintOf(name, hint)}
  </div>`;
}

interface SelectField extends Field {
  readonly value: string;
  readonly choices: readonly Choice[];
}

export function selectField({ name, id = name, label, hint, value, choices }: SelectField): Html {
  return html`<div class="field">
    <label for="field-${id}">${label}</label>
    <select id="field-${id}" name="${name}"${describedBy(id, hint)}>
      ${choices.map(
        (choice) =>
          html`<option value="${choice.value}"${choice.value === value && html` selected`}>${choice.label}</option>`,
      )}
    </select>
    ${hintOf(id, hint)}
  </div>`;
}

interface CheckboxField extends Field {
  readonly values: readonly string[];
  readonly choices: readonly Choice[];
}

/** Boxes of which several may be ticked. */
export function checkboxField({ name, label, hint, values, choices }: CheckboxField): Html {
  return html`<fieldset class="field"${describedBy(name, hint)}>
    <legend>${label}</legend>
    <div class="boxes">${choices.map(
      (choice) =>
        html`<label class="box"><input type="checkbox" name="${name}" value="${choice.value}"${
          values.includes(choice.value) && html` checked`
        }> <span>${choice.label}</span></label>`,
    )}</div>
    ${hintOf(name, hint)}
  </fieldset>`;
}

/** Which of the account's sites: no question when there is only one. @param id for a second one on the page. */
export function siteField(sites: readonly string[], chosen: string, id = 'site'): Html {
  const choices = sites.map((site) => ({ value: site, label: site }));
  if (sites.length > 1) return selectField({ id, name: 'site', label: 'Site', value: chosen, choices });
  return html`<input type="hidden" name="site" value="${sites[0]}">`;
}

/** Which of the account's sites, when several may be meant. */
export function sitesField(sites: readonly string[], chosen: readonly string[]): Html {
  const choices = sites.map((id) => ({ value: id, label: id }));
  if (sites.length > 1) return checkboxField({ name: 'site', label: 'Sites', values: chosen, choices });
  return html`<input type="hidden" name="site" value="${sites[0]}">`;
}

interface Form {
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly submit: string;
  /** What was wrong when it was sent. */
  readonly problems: readonly string[];
  readonly fields: Content;
}

/** A form in a section of its own, with what was wrong with it above its fields. */
export function form({ id, title, path, submit, problems, fields }: Form): Html {
  return html`<section class="card" id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${problemList(problems)}
    <form method="post" action="${path}" class="form">
      <div class="fields">${fields}</div>
      <p><button class="button button-main">${submit}</button></p>
    </form>
  </section>`;
}

/** What was wrong with what was sent, if anything was. */
export function problemList(problems: readonly string[]): Content {
  if (problems.length === 0) return undefined;
  return html`<div class="message message-bad" role="alert"><p>This was not saved:</p><ul>${problems.map(
    (problem) => html`<li>${problem}</li>`,
  )}</ul></div>`;
}

/** What a page with a list and a form is asked to show. */
export interface ListView {
  readonly query: PageQuery;
  /** What the form was sent with. */
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

/** A list above the form that adds to it; the form comes first while something is wrong with it. */
export function listAndForm(list: Content, form: Content, problems: readonly string[]): Html {
  return problems.length > 0 ? html`${form}${list}` : html`${list}${form}`;
}

/** Leads to a form further down the page. */
export function linkToForm(id: string, label: string): Html {
  return html`<a class="button button-main" href="#${id}">${label}</a>`;
}

function describedBy(name: string, hint: string | undefined): Content {
  return hint !== undefined && html` aria-describedby="hint-${name}"`;
}

function hintOf(name: string, hint: string | undefined): Content {
  return hint !== undefined && html`<p class="hint" id="hint-${name}">${hint}</p>`;
}
