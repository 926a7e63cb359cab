import { createHash } from 'node:crypto';
import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { unwrapped } from '../../../http/faults';
import { type Content, type Html, html } from '../../../http/html';
import { Moment, Reference, type SetField, type SetFields, WebAddress } from '../resources/fields';
import { choicesOf, plainChoices } from './elements';
import { FormBody, labelOf } from './forms';
import { optionsOf } from './list';

/** How a value is asked for. */
type Kind =
  | { readonly kind: 'text' | 'long' | 'words' | 'pairs' | 'json' | 'moment' | 'address' | 'flag' | 'id' }
  | { readonly kind: 'choice' | 'boxes'; readonly values: readonly string[] }
  | { readonly kind: 'number'; readonly schema: z.ZodNumber }
  | { readonly kind: 'group'; readonly fields: Readonly<Record<string, z.ZodType>> };

/** A text that may be longer is asked for in several lines. */
const LONG = 2000;

function kindOf(schema: z.ZodType): Kind {
  if (schema === Moment) return { kind: 'moment' };
  if (schema === WebAddress) return { kind: 'address' };
  if (schema === Reference) return { kind: 'id' };
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodEnum) return { kind: 'choice', values: bare.options.map(String) };
  if (bare instanceof z.ZodBoolean) return { kind: 'flag' };
  if (bare instanceof z.ZodNumber) return { kind: 'number', schema: bare };
  if (bare instanceof z.ZodArray && bare.element instanceof z.ZodEnum)
    return { kind: 'boxes', values: bare.element.options.map(String) };
  if (bare instanceof z.ZodArray && bare.element instanceof z.ZodString) return { kind: 'words' };
  if (bare instanceof z.ZodRecord && bare.valueType instanceof z.ZodString) return { kind: 'pairs' };
  if (bare instanceof z.ZodObject) return { kind: 'group', fields: bare.shape as Record<string, z.ZodType> };
  if (bare instanceof z.ZodString) return { kind: (bare.maxLength ?? 0) > LONG ? 'long' : 'text' };
  return { kind: 'json' };
}

/** The form that changes these values of fields. */
export function formOf(fields: SetFields, values: Readonly<Record<string, unknown>>): FormBody {
  const texts: Record<string, unknown> = {};
  for (const [name, { schema }] of Object.entries(fields)) fill(texts, name, schema, values[name]);
  const filled = new FormBody(texts);
  const was = Object.keys(fields).map((name) => `${name} ${digest(filled, name)}`);
  return new FormBody({ ...texts, [WAS]: was.join('\n') });
}

/** The field of a form that says what the others began with: one that was not edited is not changed. */
const WAS = 'was';

function fill(texts: Record<string, unknown>, name: string, schema: z.ZodType, value: unknown): void {
  if (value === null || value === undefined) return;
  const asked = kindOf(schema);
  if (asked.kind === 'group') {
    for (const [inner, one] of Object.entries(asked.fields))
      fill(texts, `${name}.${inner}`, one, (value as Readonly<Record<string, unknown>>)[inner]);
  } else if (asked.kind === 'pairs') {
    texts[`${name}.name`] = Object.keys(value);
    texts[`${name}.value`] = Object.values(value);
  } else if (asked.kind === 'words') texts[name] = (value as readonly string[]).join('\n');
  else if (asked.kind === 'boxes') texts[name] = value;
  else if (asked.kind === 'moment') texts[name] = new Date(String(value)).toISOString().slice(0, 19);
  else if (asked.kind === 'flag') texts[name] = value === true ? 'on' : '';
  else if (asked.kind === 'id') texts[name] = String((value as { readonly id: unknown }).id);
  else if (asked.kind === 'json')
    texts[name] = Object.keys(value).length === 0 ? '' : JSON.stringify(value, null, 2);
  else texts[name] = String(value);
}

