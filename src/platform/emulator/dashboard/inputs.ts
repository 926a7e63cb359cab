import { createHash } from 'node:crypto';
import * as z from 'zod';
import { parseJson } from '../../../drm/bytes';
import { HttpError, type Problem } from '../../../http/errors';
import { unwrapped } from '../../../http/faults';
import { type Content, type Html, html } from '../../../http/html';
import { Moment, Reference, type SetField, type SetFields, WebAddress } from '../resources/fields';
import { labelOf, optionsOf, plainChoices } from './elements';

export class FormBody extends URLSearchParams {
  /** The field's text, or the first one's when it was sent several times; empty when it was not sent. */
  text(name: string): string {
    return this.texts(name)[0] ?? '';
  }

  /** Every value of a field, as ticked boxes, with the line ends of JavaScript and no NUL, which HTML has not. */
  texts(name: string): string[] {
    return this.getAll(name).map((text) => text.replaceAll(/\r\n?/g, '\n').replaceAll('\0', '\ufffd'));
  }

  /** The names of a field and of those within it that were sent, empty or not. */
  namesIn(name: string): string[] {
    return [...new Set(this.keys())].filter((each) => each === name || each.startsWith(`${name}.`)).sort();
  }
}

export const LongAddress = z.string().max(4000);
export const Lines = z.string();
/** Lines that are not sent back to their sender. */
export const SecretLines = z.string();
/** A secret in one line, which is not sent back to its sender. */
export const Secret = z.string();

interface TextKind {
  /** Of an input in one line; without it, there are several. */
  readonly type?: string;
  readonly rows?: number;
  readonly isWide?: true;
  readonly more?: Html;
  readonly hint?: string;
  readonly isSecret?: true;
  readonly write?: (value: never) => string;
  /** The value of a trimmed text, `undefined` for none; by default the text itself. */
  readonly read?: (text: string, name: string, problems: Problem[]) => unknown;
}

const ANY_DIRECTION = html` dir="auto"`;
/** As browsers send a text that they show in one line: with its line breaks it would count as edited. */
const oneLine = (text: string) => text.replaceAll(/[\r\n]/g, '');
const TEXT: TextKind = { type: 'text', more: ANY_DIRECTION, write: oneLine };
const LONG_TEXT: TextKind = { rows: 4, isWide: true, more: ANY_DIRECTION };
const CODE = { isWide: true, more: html` class="code" spellcheck="false" autocomplete="off"` } as const;
const NUMBER: TextKind = { type: 'number', read: (text) => (text === '' ? undefined : Number(text)) };
const WORDS: TextKind = {
  rows: 2,
  more: ANY_DIRECTION,
  hint: 'One on each line.',
  write: (words: readonly string[]) => words.join('\n'),
  read: (text) => text.split('\n').flatMap((word) => word.trim() || []),
};
const JSON_TEXT: TextKind = {
  ...CODE,
  rows: 8,
  hint: 'As a JSON object.',
  write: (value: object) => (Object.keys(value).length === 0 ? '' : JSON.stringify(value, null, 2)),
  read: (text, name, problems) => (text === '' ? {} : readJson(text, name, problems)),
};

const OF_SCHEMA = new Map<z.ZodType, TextKind>([
  [
    Moment,
    {
      type: 'datetime-local',
      more: html` step="1"`,
      hint: 'In UTC.',
      // As browsers send it: another form would count as edited.
      write: (value: string) => new Date(value).toISOString().slice(0, 19).replace(/:00$/, ''),
      // Browsers send no offset: the form asks for UTC.
      read: (text) => text.replace(/T\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/, '$&Z') || undefined,
    },
  ],
  [
    Reference,
    {
      ...TEXT,
      hint: 'Its id.',
      write: ({ id }: { readonly id: string }) => id,
      read: (id) => (id === '' ? undefined : { id }),
    },
  ],
  [WebAddress, { ...TEXT, type: 'url' }],
  [LongAddress, { type: 'url', isWide: true }],
  [Lines, { ...CODE, rows: 5 }],
  [SecretLines, { ...CODE, rows: 4, isSecret: true }],
  [Secret, { type: 'password', isSecret: true }],
]);

type Kind =
  | { readonly kind: 'pairs' | 'flag' }
  | { readonly kind: 'text'; readonly as: TextKind }
  | { readonly kind: 'choice' | 'boxes'; readonly values: readonly string[] }
  | { readonly kind: 'group'; readonly fields: Readonly<Record<string, z.ZodType>> };

/** A text that may be longer is asked for in several lines. */
const LONG = 2000;

