import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { urlencoded } from 'express';
import * as z from 'zod';
import { HttpError } from '../../../../http/errors';
import { unwrapped } from '../../../../http/faults';
import { Moment, Reference, type SetField, type SetFields, WebAddress } from '../../resources/fields';
import { FormBody } from '../forms';

/** Reads a form of a resource, which may hold as much as a JSON body of the management API, percent-encoded. */
export const readResourceForm: RequestHandler = urlencoded({
  extended: false,
  limit: '1mb',
  parameterLimit: 5000,
});

/** How a value is asked for. */
type Kind =
  | { readonly kind: 'text' | 'long' | 'words' | 'pairs' | 'json' | 'moment' | 'address' | 'flag' | 'id' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'number'; readonly whole: boolean; readonly least?: number; readonly most?: number }
  | { readonly kind: 'group'; readonly fields: Readonly<Record<string, z.ZodType>> };

/** A text that may be longer than this is asked for in several lines. */
const LONG = 2000;

export function kindOf(schema: z.ZodType): Kind {
  if (schema === Moment) return { kind: 'moment' };
  if (schema === WebAddress) return { kind: 'address' };
  if (schema === Reference) return { kind: 'id' };
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodEnum) return { kind: 'choice', values: bare.options.map(String) };
  if (bare instanceof z.ZodBoolean) return { kind: 'flag' };
  if (bare instanceof z.ZodNumber) {
    const whole = bare.format !== null;
    return { kind: 'number', whole, ...limitsOf(bare.minValue, bare.maxValue) };
  }
  if (bare instanceof z.ZodArray && bare.element instanceof z.ZodString) return { kind: 'words' };
  if (bare instanceof z.ZodRecord && bare.valueType instanceof z.ZodString) return { kind: 'pairs' };
  if (bare instanceof z.ZodObject) return { kind: 'group', fields: bare.shape as Record<string, z.ZodType> };
  if (bare instanceof z.ZodString) return { kind: (bare.maxLength ?? 0) > LONG ? 'long' : 'text' };
  return { kind: 'json' };
}

function limitsOf(least: number | null, most: number | null) {
  const isTold = (limit: number | null) => limit !== null && Number.isSafeInteger(limit);
  return { ...(isTold(least) && { least: least ?? 0 }), ...(isTold(most) && { most: most ?? 0 }) };
}

const SPELLED: Readonly<Record<string, string>> = {
  params: 'parameters',
  srclang: 'language code',
  config: 'configuration',
  url: 'address',
  adschedule: 'advertising schedule',
};

