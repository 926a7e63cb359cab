import { printable } from '../../http/faults';
import { type Pattern, parseQuery, type Query } from './query';

/** A field of a resource that lists can be filtered and sorted by. */
export type Field<T> =
  | { readonly kind: 'text'; readonly of: (item: T) => string | readonly string[] | undefined }
  | { readonly kind: 'number'; readonly of: (item: T) => number | undefined }
  | { readonly kind: 'time'; readonly of: (item: T) => Date | undefined };

/** The fields of a resource by their name on the wire. */
export interface Fields<T> {
  readonly named: Readonly<Record<string, Field<T>>>;
  /** Fields that have a name of the client's own behind a prefix, such as custom parameters. */
  readonly prefixed?: { readonly prefix: string; readonly field: (name: string) => Field<T> };
}

/** The field of this name, with or without `metadata.` before it. */
export function fieldOf<T>({ named, prefixed }: Fields<T>, name: string): Field<T> | undefined {
  const plain = name.replace(/^metadata\./, '');
  if (Object.hasOwn(named, plain)) return named[plain];
  if (!prefixed || !plain.startsWith(prefixed.prefix)) return undefined;
  return prefixed.field(plain.slice(prefixed.prefix.length));
}

/** The names, for a person who wrote another one. */
export function namesOf<T>({ named, prefixed }: Fields<T>): string {
  return [...Object.keys(named), ...(prefixed ? [`${prefixed.prefix}<name>`] : [])].join(', ');
}

type Predicate<T> = (item: T) => boolean;

type Filter<T> =
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

/**
 * Whether a text holds the pattern as whole words, in any letter case: `live` is in "Live show", not in "Alive"; `liv*`
 * is in both "live" and "liver". It takes time in proportion to the text for each piece, whatever the pattern.
 */
function holdsPattern(text: string, pattern: Pattern): boolean {
  const folded = text.toLowerCase();
  const pieces = pattern.map((piece) => piece.toLowerCase());
  if (pieces.every((piece) => piece === '')) return pieces.length > 1 || folded === '';
  const last = pieces.length - 1;
  let from = 0;
  for (const [index, piece] of pieces.entries()) {
    if (piece === '') continue;
    const end = findPiece(folded, piece, from, { opens: index === 0, closes: index === last });
    if (end === undefined) return false;
    from = end;
  }
  return true;
}

/** Where the first fitting occurrence ends: the earliest is always the one that leaves most for the rest. */
function findPiece(
  text: string,
  piece: string,
  from: number,
  whole: { opens: boolean; closes: boolean },
): number | undefined {
  for (let at = text.indexOf(piece, from); at !== -1; at = text.indexOf(piece, at + 1)) {
    const end = at + piece.length;
    const opens = !whole.opens || !(isWordPart(text, at - 1) && isWordPart(text, at));
    const closes = !whole.closes || !(isWordPart(text, end - 1) && isWordPart(text, end));
    if (opens && closes) return end;
  }
  return undefined;
}

function isWordPart(text: string, at: number): boolean {
  return /[\p{L}\p{N}]/u.test(text[at] ?? '');
}
