import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { type Fields, readFilter } from './filter';
import type { ItemList } from './item-store';
import type { Piece, Wanted } from './list-index';
import { readSorting, sortItems } from './sorting';

/** What a list is of. */
interface Listed<T> {
  /** The name of the array in the answer. */
  readonly name: string;
  readonly fields: Fields<T>;
  readonly render: (item: T) => unknown;
}

/** How many results of a `q` can be had, whatever the paging: the platform has this limit. */
const MOST_FOUND = 10_000;

/**
 * The page of a list that a request's query (`q`, `sort`, `page`, `page_length`) asks for.
 * @param list of a store, or few items, oldest first.
 * @throws HttpError 400 `invalid_parameter` with everything that is wrong with the query.
 */
export function listPage<T extends { readonly id: string }>(
  list: ItemList<T> | readonly T[],
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
  const { page, pageLength } = paging;
  const { condition, predicate } = filter;
  const most = condition ? MOST_FOUND : Number.POSITIVE_INFINITY;
  const start = (page - 1) * pageLength;
  const length = Math.max(Math.min(pageLength, most - start), 0);
  const wanted = { fields, q: paging.q, condition, sorting: sorting.sorting, start, length };
  const { total, items } =
    'index' in list ? pieceOfList(list, wanted) : pieceOf(predicate ? list.filter(predicate) : list, wanted);
  return renderPage(name, { page, pageLength, total: Math.min(total, most) }, items.map(render));
}

/** A page of the order that a store keeps costs the page, however long the list is. */
function pieceOfList<T extends { readonly id: string }>(list: ItemList<T>, wanted: Wanted<T>): Piece<T> {
  const isKept = wanted.condition === undefined && typeof wanted.sorting === 'string';
  return isKept ? pieceOf(list.items, wanted) : list.index.find(wanted);
}

function pieceOf<T>(
  items: readonly T[],
  { sorting, start, length }: Pick<Wanted<T>, 'sorting' | 'start' | 'length'>,
): Piece<T> {
  const total = items.length;
  if (sorting === 'newest') {
    const end = Math.max(total - start, 0);
    return { total, items: items.slice(Math.max(end - length, 0), end).reverse() };
  }
  const sorted = sorting === 'oldest' ? items : sortItems(items, sorting);
  return { total, items: sorted.slice(start, start + length) };
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

export const MAX_PAGE_LENGTH = 10_000;
/** Of a page, unless the query says otherwise. */
export const PAGE_LENGTH = 10;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');
const count = (max: number) =>
  text
    .regex(/^\d*$/, { message: 'must be a whole number from 1', abort: true })
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
    pageLength: read('page_length', count(MAX_PAGE_LENGTH), PAGE_LENGTH),
    q: read('q', text, ''),
    sort: read('sort', text, ''),
    faults,
  };
}