/** The names and values of a form, without the rows that are empty. */
function pairsOf(sent: FormBody, name: string): (readonly [string, string])[] {
  const values = sent.texts(`${name}.value`);
  return sent
    .texts(`${name}.name`)
    .map((key, place) => [key.trim(), values[place] ?? ''] as const)
    .filter(([key, value]) => key !== '' || value.trim() !== '');
}

/** A field of a form, in short. Empty inputs don't count: a form has some to add values. */
function digest(sent: FormBody, name: string): string {
  const texts = sent.namesIn(name).flatMap((each) => {
    const said = sent.texts(each).map((text) => text.trim());
    return said.some((text) => text !== '') ? [[each, said.join('\n').trimEnd()]] : [];
  });
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64url').slice(0, 12);
}

/**
 * The values that a form asks for, as a body of the API has them, without those that were not edited. The call checks
 * everything else about them.
 * @throws HttpError 400 with what no body can hold.
 */
export function readFields(fields: SetFields, sent: FormBody): Readonly<Record<string, unknown>> {
  const before = new Map(
    sent
      .text(WAS)
      .split('\n')
      .map((line) => line.split(' ') as [string, string | undefined]),
  );
  const problems: string[] = [];
  const given = Object.entries(fields).flatMap(([name, field]) => {
    // Boxes that are not ticked are not sent.
    const isSent = sent.has(name) || ['flag', 'boxes'].includes(kindOf(field.schema).kind);
    if (!isSent || before.get(name) === digest(sent, name)) return [];
    const value = readValue(sent, name, field.schema, problems);
    return [[name, isEmpty(value) ? emptied(field) : value] as const];
  });
  if (problems.length > 0)
    throw new HttpError(
      400,
      problems.map((description) => ({ code: 'invalid_body', description })),
    );
  return Object.fromEntries(given);
}

/** The value of a field that was emptied. A number that is required is refused as no number. */
function emptied(field: SetField): unknown {
  if (kindOf(field.schema).kind === 'boxes') return [];
  if (!('default' in field)) return field.required ? '' : null;
  return typeof field.default === 'object' ? field.default : '';
}

/** `undefined` for an empty field. */
function readValue(sent: FormBody, name: string, schema: z.ZodType, problems: string[]): unknown {
  const asked = kindOf(schema);
  const text = sent.text(name).trim();
  switch (asked.kind) {
    case 'group': {
      const values = Object.entries(asked.fields).map(
        ([inner, one]) =>
          [inner, readValue(sent, `${name}.${inner}`, one, problems), kindOf(one).kind] as const,
      );
      // A choice alone says nothing.
      const says = values.some(([, value, kind]) => kind !== 'choice' && !isEmpty(value));
      return says ? Object.fromEntries(values.filter(([, value]) => value !== undefined)) : undefined;
    }
    case 'pairs': {
      const given = pairsOf(sent, name);
      if (new Set(given.map(([key]) => key)).size < given.length)
        problems.push(`${labelOf(name)} has a name twice.`);
      return Object.fromEntries(given);
    }
    case 'words':
      return text.split('\n').flatMap((word) => word.trim() || []);
    case 'boxes':
      return sent.texts(name);
    case 'json':
      return text === '' ? {} : readJson(text, name, problems);
    case 'flag':
      return text === 'on';
    case 'number':
      return text === '' ? undefined : Number(text);
    case 'moment':
      // Browsers send no offset: the form asks for UTC.
      return text.replace(/T\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/, '$&Z') || undefined;
    case 'id':
      return text === '' ? undefined : { id: text };
    default:
      return text === '' ? undefined : text;
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
}

function readJson(text: string, name: string, problems: string[]): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const [, at] = /at position (\d+)/.exec(String(thrown)) ?? [];
    const before = text.slice(0, at === undefined ? text.length : Number(at)).split('\n');
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    const advice = 'Names and texts are in double quotes.';
    problems.push(`${labelOf(name)} is not valid JSON: look at ${place}. ${advice}`);
    return {};
  }
}

