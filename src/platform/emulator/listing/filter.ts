import { nearest, printable } from '../../../http/faults';
import { parseQuery, type Query } from './query';
import { foldCase, foldLetters, hasPattern, wordsOf } from './words';

/** How lists are filtered and sorted by a field; `words` is a text that people search by its words. */
export type FieldKind = 'text' | 'words' | 'number' | 'time';

/** A field of a resource that lists can be filtered and sorted by. */
export interface Field<T> {
  readonly kind: FieldKind;
  /** A text or several, a number, or a time as a date or as it is written. An absent one is null or undefined. */
  readonly of: (item: T) => unknown;
}

/** The fields of a resource by their name on the wire. */
export interface Fields<T> {
  readonly named: Readonly<Record<string, Field<T>>>;
  /** Fields that have a name of the client's own after a prefix, such as custom parameters. */
  readonly prefixed?: { readonly prefix: string; readonly field: (name: string) => Field<T> };
}

/** The field of this name, with or without `metadata.` before it. */
export function fieldOf<T>({ named, prefixed }: Fields<T>, written: string): Field<T> | undefined {
  const name = plainName(written);
  if (Object.hasOwn(named, name)) return named[name];
  return prefixed && name.startsWith(prefixed.prefix)
    ? prefixed.field(name.slice(prefixed.prefix.length))
    : undefined;
}

export function plainName(written: string): string {
  return written.replace(/^metadata\./, '');
}

/** For a name that no field has: the field that was most likely meant, or all of them. */
export function hintOfFields<T>({ named, prefixed }: Fields<T>, written: string): string {
  const names = Object.keys(named);
  const plain = plainName(written);
  const near = nearest(plain, names);
  if (near !== undefined) return `Did you mean ${near}?`;
  const [head = '', own] = plain.split(/(?<=\.)(.*)/);
  if (prefixed && own && nearest(head, [prefixed.prefix]))
    return `Did you mean ${printable(`${prefixed.prefix}${own}`)}?`;
  return `Fields: ${[...names, ...(prefixed ? [`${prefixed.prefix}<name>`] : [])].join(', ')}.`;
}

export function isNumeric({ kind }: Field<never>): boolean {
  return kind === 'number' || kind === 'time';
}

/** A number, or a time in milliseconds. An invalid number or date counts as absent. */
export function numericOf<T>(field: Field<T>, item: T): number | undefined {
  const value = field.of(item) ?? Number.NaN;
  const number = field.kind === 'time' ? new Date(value as string | Date).getTime() : Number(value);
  return Number.isNaN(number) ? undefined : number;
}

/** The texts of a field; numbers and times as they are written. */
export function textsOf<T>(field: Field<T>, item: T): readonly string[] {
  if (!isNumeric(field)) return [field.of(item) ?? []].flat().map(String);
  const value = numericOf(field, item);
  if (value === undefined) return [];
  return [field.kind === 'time' ? new Date(value).toISOString() : String(value)];
}

type Predicate<T> = (item: T) => boolean;

type Filter<T> =
  | {
      readonly ok: true;
      /** Undefined when everything is requested. */
      readonly predicate: Predicate<T> | undefined;
    }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `q` for a resource: which items it requests, or everything that is wrong with it. */
export function readFilter<T>(text: string, fields: Fields<T>): Filter<T> {
  const parsed = parseQuery(text);
  if (!parsed.ok) return { ok: false, faults: [parsed.fault] };
  const faults: string[] = [];
  const predicate = parsed.query && predicateOf(parsed.query, fields, faults);
  return faults.length > 0 ? { ok: false, faults: [...new Set(faults)] } : { ok: true, predicate };
}

function predicateOf<T>(query: Query, fields: Fields<T>, faults: string[]): Predicate<T> {
  if (query.kind === 'not') {
    const part = predicateOf(query.query, fields, faults);
    return (item) => !part(item);
  }
  if (query.kind === 'and' || query.kind === 'or') {
    const parts = query.queries.map((part) => predicateOf(part, fields, faults));
    return query.kind === 'and'
      ? (item) => parts.every((part) => part(item))
      : (item) => parts.some((part) => part(item));
  }
  const field = fieldOf(fields, query.field);
  if (!field) {
    const hint = hintOfFields(fields, query.field);
    faults.push(`${printable(query.field)} is not a field to filter by. ${hint}`);
    return () => false;
  }
  if (query.kind === 'range' && isNumeric(field)) return numericRange(field, query, faults);
  const matches = query.kind === 'range' ? textRange(query) : textMatch(field, query);
  return (item) => textsOf(field, item).some(matches);
}

function textMatch<T>(field: Field<T>, { pattern, isQuoted }: Extract<Query, { kind: 'match' }>) {
  const byWords = field.kind === 'words';
  const fold = byWords ? foldLetters : foldCase;
  const pieces = pattern.map(fold);
  const words = byWords && pieces.length === 1 ? wordsOf(pieces[0] ?? '') : [];
  if (words.length === 0) return (text: string) => hasPattern(fold(text), pieces);
  // The words of an unquoted text may be in any order.
  if (!isQuoted || words.length === 1)
    return (text: string) => {
      const folded = fold(text);
      return words.every((word) => hasPattern(folded, [word]));
    };
  const phrase = ` ${words.join(' ')} `;
  return (text: string) => ` ${wordsOf(fold(text)).join(' ')} `.includes(phrase);
}

type Range = Extract<Query, { kind: 'range' }>;

function textRange({ from, to }: Range) {
  const [low, high] = [from, to].map((bound) => (bound === undefined ? undefined : foldCase(bound)));
  return (text: string) => {
    const folded = foldCase(text);
    return (low === undefined || folded >= low) && (high === undefined || folded <= high);
  };
}

/** Both bounds belong to the range. */
function numericRange<T>(field: Field<T>, range: Range, faults: string[]): Predicate<T> {
  const read = field.kind === 'time' ? readTime : readNumber;
  const low = range.from === undefined ? Number.NEGATIVE_INFINITY : read(range.from, 'first');
  const high = range.to === undefined ? Number.POSITIVE_INFINITY : read(range.to, 'last');
  if (Number.isNaN(low) || Number.isNaN(high)) {
    const wanted = field.kind === 'time' ? 'ISO 8601 times' : 'numbers';
    faults.push(`the bounds of ${printable(range.field)} must be ${wanted}, or * for none.`);
  }
  return (item) => {
    const value = numericOf(field, item);
    return value !== undefined && value >= low && value <= high;
  };
}

function readNumber(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text);
}

/** A date without a time means the whole day. */
function readTime(text: string, end: 'first' | 'last'): number {
  if (!/^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text)) return Number.NaN;
  const time = Date.parse(text);
  return end === 'last' && text.length === 10 ? time + 24 * 60 * 60 * 1000 - 1 : time;
}
