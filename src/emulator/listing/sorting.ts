import { printable } from '../../http/faults';
import { type Field, type Fields, fieldOf, namesOf } from './fields';

/** `oldest` and `newest` are orders that the stores keep; any other is made for each list. */
export type Sorting<T> = 'oldest' | 'newest' | ((a: T, b: T) => number);

export type ReadSorting<T> =
  | { readonly ok: true; readonly sorting: Sorting<T> }
  | { readonly ok: false; readonly faults: readonly string[] };

/** Reads `sort`: `field:asc` or `field:dsc`, several joined by commas. Without it, the newest come first. */
export function readSorting<T>(text: string, fields: Fields<T>): ReadSorting<T> {
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