/** Inputs for fields, filled in as this form says. @param scope keeps the ids of several forms of a page apart. */
export function inputsOf(fields: SetFields, sent: FormBody, scope: string): Html {
  const was = sent.text(WAS);
  const inputs = Object.entries(fields).map(([name, field]) => {
    const label = labelOf(name);
    const isRequired = field.required === true;
    const isNeeded = 'default' in field || isRequired;
    const input = { name, label, hint: hintOf(field, label), scope, isNeeded, isRequired, sent };
    return inputOf(input, field.schema, field.default);
  });
  return html`${was !== '' && html`<input type="hidden" name="${WAS}" value="${was}">`}${inputs}`;
}

/** Whether a form has something in one of these fields. */
export function isFilled(fields: SetFields, sent: FormBody): boolean {
  return Object.keys(fields).some((name) =>
    sent.namesIn(name).some((each) => sent.texts(each).some((text) => text !== '')),
  );
}

interface Input {
  readonly name: string;
  readonly label: string;
  readonly hint: string | undefined;
  readonly scope: string;
  /** Whether it always has a value. */
  readonly isNeeded: boolean;
  readonly isRequired: boolean;
  readonly sent: FormBody;
}

const MORE_HINTS: Readonly<Record<string, string>> = {
  moment: 'In UTC.',
  words: 'One on each line.',
  json: 'As a JSON object.',
  id: 'Its id.',
  pairs: 'To remove one, empty its name and its value.',
};

function inputOf(input: Input, schema: z.ZodType, otherwise?: unknown): Html {
  const { name, label, sent, isNeeded } = input;
  const asked = kindOf(schema);
  if (asked.kind === 'group') return group(input, asked.fields);
  const id = `field-${input.scope}-${name.replaceAll('.', '-')}`;
  const hints = [input.hint, MORE_HINTS[asked.kind]].filter((hint) => hint !== undefined).join(' ');
  const hint = hints !== '' && html`<p class="hint" id="${id}-hint">${hints}</p>`;
  const isRequired = asked.kind === 'number' ? isNeeded : input.isRequired;
  const attributes = html` id="${id}"${hint && html` aria-describedby="${id}-hint"`}${isRequired && html` required`}`;
  const text = sent.has(name)
    ? sent.text(name)
    : typeof otherwise === 'object'
      ? ''
      : String(otherwise ?? '');
  const framed = (control: Html, look = '') =>
    html`<div class="field ${look}"><label for="${id}">${label}</label>${control}${hint}</div>`;
  // A line feed behind the tag is not part of the text, so one at its start must not stand there.
  const area = (
    rows: number,
    more: Content,
  ) => html`<textarea name="${name}" rows="${rows}"${attributes}${more}>
${text}</textarea>`;
  const line = (type: string, more: Content) =>
    html`<input name="${name}" type="${type}" value="${text}" autocomplete="off"${attributes}${more}>`;
  switch (asked.kind) {
    case 'choice': {
      const choices = asked.values.map((value) => ({ value, label: spoken(value) }));
      const [first, ...others] = choices;
      if (name === 'site' && others.length === 0)
        return html`<input type="hidden" name="site" value="${first?.value}">`;
      const none = isNeeded ? [] : choicesOf({ '': ['not chosen', 'neutral'] });
      const options = optionsOf(name === 'site' ? plainChoices(asked.values) : [...none, ...choices], text);
      return framed(html`<select name="${name}"${attributes}>${options}</select>`);
    }
    case 'boxes':
      return boxes(input, asked.values, hint);
    case 'flag':
      return html`<div class="field"><label class="box"><input type="checkbox" id="${id}" name="${name}" value="on"${text === 'on' && html` checked`}> <span>${input.hint?.replace(/^Whether to (.*)\.$/, (_hint, what: string) => labelOf(what)) ?? label}</span></label></div>`;
    case 'number': {
      const { minValue: least, maxValue: most, format } = asked.schema;
      const limit = (attribute: string, value: number | null) =>
        Number.isSafeInteger(value) && html` ${attribute}="${value ?? ''}"`;
      return framed(
        line(
          'number',
          html` step="${format === null ? 'any' : 1}"${limit('min', least)}${limit('max', most)}`,
        ),
      );
    }
    case 'moment':
      return framed(line('datetime-local', html` step="1"`));
    case 'long':
      return framed(area(4, html` dir="auto"`), 'field-wide');
    case 'words':
      return framed(area(2, html` dir="auto"`));
    case 'json':
      return framed(area(8, html` class="code" spellcheck="false"`), 'field-wide');
    case 'pairs':
      return pairs(input, hint);
    default: {
      const most = schema instanceof z.ZodString ? schema.maxLength : null;
      const more = html` dir="auto"${most !== null && html` maxlength="${most}"`}`;
      return framed(line(asked.kind === 'address' ? 'url' : 'text', more));
    }
  }
}

