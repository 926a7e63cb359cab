import { HttpError } from '../../http/errors';
import type { Fields } from './fields';
import { readFilter } from './filter';
import { type Page, renderPage } from './list-wire';
import { readPaging } from './paging-wire';
import { readSorting, type Sorting } from './sorting';

/** What a list is of. */
export interface Listed<T> {
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