function kindOf(schema: z.ZodType): Kind {
  const known = OF_SCHEMA.get(schema);
  if (known) return { kind: 'text', as: known };
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodEnum) return { kind: 'choice', values: bare.options.map(String) };
  if (bare instanceof z.ZodBoolean) return { kind: 'flag' };
  if (bare instanceof z.ZodNumber) return { kind: 'text', as: NUMBER };
  if (bare instanceof z.ZodArray && bare.element instanceof z.ZodEnum)
    return { kind: 'boxes', values: bare.element.options.map(String) };
  if (bare instanceof z.ZodArray && bare.element instanceof z.ZodString) return { kind: 'text', as: WORDS };
  if (bare instanceof z.ZodRecord && bare.valueType instanceof z.ZodString) return { kind: 'pairs' };
  if (bare instanceof z.ZodObject) return { kind: 'group', fields: bare.shape as Record<string, z.ZodType> };
  if (!(bare instanceof z.ZodString)) return { kind: 'text', as: JSON_TEXT };
  return { kind: 'text', as: (bare.maxLength ?? 0) > LONG ? LONG_TEXT : TEXT };
}

/** The field of a form that has a digest of each of the others: one that was not edited is not changed. */
const WAS = 'was';

export function formOf(fields: SetFields, values: Readonly<Record<string, unknown>>): FormBody {
  const pairs = Object.entries(fields).flatMap(([name, { schema }]) => textsIn(name, schema, values[name]));
  const filled = new FormBody(pairs);
  const digests = Object.keys(fields).map((name) => `${name} ${digest(filled, name)}`);
  filled.append(WAS, digests.join('\n'));
  return filled;
}

function textsIn(name: string, schema: z.ZodType, value: unknown): [name: string, text: string][] {
  if (value === null || value === undefined) return [];
  const asked = kindOf(schema);
  const inner = Object.entries(value);
  switch (asked.kind) {
    case 'group':
      return inner.flatMap(([key, one]) => textsIn(`${name}.${key}`, asked.fields[key] ?? schema, one));
    case 'pairs':
      return inner.flatMap(([key, text]): [string, string][] => [
        [`${name}.name`, oneLine(key)],
        [`${name}.value`, text],
      ]);
    case 'boxes':
      // In the order in which browsers send them.
      return asked.values.filter((one) => Object.values(value).includes(one)).map((one) => [name, one]);
    case 'flag':
      return [[name, value === true ? 'on' : '']];
    case 'choice':
      return [[name, String(value)]];
    case 'text':
      return [[name, (asked.as.write ?? String)(value as never)]];
  }
}

function pairsOf(sent: FormBody, name: string): (readonly [string, string])[] {
  const values = sent.texts(`${name}.value`);
  return sent
    .texts(`${name}.name`)
    .map((key, place) => [key.trim(), values[place] ?? ''] as const)
    .filter(([key, value]) => key !== '' || value.trim() !== '');
}

/** Empty inputs don't count: a form has some to add values. */
function digest(sent: FormBody, name: string): string {
  const texts = sent.namesIn(name).flatMap((each) => {
    const text = sent.texts(each).map((one) => one.trim());
    return text.some((one) => one !== '') ? [[each, text.join('\n').trimEnd()]] : [];
  });
  return createHash('sha256').update(JSON.stringify(texts)).digest('base64url').slice(0, 12);
}

/** A body of the API, without unedited fields. @throws HttpError 400 for values that no body can contain. */
export function readFields(fields: SetFields, sent: FormBody): Readonly<Record<string, unknown>> {
  const before = sent.text(WAS).split('\n');
  const problems: Problem[] = [];
  const given = Object.entries(fields).flatMap(([name, field]) => {
    // Boxes that are not ticked are not sent.
    const isSent = sent.namesIn(name).length > 0 || ['flag', 'boxes'].includes(kindOf(field.schema).kind);
    if (!isSent || before.includes(`${name} ${digest(sent, name)}`)) return [];
    const value = readValue(sent, name, field.schema, problems);
    return [[name, isEmpty(value) ? emptied(field) : value] as const];
  });
  if (problems.length > 0) throw new HttpError(400, problems);
  return Object.fromEntries(given);
}

/** The value of a field that was emptied. A number that is required is refused as no number. */
function emptied(field: SetField): unknown {
  if (kindOf(field.schema).kind === 'boxes') return [];
  if (!('default' in field)) return field.required ? '' : null;
  return typeof field.default === 'object' ? field.default : '';
}