/** The fields within a field. Groups of groups are shown by their names alone, without a frame in a frame. */
function group(input: Input, fields: Readonly<Record<string, z.ZodType>>): Html {
  const inputs = Object.entries(fields).map(([inner, one]) => {
    const within = {
      ...input,
      name: `${input.name}.${inner}`,
      hint: undefined,
      isNeeded: false,
      isRequired: false,
    };
    const label = labelOf(inner);
    const asked = kindOf(one);
    const isOuter =
      asked.kind === 'group' && Object.values(asked.fields).every((each) => kindOf(each).kind === 'group');
    if (!isOuter) return inputOf({ ...within, label }, one);
    return Object.entries(asked.fields).map(([deeper, each]) =>
      inputOf(
        { ...within, name: `${within.name}.${deeper}`, label: `${label}: ${labelOf(deeper).toLowerCase()}` },
        each,
      ),
    );
  });
  const { hint, label } = input;
  return html`<fieldset class="field ${hint === undefined ? 'within-inner' : 'within'}"><legend>${label}</legend>${
    hint !== undefined && html`<p class="hint">${hint}</p>`
  }<div class="fields">${inputs}</div></fieldset>`;
}

function boxes({ name, label, sent }: Input, values: readonly string[], hint: Content): Html {
  const [first = ''] = values;
  if (values.length === 1) return html`<input type="hidden" name="${name}" value="${first}">`;
  const ticked = sent.texts(name);
  return html`<fieldset class="field"><legend>${label}</legend><div class="boxes">${values.map(
    (value) =>
      html`<label class="box"><input type="checkbox" name="${name}" value="${value}"${ticked.includes(value) && html` checked`}> <span>${value}</span></label>`,
  )}</div>${hint}</fieldset>`;
}

/** How many names and values can be added without script. */
const MORE_PAIRS = 2;

function pairs({ name, label, sent }: Input, hint: Content): Html {
  const rows = [...pairsOf(sent, name), ...Array.from({ length: MORE_PAIRS }, () => ['', ''] as const)];
  return html`<fieldset class="field"><legend>${label}</legend>
    <div class="pairs" data-rows>${rows.map(
      ([key, value], place) => html`<div class="pair">
        <input name="${name}.name" value="${key}" aria-label="${label}: name ${place + 1}" placeholder="Name" autocomplete="off" dir="auto">
        <textarea name="${name}.value" rows="1" aria-label="${label}: value ${place + 1}" placeholder="Value" dir="auto">
${value}</textarea></div>`,
    )}</div>${hint}</fieldset>`;
}

function spoken(value: string): string {
  const [name = '', order] = value.split(':');
  return order === undefined
    ? labelOf(name)
    : `${labelOf(name)}, ${order === 'asc' ? 'ascending' : 'descending'}`;
}

/** The first sentence of what the table says; the others are for those who write programs. */
function hintOf({ says }: SetField, label: string): string | undefined {
  const [first = ''] = says.split(/(?<=\.)\s/);
  const said = first.toLowerCase().replace(/^the |\.$/g, '');
  return said === label.toLowerCase() ? undefined : first.replaceAll('`', '');
}
