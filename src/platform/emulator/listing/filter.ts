import { nearest, printable } from '../../../http/faults';
import { parseQuery, type Query } from './query';
import { type TextMatch, textMatch } from './text-match';
import { foldCase, holdsPattern } from './words';

/** A field of a resource that lists can be filtered and sorted by. */
export type Field<T> = TextField<T> | NumericField<T>;

interface Changing {
  /**
   * Whether its value may change without `ItemStore.changed` being called, as with the clock. It is then read of every
   * item for each list that it filters or sorts.
   */
  readonly isComputed?: boolean;
}

export interface TextField<T> extends Changing {
  readonly kind: 'text';
  readonly of: (item: T) => string | readonly string[] | undefined;
  /** Whether words are found that are near the asked ones, as in a search by people. */
  readonly near?: boolean;
}

interface NumberField<T> extends Changing {
  readonly kind: 'number';
  readonly of: (item: T) => number | undefined;
}

interface TimeField<T> extends Changing {
  readonly kind: 'time';
  readonly of: (item: T) => Date | undefined;
}

export type NumericField<T> = NumberField<T> | TimeField<T>;

/** The fields of a resource by their name on the wire. One object for all requests: indexes are kept for it. */
export interface Fields<T> {
  readonly named: Readonly<Record<string, Field<T>>>;
  /** Fields that have a name of the client's own behind a prefix, such as custom parameters. */
  readonly prefixed?: { readonly prefix: string; readonly field: (name: string) => Field<T> };
}

/** A field, and its name without `metadata.` before it. */
interface FoundField<T> {
  readonly name: string;
  readonly field: Field<T>;
}

/** The field of this name, with or without `metadata.` before it. */
export function fieldOf<T>({ named, prefixed }: Fields<T>, written: string): FoundField<T> | undefined {
  const name = written.replace(/^metadata\./, '');
  const field = Object.hasOwn(named, name) ? named[name] : undefined;
  if (field) return { name, field };
  if (!prefixed || !name.startsWith(prefixed.prefix)) return undefined;
  return { name, field: prefixed.field(name.slice(prefixed.prefix.length)) };
}

/** For a person who wrote a name that no field has: the one that was most likely meant, or all. */
export function hintOfFields<T>({ named, prefixed }: Fields<T>, written: string): string {
  const names = Object.keys(named);
  const plain = written.replace(/^metadata\./, '');
  const near = nearest(plain, names);
  if (near !== undefined) return `Did you mean ${near}?`;
  const [head = '', own] = plain.split(/(?<=\.)(.*)/);
  if (prefixed && own && nearest(head, [prefixed.prefix]))
    return `Did you mean ${printable(`${prefixed.prefix}${own}`)}?`;
  return `Fields: ${[...names, ...(prefixed ? [`${prefixed.prefix}<name>`] : [])].join(', ')}.`;
}

/** The texts of a field; for numbers and times as they are written. */
export function textsOf<T>(field: Field<T>, item: T): readonly string[] {
  if (field.kind !== 'text') {
    const value = numericOf(field, item);
    if (value === undefined) return [];
    return [field.kind === 'time' ? new Date(value).toISOString() : String(value)];
  }
  const value = field.of(item);
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

/** A number, or a time in milliseconds. What is none of both is as good as absent. */
export function numericOf<T>(field: NumericField<T>, item: T): number | undefined {
  const value = field.of(item)?.valueOf();
  return value === undefined || Number.isNaN(value) ? undefined : value;
}

/** What `q` asks for, of the fields of a resource. */
export type Condition<T> =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Condition<T>[] }
  | { readonly kind: 'not'; readonly part: Condition<T> }
  | { readonly kind: 'text'; readonly name: string; readonly field: TextField<T>; readonly match: TextMatch }
  | {
      readonly kind: 'range';
      readonly name: string;
      readonly field: NumericField<T>;
      readonly low: number;
      readonly high: number;
    }
  | { readonly kind: 'value'; readonly field: NumericField<T>; readonly holds: (item: T) => boolean };

type Predicate<T> = (item: T) => boolean;

