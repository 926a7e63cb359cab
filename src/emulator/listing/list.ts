import * as z from 'zod';
import { HttpError } from '../../http/errors';
import { printable } from '../../http/faults';
import { type Field, type Fields, fieldOf, namesOf, readFilter } from './filter';

/** What a list is of. */
interface Listed<T> {
  /** The name of the array in the answer. */
  readonly name: string;
  readonly fields: Fields<T>;
  readonly render: (item: T) => unknown;
}

/**
 * The page of a list that a request's query (`q`, `sort`, `page`, `page_length`) asks for.
 * @param items oldest first.
 * @throws HttpError 400 `invalid_parameter` with everything that is wrong with the query.
 */
export function listPage<T>(
  items: readonly T[],
  query: unknown,
  { name, fields, render }: Listed<T>,
): object {
  const paging = readPaging(query);
  const filter = readFilter(paging.q, fields);
  const sorting = readSorting(paging.sort, fields);
  const faults = [
    ...paging.faults,
    ...(filter.ok ? [] : filter.faults.map((fault) => `q: ${fault}`)),
    ...(sorting.ok ? [] : sorting.faults.map((fault) => `sort: ${fault}`)),
  ];
  if (!filter.ok || !sorting.ok || faults.length > 0) {
    throw new HttpError(
      400,
      faults.map((description) => ({ code: 'invalid_parameter', description })),
    );
  }
  const found = filter.predicate ? items.filter(filter.predicate) : items;
  const { page, pageLength } = paging;
  const wanted: Page = { page, pageLength, total: found.length };
  return renderPage(name, wanted, pageOf(found, sorting.sorting, wanted).map(render));
}

/** A page of the stores' own orders costs the page, however long the list is. */
function pageOf<T>(items: readonly T[], sorting: Sorting<T>, { page, pageLength }: Page): readonly T[] {
  const start = (page - 1) * pageLength;
  if (sorting === 'newest') {
    const end = Math.max(items.length - start, 0);
    return items.slice(Math.max(end - pageLength, 0), end).reverse();
  }
  const sorted = sorting === 'oldest' ? items : items.toSorted(sorting);
  return sorted.slice(start, start + pageLength);
}

interface Page {
  /** From 1. */
  readonly page: number;
  readonly pageLength: number;
  /** How many there are on all pages. */
  readonly total: number;
}

/** The envelope of every v2 list. */
function renderPage(name: string, { page, pageLength, total }: Page, items: readonly unknown[]): object {
  return { page, page_length: pageLength, total, [name]: items };
}

/** The query of a list, with its defaults. What can't be read is in `faults`, one sentence each. */
interface Paging {
  readonly q: string;
  readonly sort: string;
  readonly page: number;
  readonly pageLength: number;
  readonly faults: readonly string[];
}

const MAX_PAGE_LENGTH = 10_000;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');
const count = (max: number) =>
  text
    .regex(/^\d*$/, { message: 'must be a whole number', abort: true })
    .transform((digits) => (digits === '' ? undefined : Number(digits)))
    .refine((number) => number === undefined || number >= 1, 'must be at least 1')
    .refine((number) => number === undefined || number <= max, `must be at most ${max}`);

const Parameters = z.record(z.string(), z.unknown());

/** Reads `q`, `sort`, `page` and `page_length`; an empty one is as good as none, and others are left alone. */
function readPaging(query: unknown): Paging {
  const given = Parameters.safeParse(query).data ?? {};
  const faults: string[] = [];
  const read = <Value>(name: string, schema: z.ZodType<Value>, otherwise: NonNullable<Value>) => {
    if (given[name] === undefined) return otherwise;
    const value = schema.safeParse(given[name]);
    faults.push(...(value.error?.issues ?? []).map(({ message }) => `${name}: ${message}.`));
    return value.data ?? otherwise;
  };
  return {
    page: read('page', count(Number.MAX_SAFE_INTEGER), 1),
    pageLength: read('page_length', count(MAX_PAGE_LENGTH), 10),
    q: read('q', text, ''),
    sort: read('sort', text, ''),
    faults,
  };
}

/** `oldest` and `newest` are orders that the stores keep; any other is made for each list. */
type Sorting<T> = 'oldest' | 'newest' | ((a: T, b: T) => number);

type ReadSorting<T> =
  | { readonly ok: true; readonly sorting: Sorting<T> }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `sort`: `field:asc` or `field:dsc`, several joined by commas. Without it, the newest come first. */
function readSorting<T>(text: string, fields: Fields<T>): ReadSorting<T> {
  const whole = text.trim();
  if (whole === '' || whole === 'created:dsc') return { ok: true, sorting: 'newest' };
  if (whole === 'created:asc') return { ok: true, sorting: 'oldest' };
  const faults: string[] = [];
  const comparisons = whole.split(',').map((key) => readKey(key.trim(), fields, faults));
  if (faults.length > 0) return { ok: false, faults };
  const sorting = (a: T, b: T) => {
    for (const compare of comparisons) {
      const order = compare(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
  return { ok: true, sorting };
}

function readKey<T>(key: string, fields: Fields<T>, faults: string[]): (a: T, b: T) => number {
  const [, name = '', direction] = /^([^:]+):(asc|dsc)$/.exec(key) ?? [];
  const field = fieldOf(fields, name);
  if (direction === undefined) faults.push(`write field:asc or field:dsc, several joined by commas.`);
  else if (!field) {
    faults.push(`${printable(name)} is not a field to sort by. Fields: ${namesOf(fields)}.`);
  }
  if (!field) return () => 0;
  const sign = direction === 'dsc' ? -1 : 1;
  return (a, b) => sign * compareValues(keyOf(field, a), keyOf(field, b));
}

function keyOf<T>(field: Field<T>, item: T): string | number | undefined {
  const value = field.of(item);
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'object') return value.join(', ').toLowerCase();
  return typeof value === 'string' ? value.toLowerCase() : value;
}

/** What is absent comes first, as the smallest. */
function compareValues(a: string | number | undefined, b: string | number | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  return a < b ? -1 : 1;
}
