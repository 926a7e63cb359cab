import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { printable } from '../../../http/faults';
import { queryNumber, queryText } from '../json-body';
import {
  type Field,
  type Fields,
  fieldOf,
  hintOfFields,
  isNumeric,
  numericOf,
  plainName,
  readFilter,
  textsOf,
} from './filter';

export interface Window {
  readonly offset: number;
  readonly limit: number;
}

/** The platform's limit of results of a `q`, for any paging. */
const MOST_FOUND = 10_000;

/**
 * @param items oldest first.
 * @param query of a request: `q`, `sort`, `page`, `page_length`. @param window replaces the page, by offsets.
 * @throws HttpError 400 `invalid_parameter` with every fault of the query.
 */
export function listPage<T>(
  items: readonly T[],
  query: unknown,
  name: string,
  fields: Fields<T>,
  render: (item: T) => unknown,
  window?: Window,
): Readonly<Record<string, unknown>> {
  const { page, pageLength, q, sort, faults } = readPaging(query);
  const { predicate, faults: filterFaults } = readFilter(q, fields);
  const { keys, faults: orderFaults } = readOrder(sort, fields);
  faults.push(...filterFaults.map((fault) => `q: ${fault}`), ...orderFaults.map((fault) => `sort: ${fault}`));
  const problems = faults.map((description) => ({ code: 'invalid_parameter', description }));
  if (problems.length > 0) throw new HttpError(400, problems);
  const found = predicate
    ? sortedBy(keys, items.filter(predicate)).slice(0, MOST_FOUND)
    : sortedBy(keys, items);
  const { offset, limit } = window ?? { offset: (page - 1) * pageLength, limit: pageLength };
  const shown = found.slice(offset, offset + limit);
  return { page, page_length: pageLength, total: found.length, [name]: shown.map(render) };
}

const MAX_PAGE_LENGTH = 10_000;
const PAGE_LENGTH = 10;

export const ListQuery = z.object({
  q: queryText.optional().meta({
    description:
      'Which to list: `field: word`, `field: "several words"` or `field: [from TO to]`, joined by `AND`, `OR`, `NOT` and parentheses. `*` matches any text, and a backslash takes the next character as it is.',
  }),
  sort: queryText.optional().meta({
    description:
      'The order: `field:asc` or `field:dsc`, several joined by commas; without it, `created:dsc`. The fields are those of `q`.',
  }),
  page: queryNumber('The page, from 1.', Number.MAX_SAFE_INTEGER, 1),
  page_length: queryNumber('How many a page has at most.', MAX_PAGE_LENGTH, PAGE_LENGTH),
});

/** The valid parameters, even if others are wrong, so that all faults are reported: a sentence for each. */
function readPaging(query: unknown) {
  const given = { ...(query as Readonly<Record<string, unknown>>) };
  const parsed = ListQuery.safeParse(given);
  const faults = (parsed.error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}.`);
  const { q = '', sort = '' } = parsed.data ?? {
    q: queryText.safeParse(given.q).data,
    sort: queryText.safeParse(given.sort).data,
  };
  const { page = 1, page_length: pageLength = PAGE_LENGTH } = parsed.data ?? {};
  return { q, sort, page, pageLength, faults };
}

/** A longer list of sort keys is a mistake. */
const MAX_SORT_KEYS = 10;

interface SortKey<T> {
  readonly name: string;
  readonly field: Field<T>;
  readonly isDescending: boolean;
}

/** Reads `sort`: `field:asc` or `field:dsc`, several with commas. Without it, the newest come first. */
function readOrder<T>(sort: string, fields: Fields<T>) {
  const whole = sort.trim();
  if (whole === '' || whole === 'created:dsc') return { keys: [], faults: [] };
  const written = whole.split(',', MAX_SORT_KEYS + 1);
  const faults = new Set<string>();
  const keys: SortKey<T>[] = [];
  for (const key of written) {
    const [, named = '', direction] = /^([^:]+):(asc|dsc)$/.exec(key.trim()) ?? [];
    const field = fieldOf(fields, named);
    const name = plainName(named);
    if (direction === undefined) faults.add('write field:asc or field:dsc, several joined by commas.');
    else if (!field)
      faults.add(`${printable(named)} is not a field to sort by. ${hintOfFields(fields, named)}`);
    else if (keys.some((other) => other.name === name))
      faults.add(`${printable(name)} is given twice. Give one direction for it.`);
    else keys.push({ name, field, isDescending: direction === 'dsc' });
  }
  const tooMany = `has more than ${MAX_SORT_KEYS} fields. The first ones decide.`;
  return { keys, faults: written.length > MAX_SORT_KEYS ? [tooMany] : [...faults] };
}

function sortedBy<T>(keys: readonly SortKey<T>[], items: readonly T[]): T[] {
  if (keys.length === 0) return items.toReversed();
  return items
    .map((item) => ({ item, values: keys.map(({ field }) => sortValue(field, item)) }))
    .sort((a, b) => {
      for (const [place, { isDescending }] of keys.entries()) {
        const order = compare(a.values[place], b.values[place]);
        if (order !== 0) return isDescending ? -order : order;
      }
      return 0;
    })
    .map(({ item }) => item);
}

function sortValue<T>(field: Field<T>, item: T): string | number | undefined {
  if (isNumeric(field)) return numericOf(field, item);
  const texts = textsOf(field, item);
  return texts.length === 0 ? undefined : texts.join(', ').toLowerCase();
}

/** An absent value comes first. */
export function compare<Value extends string | number>(a: Value | undefined, b: Value | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  return b !== undefined && a < b ? -1 : 1;
}
