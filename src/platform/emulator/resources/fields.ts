import * as z from 'zod';
import { wireTime } from '../clock';
import { field, objectOf, objectParams, text } from '../json-body';
import type { FieldKind } from '../listing/filter';
import type { StoredFile } from '../uploads/uploads';

/** A field that clients set. */
export interface SetField<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema;
  readonly says: string;
  /** The value when the field is left out; without a default that is `null`, which may then also be sent. */
  readonly default?: z.output<Schema>;
  readonly required?: true;
  /** Set when the resource is made, and never changed. */
  readonly fixed?: true;
  /** No answer has it. */
  readonly unseen?: true;
  readonly filter?: FieldKind;
  /** The field that lists use where it is null: the time of the creation. */
  readonly otherwise?: 'created';
}

/** A field that the platform sets. */
export interface ShownField {
  readonly schema: z.ZodType;
  readonly says: string;
  readonly filter?: FieldKind;
  /** The answer of the call that makes the resource has it, and no other. */
  readonly once?: true;
  /** No answer has it: lists are filtered by it. */
  readonly unseen?: true;
}

export type SetFields = Readonly<Record<string, SetField>>;
export type ShownFields = Readonly<Record<string, ShownField>>;

export const row = <Schema extends z.ZodType, const Options extends object = object>(
  schema: Schema,
  says: string,
  options?: Options,
) => ({ schema, says, ...options }) as { schema: Schema; says: string } & Options;

/** The forms of the values that these fields have once they are set. */
export function valueForms(fields: SetFields): Record<string, z.ZodType> {
  const forms = Object.entries<SetField>(fields).map(([name, field]) => {
    return [name, field.required || 'default' in field ? field.schema : field.schema.nullable()] as const;
  });
  return Object.fromEntries(forms);
}

type ValueOf<F extends SetField> = F extends { required: true } | { default: unknown }
  ? z.output<F['schema']>
  : z.output<F['schema']> | null;

export type ValuesOf<F extends SetFields> = { readonly [Name in keyof F]: ValueOf<F[Name]> };

export type GivenOf<F extends SetFields> = {
  readonly [Name in keyof F]?: z.output<F[Name]['schema']> | null | undefined;
};

export const list = <Item extends z.ZodType>(item: Item, max: number) =>
  z.array(item, 'must be an array').max(max, `has more than ${max} entries`);

const MAX_NAME_LENGTH = 200;
const hasGoodNames = (named: object) =>
  Object.keys(named).every((name) => name !== '' && name.length <= MAX_NAME_LENGTH);
const BAD_NAME = `has a name that is empty or longer than ${MAX_NAME_LENGTH} characters`;

export const CustomParams = z
  .record(z.string(), text(4000), 'must be an object whose values are strings')
  .refine(hasGoodNames, BAD_NAME)
  .refine((params) => Object.keys(params).length <= 100, 'has more than 100 entries');

/** Flat, as a deep value could not be written again. */
export const FlatObject = z
  .record(
    z.string(),
    z.union(
      [text(4000), z.number(), z.boolean(), z.null()],
      'must be a string of at most 4000 characters, a number, true, false or null',
    ),
    'must be an object',
  )
  .refine(hasGoodNames, BAD_NAME);

const MAX_DEPTH = 20;

/** An object of any content. Its depth has a limit, as a deeper one could not be written again. */
export const FreeObject = z
  .record(z.string(), z.unknown(), 'must be an object')
  .refine((value) => depthOf(value, MAX_DEPTH) <= MAX_DEPTH, `is nested more than ${MAX_DEPTH} levels deep`);

function depthOf(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (most < 0) return Number.POSITIVE_INFINITY;
  let deepest = 0;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depthOf(inner, most - 1));
  return deepest + 1;
}

/** A moment in ISO 8601 with its offset, kept in UTC. */
export const Moment = z
  .string('must be a string')
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/, {
    error: 'must be a time in ISO 8601 with its offset, such as 2030-01-31T12:00:00Z',
    abort: true,
  })
  .refine((written) => isDay(written.slice(0, 10)) && !Number.isNaN(Date.parse(written)), {
    error: 'is no moment that exists',
    abort: true,
  })
  .transform((written) => wireTime(new Date(written)))
  // In UTC it may be in another year, and other years have more digits.
  .refine((time) => isYear(time), 'must be in the years 1 to 9999 in UTC');

/** Whether a day such as 2030-01-31 is in the calendar: `Date` takes the 31st of February for one of March. */
function isDay(written: string): boolean {
  const day = new Date(`${written}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && isYear(written) && day.toISOString().startsWith(written);
}

function isYear(written: string): boolean {
  return /^(?!0000)\d{4}-/.test(written);
}

/** A day in UTC. */
export const Day = z
  .string('must be a string')
  .regex(/^\d{4}-\d\d-\d\d$/, { error: 'must be a day such as 2030-01-31', abort: true })
  .refine(isDay, 'is no day that exists');

const TIMECODE = /^(\d{2}):([0-5]\d):([0-5]\d)(?:\.(\d{3}))?$/;

/** @param noText what is wrong with a value that is no text. */
export const timecode = (noText: string) =>
  z.string(noText).regex(TIMECODE, 'must be a time as HH:MM:SS.mmm');
export const Timecode = timecode('must be a string');

export function secondsOf(timecode: string): number {
  const [, hours, minutes, seconds, thousandths = '0'] = TIMECODE.exec(timecode) ?? [];
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(thousandths) / 1000;
}

export const WebAddress = text(2000).refine(
  (address) => URL.canParse(address) && /^https?:[\x21-\x7e]+$/i.test(address),
  'must be an absolute address with https or http',
);

export const MediaType = text(200).regex(
  /^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/,
  'must be a media type such as video/mp4',
);

export const WholeNumber = (most: number) =>
  z.int('must be a whole number').min(0, 'must not be negative').max(most, `must be at most ${most}`);

export const Choice = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, `must be ${spoken(values)}`);

/** Values as a part of a sentence, as `a, b or c`. */
export function spoken(values: readonly string[], or: 'or' | 'and' = 'or'): string {
  return values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} ${or} ${values.at(-1)}`;
}

export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_whole, letter: string) => letter.toUpperCase());
}

export const Flag = z.boolean('must be true or false');

export const Text = z.string('must be a string');
export const Amount = z.number('must be a number');
export const Id = Text.regex(/^[A-Za-z0-9]{8}$/, 'must be 8 letters and digits');
/** In memory a date, and a text in a saved state. */
const file: z.ZodType<unknown> = z.looseObject({ path: Text, size: Amount, md5: Text }, objectParams);
export const KeptFile = file as z.ZodType<StoredFile>;
export const Time = z.coerce.date<Date>('must be a time such as 2030-01-01T00:00:00.000Z');

export const Tag = text(200).min(1, 'is empty');

export const Reference = objectOf({ id: field(text(200).min(1, 'is empty'), 'Its id.') });

export const SITE = '/v2/sites/:siteId';

export const TAGS = row(list(Tag, 100), 'Words to find it by.', { default: [], filter: 'text' });

export const CUSTOM_PARAMS = row(
  CustomParams,
  'Names and values of your own. An update replaces all of them: send the ones to keep as well.',
  { default: {} },
);