/** `undefined` for an empty field. */
function readValue(sent: FormBody, name: string, schema: z.ZodType, problems: Problem[]): unknown {
  const asked = kindOf(schema);
  const text = sent.text(name).trim();
  switch (asked.kind) {
    case 'group': {
      const values = Object.entries(asked.fields).map(
        ([inner, one]) => [inner, readValue(sent, `${name}.${inner}`, one, problems), one] as const,
      );
      // A choice alone says nothing.
      const says = values.some(([, value, one]) => kindOf(one).kind !== 'choice' && !isEmpty(value));
      return says ? Object.fromEntries(values.filter(([, value]) => value !== undefined)) : undefined;
    }
    case 'pairs': {
      const given = pairsOf(sent, name);
      if (new Set(given.map(([key]) => key)).size < given.length)
        problems.push({ code: 'invalid_body', description: `${labelOf(name)} has a name twice.` });
      return Object.fromEntries(given);
    }
    case 'boxes':
      return sent.texts(name);
    case 'flag':
      return text === 'on';
    case 'choice':
      return text || undefined;
    case 'text':
      return asked.as.read ? asked.as.read(text, name, problems) : text || undefined;
  }
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0);
}

function readJson(text: string, name: string, problems: Problem[]): unknown {
  const value = parseJson(text);
  if (value !== undefined) return value;
  const before = text.slice(0, faultyPlace(text)).split('\n');
  const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
  const label = labelOf(name);
  const description = `${label} is not valid JSON: look at ${place}. Names and texts are in double quotes.`;
  problems.push({ code: 'invalid_body', description });
  return {};
}

function jsonFault(text: string): string {
  try {
    JSON.parse(text);
    return '';
  } catch (thrown) {
    return String(thrown);
  }
}

const isWrongToken = (fault: string) => fault.startsWith('SyntaxError: Unexpected token');

/** V8 does not say where a wrong token is: a start of the text has the same fault if it contains it. */
function faultyPlace(text: string): number {
  const fault = jsonFault(text);
  const [, at = text.length] = /at position (\d+)/.exec(fault) ?? [];
  if (!isWrongToken(fault)) return Number(at);
  let [start, end] = [0, text.length];
  while (end - start > 1) {
    const middle = Math.floor((start + end) / 2);
    if (isWrongToken(jsonFault(text.slice(0, middle)))) end = middle;
    else start = middle;
  }
  return start;
}

/** Inputs for fields, filled in from this form. @param scope keeps the ids of several forms of a page apart. */
export function inputsOf(fields: SetFields, sent: FormBody, scope: string): Html {
  const was = sent.text(WAS);
  const inputs = Object.entries(fields).map(([name, field]) => {
    const label = labelOf(name);
    return inputOf({ name, label, hint: hintOf(field, label), scope, sent }, field);
  });
  return html`${was !== '' && html`<input type="hidden" name="${WAS}" value="${was}">`}${inputs}`;
}

export function isFilled(fields: SetFields, sent: FormBody): boolean {
  const names = Object.keys(fields).flatMap((name) => sent.namesIn(name));
  return names.some((name) => sent.texts(name).some((text) => text !== ''));
}

interface Input {
  readonly name: string;
  readonly label: string;
  readonly hint: string | undefined;
  readonly scope: string;
  readonly sent: FormBody;
}

function inputOf(input: Input, { schema, required, ...field }: Omit<SetField, 'says'>): Html {
  const { name, label, sent } = input;
  const asked = kindOf(schema);
  const as = asked.kind === 'text' ? asked.as : {};
  const id = `field-${input.scope}-${name.replaceAll('.', '-')}`;
  const hints = [input.hint ?? [], as.hint ?? []].flat().join(' ');
  const hint = hints !== '' && html`<p class="hint" id="${id}-hint">${hints}</p>`;
  const isAlwaysSet = required === true || 'default' in field;
  const isRequired = as === NUMBER ? isAlwaysSet : required;
  const attributes = html` id="${id}"${hint && html` aria-describedby="${id}-hint"`}${isRequired && html` required`}${as.more}`;
  const unsent = typeof field.default === 'object' ? '' : String(field.default ?? '');
  const text = as.isSecret ? '' : sent.namesIn(name).length > 0 ? sent.text(name) : unsent;
  const framed = (control: Html) =>
    html`<div class="field ${as.isWide && 'field-wide'}"><label for="${id}">${label}</label>${control}${hint}</div>`;
  switch (asked.kind) {
    case 'group':
      return group(input, asked.fields);
    case 'boxes':
      return boxes(input, asked.values, hint);
    case 'pairs':
      return pairs(input, id);
    case 'choice': {
      if (name === 'site' && asked.values.length === 1)
        return html`<input type="hidden" name="site" value="${asked.values[0]}">`;
      const choices = asked.values.map((value) => ({ value, label: spoken(value) }));
      const none = isAlwaysSet ? [] : [{ value: '', label: 'not chosen' }];
      const options = optionsOf(name === 'site' ? plainChoices(asked.values) : [...none, ...choices], text);
      return framed(html`<select name="${name}"${attributes}>${options}</select>`);
    }
    case 'flag': {
      const what = input.hint?.replace(/^Whether to (.*)\.$/, (_hint, words: string) => labelOf(words));
      const box = html`<input type="checkbox" id="${id}" name="${name}" value="on"${text === 'on' && html` checked`}>`;
      return html`<div class="field"><label class="box">${box} <span>${what ?? label}</span></label></div>`;
    }
    case 'text':
      // A line feed after the tag is not part of the text: it keeps one with which the text starts.
      return framed(
        as.type === undefined
          ? html`<textarea name="${name}" rows="${as.rows}"${attributes}>
${text}</textarea>`
          : html`<input name="${name}" type="${as.type}" value="${text}" autocomplete="off"${attributes}${limitsOf(schema)}>`,
      );
  }
}