type Filter<T> =
  | {
      readonly ok: true;
      /** Undefined when everything is asked for. */
      readonly condition: Condition<T> | undefined;
      readonly predicate: Predicate<T> | undefined;
    }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `q` for a resource: the items it asks for, or everything that is wrong with it. */
export function readFilter<T>(text: string, fields: Fields<T>): Filter<T> {
  const parsed = parseQuery(text);
  if (!parsed.ok) return { ok: false, faults: [parsed.fault] };
  if (!parsed.query) return { ok: true, condition: undefined, predicate: undefined };
  const faults: string[] = [];
  const condition = conditionOf(parsed.query, fields, faults, true);
  if (faults.length > 0) return { ok: false, faults: [...new Set(faults)] };
  return { ok: true, condition, predicate: predicateOf(condition) };
}

/**
 * @param isLenient whether near words count. Under NOT they don't: an item must not go missing because its title
 *   resembles a word.
 */
function conditionOf<T>(query: Query, fields: Fields<T>, faults: string[], isLenient: boolean): Condition<T> {
  if (query.kind === 'not') return { kind: 'not', part: conditionOf(query.query, fields, faults, false) };
  if (query.kind === 'and' || query.kind === 'or') {
    const parts = query.queries.map((part) => conditionOf(part, fields, faults, isLenient));
    return { kind: query.kind, parts };
  }
  const found = fieldOf(fields, query.field);
  if (!found) {
    const name = printable(query.field);
    faults.push(`${name} is not a field to filter by. ${hintOfFields(fields, query.field)}`);
    return { kind: 'or', parts: [] };
  }
  const { name, field } = found;
  if (field.kind !== 'text') {
    if (query.kind === 'match') return { kind: 'value', field, holds: isWritten(field, query) };
    return { kind: 'range', name, field, ...boundsOf(field, query, faults) };
  }
  const comparison = { isNear: field.near ?? false, isLenient };
  const match = query.kind === 'match' ? textMatch(query, comparison) : isBetween(query);
  return { kind: 'text', name, field, match };
}

/** Whether an item meets a condition. */
export function predicateOf<T>(condition: Condition<T>): Predicate<T> {
  switch (condition.kind) {
    case 'value':
      return condition.holds;
    case 'text':
      return (item) => textsOf(condition.field, item).some(condition.match.holds);
    case 'range': {
      const { field, low, high } = condition;
      return (item) => {
        const value = numericOf(field, item);
        return value !== undefined && value >= low && value <= high;
      };
    }
    case 'not': {
      const predicate = predicateOf(condition.part);
      return (item) => !predicate(item);
    }
    case 'and': {
      const all = condition.parts.map(predicateOf);
      return (item) => all.every((predicate) => predicate(item));
    }
    case 'or': {
      const all = condition.parts.map(predicateOf);
      return (item) => all.some((predicate) => predicate(item));
    }
  }
}

/** Whether a number or a time, as it is written, holds a pattern. */
function isWritten<T>(field: NumericField<T>, { pattern }: Extract<Query, { kind: 'match' }>): Predicate<T> {
  const pieces = pattern.map(foldCase);
  return (item) => textsOf(field, item).some((text) => holdsPattern(foldCase(text), pieces));
}

type Range = Extract<Query, { kind: 'range' }>;

function isBetween({ from, to }: Range): TextMatch {
  const low = from === undefined ? undefined : foldCase(from);
  const high = to === undefined ? undefined : foldCase(to);
  const holds = (text: string) => {
    const folded = foldCase(text);
    return (low === undefined || folded >= low) && (high === undefined || folded <= high);
  };
  return { holds, words: [], decidedBy: 'text' };
}

/** Both bounds belong to the range. */
function boundsOf<T>(
  { kind }: NumericField<T>,
  { field, from, to }: Range,
  faults: string[],
): { low: number; high: number } {
  const read = kind === 'time' ? readTime : readNumber;
  const low = from === undefined ? -Infinity : read(from, 'first');
  const high = to === undefined ? Infinity : read(to, 'last');
  if (Number.isNaN(low) || Number.isNaN(high)) {
    const wanted = kind === 'time' ? 'ISO 8601 times' : 'numbers';
    faults.push(`the bounds of ${printable(field)} must be ${wanted}, or * for none.`);
  }
  return { low, high };
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