/** What a form calls a field, by the name on the wire: `publish_start_date` is Publish start date. */
export function labelOf(path: string): string {
  const words = path
    .split(/[._]/)
    .map((word) => SPELLED[word] ?? word)
    .join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The form that changes these values of fields. */
export function formOf(fields: SetFields, values: Readonly<Record<string, unknown>>): FormBody {
  const texts: Record<string, unknown> = {};
  for (const [name, { schema }] of Object.entries(fields)) fill(texts, name, schema, values[name]);
  const filled = new FormBody(texts);
  const was = Object.entries(fields).map(([name, { schema }]) => `${name} ${digest(filled, name, schema)}`);
  return new FormBody({ ...texts, [WAS]: was.join('\n') });
}

/** The field of a form that tells what the others began with. */
export const WAS = 'was';

function fill(texts: Record<string, unknown>, name: string, schema: z.ZodType, value: unknown): void {
  const asked = kindOf(schema);
  if (value === null || value === undefined) return;
  if (asked.kind === 'group') {
    const within = value as Readonly<Record<string, unknown>>;
    for (const [inner, one] of Object.entries(asked.fields))
      fill(texts, `${name}.${inner}`, one, within[inner]);
  } else if (asked.kind === 'pairs') {
    texts[`${name}.name`] = Object.keys(value);
    texts[`${name}.value`] = Object.values(value);
  } else if (asked.kind === 'words') texts[name] = (value as readonly string[]).join('\n');
  else if (asked.kind === 'moment') texts[name] = new Date(String(value)).toISOString().slice(0, 19);
  else if (asked.kind === 'flag') texts[name] = value === true ? 'on' : '';
  else if (asked.kind === 'id') texts[name] = String((value as { readonly id: unknown }).id);
  else if (asked.kind === 'json')
    texts[name] = Object.keys(value).length === 0 ? '' : JSON.stringify(value, null, 2);
  else texts[name] = String(value);
}

/** The names and values that a form has, without the rows that were left empty. */
export function pairsOf(sent: FormBody, name: string): (readonly [string, string])[] {
  const values = sent.texts(`${name}.value`);
  return sent
    .texts(`${name}.name`)
    .map((key, place) => [key.trim(), lines(values[place] ?? '')] as const)
    .filter(([key, value]) => key !== '' || value.trim() !== '');
}

/** Browsers send the ends of lines in their own way. */
export function lines(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/** What stands in a field of a form, in short: a field that still says what it began with is not sent. */
function digest(sent: FormBody, name: string, schema: z.ZodType): string {
  return createHash('sha256')
    .update(JSON.stringify(standing(sent, name, schema)))
    .digest('base64url')
    .slice(0, 12);
}

function standing(sent: FormBody, name: string, schema: z.ZodType): unknown {
  const asked = kindOf(schema);
  if (asked.kind === 'group')
    return Object.entries(asked.fields).map(([inner, one]) => standing(sent, `${name}.${inner}`, one));
  return asked.kind === 'pairs' ? pairsOf(sent, name) : lines(sent.text(name)).trim();
}

interface ReadFields {
  /** As a body of the API has it. Of a form that changes something, what was left as it was is not in it. */
  readonly given: Readonly<Record<string, unknown>>;
  /** What no body can hold. */
  readonly problems: readonly string[];
}

/** What a form asks for. Everything else about it is checked by the call that it is for. */
export function readFields(fields: SetFields, sent: FormBody): ReadFields {
  const before = new Map(
    lines(sent.text(WAS))
      .split('\n')
      .map((line) => line.split(' ') as [string, string | undefined]),
  );
  const problems: string[] = [];
  const given = Object.entries(fields).flatMap(([name, field]) => {
    if (!isSent(sent, name, field.schema)) return [];
    if (before.get(name) === digest(sent, name, field.schema)) return [];
    const value = askedValue(sent, name, field.schema, problems);
    return [[name, isEmpty(value) ? emptied(field) : value] as const];
  });
  return { given: Object.fromEntries(given), problems };
}

/** Whether a form had the field at all. A box that is not ticked is not sent. */
function isSent(sent: FormBody, name: string, schema: z.ZodType): boolean {
  const asked = kindOf(schema);
  if (asked.kind === 'group')
    return Object.entries(asked.fields).some(([inner, one]) => isSent(sent, `${name}.${inner}`, one));
  return asked.kind === 'flag' || sent.has(asked.kind === 'pairs' ? `${name}.name` : name);
}

/** What a field becomes that was emptied. A number that is needed is refused as no number. */
function emptied(field: SetField): unknown {
  if (!('default' in field)) return null;
  return typeof field.default === 'object' ? field.default : '';
}

/** `undefined` for what was left empty. */
function askedValue(sent: FormBody, name: string, schema: z.ZodType, problems: string[]): unknown {
  const asked = kindOf(schema);
  const text = lines(sent.text(name)).trim();
  switch (asked.kind) {
    case 'group': {
      const values = Object.entries(asked.fields).map(
        ([inner, one]) =>
          [inner, askedValue(sent, `${name}.${inner}`, one, problems), kindOf(one).kind] as const,
      );
      // A choice alone says nothing.
      const says = values.some(([, value, kind]) => kind !== 'choice' && !isEmpty(value));
      return says ? Object.fromEntries(values.filter(([, value]) => value !== undefined)) : undefined;
    }
    case 'pairs': {
      const given = pairsOf(sent, name);
      const names = given.map(([key]) => key);
      if (new Set(names).size < names.length) problems.push(`${labelOf(name)} has a name twice.`);
      return Object.fromEntries(given);
    }
    case 'words':
      return text.split('\n').flatMap((word) => word.trim() || []);
    case 'json':
      return text === '' ? {} : readJson(text, name, problems);
    case 'flag':
      return text === 'on';
    case 'number':
      return text === '' ? undefined : Number(text);
    case 'moment':
      return text === '' ? undefined : momentOf(text);
    case 'id':
      return text === '' ? undefined : { id: text };
    case 'text':
    case 'long':
      return text;
    default:
      return text === '' ? undefined : text;
  }
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === '') return true;
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Browsers send no offset: what they ask for is the platform's time, UTC. */
function momentOf(text: string): string {
  return /T\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(text) ? `${text}Z` : text;
}

function readJson(text: string, name: string, problems: string[]): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const [, at] = /at position (\d+)/.exec(String(thrown)) ?? [];
    const before = text.slice(0, at === undefined ? text.length : Number(at)).split('\n');
    const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    problems.push(
      `${labelOf(name)} is not valid JSON: look at ${place}. Names and texts stand in double quotes.`,
    );
    return {};
  }
}

/** What a call says of a field, or of two. */
const FIELD_FAULT = /^(?:(?:metadata|upload|relationships)\.)?([a-z][\w.-]*(?: and [a-z_]+)?): (.*)$/s;
const entry = (_path: string, index: string) => `.entry ${Number(index) + 1}`;

/**
 * What a call says against what a form sent, in the words of the form.
 * @throws what is no answer to that.
 */
function problemsOf(thrown: unknown): readonly string[] {
  if (!(thrown instanceof HttpError) || thrown.status === 404 || thrown.status >= 500) throw thrown;
  return thrown.problems.map(({ description }) => {
    const [, paths, says] = FIELD_FAULT.exec(description) ?? [];
    const labels = paths?.split(' and ').map((path) => labelOf(path.replaceAll(/\.(\d+)\b/g, entry)));
    const sentence = labels === undefined ? description : `${labels.join(' and ')} ${says}`;
    return /[.?!]$/.test(sentence) ? sentence : `${sentence}.`;
  });
}

/** Makes a change unless something is wrong already, and answers what is wrong. @throws what is no fault of the form. */
export async function attempt(
  problems: readonly string[],
  change: () => unknown,
): Promise<readonly string[]> {
  if (problems.length > 0) return problems;
  try {
    await change();
    return [];
  } catch (thrown) {
    return problemsOf(thrown);
  }
}