function limitsOf(schema: z.ZodType): Content {
  const bare = unwrapped(schema);
  if (schema instanceof z.ZodString)
    return schema.maxLength !== null && html` maxlength="${schema.maxLength}"`;
  if (!(bare instanceof z.ZodNumber)) return undefined;
  const limit = (name: string, value: number | null) =>
    Number.isSafeInteger(value) && html` ${name}="${value ?? ''}"`;
  return html` step="${bare.format === null ? 'any' : 1}"${limit('min', bare.minValue)}${limit('max', bare.maxValue)}`;
}

/** The fields within a field. Groups of groups are shown by their names alone, without a frame in a frame. */
function group(input: Input, fields: Readonly<Record<string, z.ZodType>>): Html {
  const within = { ...input, hint: undefined };
  const inputs = Object.entries(fields).map(([inner, one]) => {
    const name = `${input.name}.${inner}`;
    const label = labelOf(inner);
    const asked = kindOf(one);
    const isOuter =
      asked.kind === 'group' && Object.values(asked.fields).every((each) => kindOf(each).kind === 'group');
    if (!isOuter) return inputOf({ ...within, name, label }, { schema: one });
    return Object.entries(asked.fields).map(([deeper, each]) => {
      const both = `${label}: ${labelOf(deeper).toLowerCase()}`;
      return inputOf({ ...within, name: `${name}.${deeper}`, label: both }, { schema: each });
    });
  });
  const { hint, label } = input;
  return html`<fieldset class="field ${hint === undefined ? 'within-inner' : 'within'}"><legend>${label}</legend>${
    hint !== undefined && html`<p class="hint">${hint}</p>`
  }<div class="fields">${inputs}</div></fieldset>`;
}

function boxes({ name, label, sent }: Input, values: readonly string[], hint: Content): Html {
  if (values.length === 1) return html`<input type="hidden" name="${name}" value="${values[0]}">`;
  const ticked = sent.texts(name);
  return html`<fieldset class="field"><legend>${label}</legend><div class="boxes">${values.map(
    (value) =>
      html`<label class="box"><input type="checkbox" name="${name}" value="${value}"${ticked.includes(value) && html` checked`}> <span>${value}</span></label>`,
  )}</div>${hint}</fieldset>`;
}

/** How many names and values can be added without script. */
const MORE_PAIRS = 2;

function pairs({ name, label, sent, hint }: Input, id: string): Html {
  const rows = [...pairsOf(sent, name), ...Array.from({ length: MORE_PAIRS }, () => ['', ''] as const)];
  return html`<fieldset class="field"><legend>${label}</legend>
    <div class="pairs" data-rows>${rows.map(
      ([key, value], place) => html`<div class="pair">
        <input name="${name}.name" value="${key}" aria-label="${label}: name ${place + 1}" placeholder="Name" autocomplete="off" dir="auto">
        <textarea name="${name}.value" rows="1" aria-label="${label}: value ${place + 1}" placeholder="Value" dir="auto">
${value}</textarea></div>`,
    )}</div><p class="hint" id="${id}-hint">${hint && `${hint} `}To remove one, empty its name and its value.</p></fieldset>`;
}

function spoken(value: string): string {
  const [name = '', order] = value.split(':');
  const direction = order === 'asc' ? 'ascending' : 'descending';
  return order === undefined ? labelOf(name) : `${labelOf(name)}, ${direction}`;
}

/** The first sentence of the table's text; the others are for programmers. */
function hintOf({ says }: SetField, label: string): string | undefined {
  const [first = ''] = says.split(/(?<=\.)\s/);
  const said = first.toLowerCase().replace(/^the |\.$/g, '');
  return said === label.toLowerCase() ? undefined : first.replaceAll('`', '');
}
