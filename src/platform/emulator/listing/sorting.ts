import { printable } from '../../../http/faults';
import { type Field, type Fields, fieldOf, hintOfFields, numericOf } from './filter';
import type { NumberSet } from './number-set';

/** More keys than anybody has use for are a mistake. */
const MAX_SORT_KEYS = 10;

export interface SortKey<T> {
  readonly name: string;
  readonly field: Field<T>;
  readonly isDescending: boolean;
}

/** `oldest` and `newest` are orders that the stores keep. */
export type Sorting<T> = 'oldest' | 'newest' | readonly SortKey<T>[];

type ReadSorting<T> =
  | { readonly ok: true; readonly sorting: Sorting<T> }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `sort`: `field:asc` or `field:dsc`, several joined by commas. Without it, the newest come first. */
export function readSorting<T>(text: string, fields: Fields<T>): ReadSorting<T> {
  const whole = text.trim();
  if (whole === '' || whole === 'created:dsc') return { ok: true, sorting: 'newest' };
  if (whole === 'created:asc') return { ok: true, sorting: 'oldest' };
  const written = whole.split(',', MAX_SORT_KEYS + 1);
  if (written.length > MAX_SORT_KEYS)
    return { ok: false, faults: [`has more than ${MAX_SORT_KEYS} fields. The first ones decide.`] };
  const faults: string[] = [];
  const keys = written.flatMap((key) => readKey(key.trim(), fields, faults) ?? []);
  for (const name of new Set(keys.map((key) => key.name)))
    if (keys.filter((key) => key.name === name).length > 1)
      faults.push(`${printable(name)} is given twice. Give one direction for it.`);
  return faults.length === 0 ? { ok: true, sorting: keys } : { ok: false, faults: [...new Set(faults)] };
}

function readKey<T>(key: string, fields: Fields<T>, faults: string[]): SortKey<T> | undefined {
  const [, written = '', direction] = /^([^:]+):(asc|dsc)$/.exec(key) ?? [];
  if (direction === undefined) {
    faults.push('write field:asc or field:dsc, several joined by commas.');
    return undefined;
  }
  const found = fieldOf(fields, written);
  if (found) return { ...found, isDescending: direction === 'dsc' };
  faults.push(`${printable(written)} is not a field to sort by. ${hintOfFields(fields, written)}`);
  return undefined;
}

/** What an item is sorted by: one value for each key. */
type Row = readonly (string | number | undefined)[];

function rowOf<T>(keys: readonly SortKey<T>[], item: T): Row {
  return keys.map(({ field }) => {
    if (field.kind !== 'text') return numericOf(field, item);
    const value = field.of(item);
    return typeof value === 'string' ? value.toLowerCase() : value?.join(', ').toLowerCase();
  });
}

/** Compares by the first key in which two differ. What is absent comes first, as the smallest. */
function compareRows<T>(keys: readonly SortKey<T>[], a: Row, b: Row): number {
  for (let index = 0; index < keys.length; index += 1) {
    const order = compareValues(a[index], b[index]);
    if (order !== 0) return keys[index]?.isDescending ? -order : order;
  }
  return 0;
}

function compareValues(a: Row[number], b: Row[number]): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  return a < b ? -1 : 1;
}

/** Sorted by these keys; what is equal in all of them stays in the order it is in. */
export function sortItems<T>(items: readonly T[], keys: readonly SortKey<T>[]): T[] {
  return items
    .map((item) => ({ item, row: rowOf(keys, item) }))
    .sort((a, b) => compareRows(keys, a.row, b.row))
    .map(({ item }) => item);
}

/** Numbers of items in an order. */
export class SortedOrder<T> {
  readonly #keys: readonly SortKey<T>[];
  /** By number. */
  readonly #rows: (Row | undefined)[] = [];
  #numbers: readonly number[];

  /** @param items by their number. */
  constructor(keys: readonly SortKey<T>[], items: readonly (T | undefined)[], wanted: NumberSet) {
    this.#keys = keys;
    const numbers: number[] = [];
    wanted.forEach((number) => {
      if (this.#read(number, items[number])) numbers.push(number);
    });
    this.#numbers = numbers.sort(this.#compare);
  }

  get numbers(): readonly number[] {
    return this.#numbers;
  }

  /** Puts these items into their places; those that are gone are left out. */
  update(changed: ReadonlySet<number>, items: readonly (T | undefined)[]): void {
    if (changed.size === 0) return;
    const others = this.#numbers.filter((number) => !changed.has(number));
    const moved = [...changed].filter((number) => this.#read(number, items[number])).sort(this.#compare);
    const merged: number[] = [];
    let next = 0;
    for (const number of moved) {
      for (const place = this.#placeIn(others, number); next < place; next += 1)
        merged.push(others[next] ?? 0);
      merged.push(number);
    }
    for (; next < others.length; next += 1) merged.push(others[next] ?? 0);
    this.#numbers = merged;
  }

  #placeIn(numbers: readonly number[], number: number): number {
    let low = 0;
    let high = numbers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(numbers[middle] ?? 0, number) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #read(number: number, item: T | undefined): boolean {
    this.#rows[number] = item === undefined ? undefined : rowOf(this.#keys, item);
    return item !== undefined;
  }

  readonly #compare = (a: number, b: number): number =>
    compareRows(this.#keys, this.#rows[a] ?? [], this.#rows[b] ?? []) || a - b;
}
