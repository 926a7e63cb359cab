import { printable } from '../../http/faults';
import { type Field, type Fields, fieldOf, namesOf } from './fields';
import { holdsPattern } from './pattern';
import { type Pattern, parseQuery, type Query } from './query';

export type Predicate<T> = (item: T) => boolean;

export type Filter<T> =
  | { readonly ok: true; readonly predicate: Predicate<T> | undefined }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `q` for a resource: the items it asks for, or everything that is wrong with it. */
export function readFilter<T>(text: string, fields: Fields<T>): Filter<T> {
  const parsed = parseQuery(text);
  if (!parsed.ok) return { ok: false, faults: [parsed.fault] };
  if (!parsed.query) return { ok: true, predicate: undefined };
  const faults: string[] = [];
  const predicate = build(parsed.query, fields, faults);
  return faults.length === 0 ? { ok: true, predicate } : { ok: false, faults: [...new Set(faults)] };
}

function build<T>(query: Query, fields: Fields<T>, faults: string[]): Predicate<T> {
  if (query.kind === 'not') {
    const predicate = build(query.query, fields, faults);
    return (item) => !predicate(item);
  }
  if (query.kind === 'and' || query.kind === 'or') {
    const all = query.queries.map((part) => build(part, fields, faults));
    return query.kind === 'and'
      ? (item) => all.every((predicate) => predicate(item))
      : (item) => all.some((predicate) => predicate(item));
  }
  const field = fieldOf(fields, query.field);
  if (!field) {
    faults.push(`${printable(query.field)} is not a field to filter by. Fields: ${namesOf(fields)}.`);
    return () => false;
  }
  return query.kind === 'match' ? matches(field, query.pattern) : isWithin(field, query, faults);
}

function matches<T>(field: Field<T>, pattern: Pattern): Predicate<T> {
  return (item) => textsOf(field, item).some((text) => holdsPattern(text, pattern));
}

function textsOf<T>(field: Field<T>, item: T): readonly string[] {
  const value = field.of(item);
  if (value === undefined) return [];
  if (value instanceof Date) return [value.toISOString()];
  return typeof value === 'object' ? value : [String(value)];
}

function isWithin<T>(
  field: Field<T>,
  range: { field: string; from: string | undefined; to: string | undefined },
  faults: string[],
): Predicate<T> {
  const { from, to } = range;
  if (field.kind === 'text') {
    const [low, high] = [from?.toLowerCase(), to?.toLowerCase()];
    return (item) =>
      textsOf(field, item).some((text) => {
        const folded = text.toLowerCase();
        return (low === undefined || folded >= low) && (high === undefined || folded <= high);
      });
  }
  const read = field.kind === 'time' ? readTime : readNumber;
  const low = from === undefined ? -Infinity : read(from, 'first');
  const high = to === undefined ? Infinity : read(to, 'last');
  if (Number.isNaN(low) || Number.isNaN(high)) {
    const wanted = field.kind === 'time' ? 'ISO 8601 times' : 'numbers';
    faults.push(`the bounds of ${range.field} must be ${wanted}.`);
  }
  return (item) => {
    const value = field.of(item)?.valueOf();
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
