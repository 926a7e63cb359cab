import type { Request } from 'express';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import type { SetFields } from '../resources/fields';
import { card, type Hidden, hiddenFields, labelOf, unseen } from './elements';
import { FormBody, inputsOf, isFilled } from './inputs';
import type { PageQuery } from './list';

interface Refused {
  readonly form: string;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

export interface Asked {
  readonly request: PageRequest;
  readonly query: PageQuery;
  readonly refused?: Refused;
}

export type PageRequest = Request<Record<string, string>>;

export function wantsJson(request: Pick<Request, 'get'>): boolean {
  return request.get('accept') === 'application/json';
}

export function absent(description: string): HttpError {
  return new HttpError(404, { code: 'not_found', description: `${description} It may have been deleted.` });
}

export function invalid(description: string): HttpError {
  return new HttpError(400, { code: 'invalid_body', description });
}

/** How the API describes a problem of a field, or of two. */
const FIELD_PROBLEM = /^(?:(?:metadata|upload|relationships)\.)?([a-z][\w.-]*(?: and [a-z_]+)?): (.*)$/s;
const entry = (_path: string, index: string) => `.entry ${Number(index) + 1}`;

/** The problems of a form in its own words; `undefined` for an error that is not about its fields. */
export function problemsOf(thrown: unknown): readonly string[] | undefined {
  if (!(thrown instanceof HttpError) || [403, 404].includes(thrown.status) || thrown.status >= 500)
    return undefined;
  return thrown.problems.map(({ description }) => {
    const [, paths, says] = FIELD_PROBLEM.exec(description) ?? [];
    const labels = paths?.split(' and ').map((path) => labelOf(path.replaceAll(/\.(\d+)\b/g, entry)));
    const sentence = labels === undefined ? description : `${labels.join(' and ')} ${says}`;
    return /[.?!]$/.test(sentence) ? sentence : `${sentence}.`;
  });
}

interface Form {
  readonly id: string;
  readonly path: string;
  readonly submit: string;
  readonly fields: SetFields;
  readonly filled?: FormBody;
  readonly hidden?: Hidden;
  /** More fields, each group behind a link. */
  readonly more?: Readonly<Record<string, SetFields>>;
  readonly below?: Content;
  readonly buttons?: Content;
  readonly attributes?: Html;
}

export function refusalOf({ refused }: Asked, id: string): Content {
  return refused?.form === id && problemList(refused.problems);
}

export function problemList(problems: readonly string[]): Content {
  if (problems.length === 0) return undefined;
  return html`<div class="message" data-variant="danger" role="alert" tabindex="-1" autofocus><p>Correct this first:</p><ul>${problems.map(
    (problem) => html`<li>${problem}</li>`,
  )}</ul></div>`;
}

/** A form, with the sent values when it was refused. @param subject of its button, for screen readers. */
export function bareForm(asked: Asked, form: Form, subject?: string): Html {
  const { id, path, submit, fields, filled, hidden = {}, more = {}, below, buttons } = form;
  const isRefused = asked.refused?.form === id;
  const sent = isRefused ? asked.refused.sent : (filled ?? new FormBody());
  const groups = Object.entries(more).map(
    ([title, group]) =>
      html`<details class="more" id="${id}-${Object.keys(group)[0]}"${isFilled(group, sent) && html` open`}><summary class="link">${title}</summary><div class="fields">${inputsOf(group, sent, id)}</div></details>`,
  );
  const button = html`<button>${submit}${subject !== undefined && unseen(subject)}</button>`;
  return html`<div id="${id}-problems">${refusalOf(asked, id)}</div><form method="post" action="${path}"${form.attributes ?? html` class="form"`}>${hiddenFields(hidden)}
    <div class="fields">${inputsOf(fields, sent, id)}${below}</div>${groups}<div class="actions">${button}${buttons}</div></form>`;
}

export function formCard(asked: Asked, title: string, form: Form): Html {
  return card(form.id, title, bareForm(asked, form));
}

export function formMore(asked: Asked, title: string, form: Form): Html {
  return html`<details class="more" id="${form.id}"${asked.refused?.form === form.id && html` open`}><summary class="link">${title}</summary>${bareForm(asked, form)}</details>`;
}

export function formButton(asked: Asked, label: string, subject: string, form: Form): Html {
  return html`<details class="opened-form" id="${form.id}"${asked.refused?.form === form.id && html` open`}><summary class="button outline small">${label}…${unseen(subject)}</summary>${bareForm(asked, form, subject)}</details>`;
}

/** The parts of a page by their names. The one with the refused form, whose id starts with the name, comes first. */
export function refusedFirst({ refused }: Asked, parts: Readonly<Record<string, Content>>): Content {
  const [first = ''] = refused?.form.split('-') ?? [];
  return [parts[first], ...Object.entries(parts).map(([name, part]) => name !== first && part)];
}
