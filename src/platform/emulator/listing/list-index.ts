import { FieldIndex } from './field-index';
import {
  type Condition,
  type Fields,
  type NumericField,
  numericOf,
  predicateOf,
  type TextField,
} from './filter';
import { NumberSet } from './number-set';
import { SortedOrder, type Sorting, type SortKey } from './sorting';

/** What a list asks for. */
export interface Wanted<T> {
  readonly fields: Fields<T>;
  /** The text of the condition: what it finds is kept for the next page. A condition that has none is evaluated. */
  readonly q?: string;
  /** Undefined for everything. */
  readonly condition: Condition<T> | undefined;
  readonly sorting: Sorting<T>;
  /** How many to leave out at the start, and how many to take at most. */
  readonly start: number;
  readonly length: number;
}

/** A piece of a list, and how long the whole list is. */
export interface Piece<T> {
  readonly total: number;
  readonly items: readonly T[];
}

/** Clients choose the names of custom parameters: what they filter by is kept for so many names, and orders alike. */
const MAX_INDEXES = 50;
const MAX_ORDERS = 8;
const MAX_QUERIES = 20;
const MAX_TABLES = 4;

/** What is kept for the fields of one table, the latest used last. */
interface Kept<T> {
  /** By field. */
  readonly indexes: Map<string, FieldIndex<T>>;
  readonly columns: Map<string, NumberColumn<T>>;
  /** By their sort keys. */
  readonly orders: Map<string, SortedOrder<T>>;
  /** By query, until something changes: whoever reads the first page asks for the next one. */
  readonly found: Map<string, NumberSet>;
}

/**
 * The items of a list by their words, and in the orders that were asked for. Each index and order is made when it is
 * first asked for. Changes are remembered, and taken in before the next answer: they cost next to nothing while nobody
 * asks.
 */
export class ListIndex<T extends { readonly id: string }> {
  /** By number, in the order they were added; undefined for what is gone. */
  readonly #items: (T | undefined)[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #present: NumberSet;
  readonly #changed = new Set<number>();
  readonly #kept = new Map<Fields<T>, Kept<T>>();

  /** @param items oldest first. */
  constructor(items: readonly T[]) {
    this.#present = new NumberSet(items.length);
    for (const item of items) this.#number(item);
  }

  /** Whether so much has changed that a new index costs less than keeping this one. */
  get isWorn(): boolean {
    return (
      this.#changed.size > 1000 + this.#numbers.size / 20 ||
      this.#items.length > 1000 + this.#numbers.size * 2
    );
  }

  add(item: T): void {
    this.#changed.add(this.#number(item));
  }

  #number(item: T): number {
    const number = this.#items.push(item) - 1;
    this.#numbers.set(item.id, number);
    this.#present.add(number);
    return number;
  }

  changed(item: T): void {
    const number = this.#numbers.get(item.id);
    if (number !== undefined) this.#changed.add(number);
  }

  remove(item: T): void {
    const number = this.#numbers.get(item.id);
    if (number === undefined) return;
    this.#numbers.delete(item.id);
    this.#items[number] = undefined;
    this.#present.delete(number);
    this.#changed.add(number);
  }

  /** The items that are asked for, a piece of them in the order that is asked for. */
  find(wanted: Wanted<T>): Piece<T> {
    this.#catchUp();
    const { fields, q, condition, sorting, start, length } = wanted;
    const kept = recent(this.#kept, fields, MAX_TABLES, () => ({
      indexes: new Map(),
      columns: new Map(),
      orders: new Map(),
      found: new Map(),
    }));
    const found = condition ? this.#found(condition, q, kept) : this.#present;
    const numbers =
      sorting === 'newest' || sorting === 'oldest'
        ? found.slice(start, length, sorting === 'newest')
        : pieceWithin(this.#sorted(sorting, kept, found), found, start, length);
    return { total: found.size, items: this.#itemsAt(numbers) };
  }

  #catchUp(): void {
    if (this.#changed.size === 0) return;
    for (const { indexes, columns, orders, found } of this.#kept.values()) {
      found.clear();
      for (const [name, index] of indexes) {
        for (const number of this.#changed) index.update(number, this.#items[number]);
        if (index.isWorn) indexes.delete(name);
      }
      for (const column of columns.values())
        for (const number of this.#changed) column.update(number, this.#items[number]);
      for (const order of orders.values()) order.update(this.#changed, this.#items);
    }
    this.#changed.clear();
  }

  #found(condition: Condition<T>, q: string | undefined, kept: Kept<T>): NumberSet {
    const find = () => this.#evaluate(condition, kept, this.#present);
    return q === undefined || isComputed(condition) ? find() : recent(kept.found, q, MAX_QUERIES, find);
  }

  /** What of some items meets a condition. `among` is left as it is. */
  #evaluate(condition: Condition<T>, kept: Kept<T>, among: NumberSet): NumberSet {
    switch (condition.kind) {
      case 'not':
        return among.copy().subtract(this.#evaluate(condition.part, kept, among));
      case 'or':
        return condition.parts.reduce(
          (all, part) => all.unite(this.#evaluate(part, kept, among)),
          new NumberSet(this.#items.length),
        );
      case 'and':
        // What reads each item comes last: by then, few may be left.
        return condition.parts
          .toSorted((a, b) => Number(isScanned(a)) - Number(isScanned(b)))
          .reduce((left, part) => this.#evaluate(part, kept, left), among);
      case 'text': {
        const { field, name, match } = condition;
        if (field.isComputed) return this.#scan(condition, among);
        return this.#indexOf(field, name, kept).find(match, this.#items.length).intersect(among);
      }
      case 'range': {
        const { field, name, low, high } = condition;
        if (field.isComputed) return this.#scan(condition, among);
        return this.#columnOf(field, name, kept).find(low, high).intersect(among);
      }
      case 'value':
        return this.#scan(condition, among);
    }
  }

  #scan(condition: Condition<T>, among: NumberSet): NumberSet {
    const holds = predicateOf(condition);
    const found = new NumberSet(this.#items.length);
    among.forEach((number) => {
      const item = this.#items[number];
      if (item !== undefined && holds(item)) found.add(number);
    });
    return found;
  }

  #indexOf(field: TextField<T>, name: string, { indexes }: Kept<T>): FieldIndex<T> {
    return recent(indexes, name, MAX_INDEXES, () => {
      const index = new FieldIndex(field);
      for (const [number, item] of this.#items.entries()) if (item !== undefined) index.update(number, item);
      return index;
    });
  }

  #columnOf(field: NumericField<T>, name: string, { columns }: Kept<T>): NumberColumn<T> {
    return recent(columns, name, MAX_INDEXES, () => {
      const column = new NumberColumn(field);
      for (const [number, item] of this.#items.entries()) column.update(number, item);
      return column;
    });
  }

  /** The items that were found among others, in an order. */
  #sorted(keys: readonly SortKey<T>[], { orders }: Kept<T>, found: NumberSet): readonly number[] {
    if (keys.some(({ field }) => field.isComputed)) return new SortedOrder(keys, this.#items, found).numbers;
    const name = keys.map((key) => `${key.name}:${key.isDescending ? 'dsc' : 'asc'}`).join(',');
    return recent(orders, name, MAX_ORDERS, () => new SortedOrder(keys, this.#items, this.#present)).numbers;
  }

  #itemsAt(numbers: readonly number[]): readonly T[] {
    return numbers.flatMap((number) => this.#items[number] ?? []);
  }
}

/** The values of one field, by item. */
class NumberColumn<T> {
  readonly #field: NumericField<T>;
  readonly #values: number[] = [];

  constructor(field: NumericField<T>) {
    this.#field = field;
  }

  update(number: number, item: T | undefined): void {
    this.#values[number] = item === undefined ? Number.NaN : (numericOf(this.#field, item) ?? Number.NaN);
  }

  find(low: number, high: number): NumberSet {
    const found = new NumberSet(this.#values.length);
    for (let number = 0; number < this.#values.length; number += 1) {
      const value = this.#values[number] ?? Number.NaN;
      if (value >= low && value <= high) found.add(number);
    }
    return found;
  }
}

/** A piece of those of some numbers that are wanted. */
function pieceWithin(numbers: readonly number[], wanted: NumberSet, start: number, length: number): number[] {
  const piece: number[] = [];
  let skip = start;
  for (let place = 0; place < numbers.length && piece.length < length; place += 1) {
    const number = numbers[place] ?? 0;
    if (!wanted.has(number)) continue;
    if (skip > 0) skip -= 1;
    else piece.push(number);
  }
  return piece;
}

/** Whether a condition reads each item. */
function isScanned<T>(condition: Condition<T>): boolean {
  switch (condition.kind) {
    case 'value':
      return true;
    case 'not':
      return isScanned(condition.part);
    case 'and':
    case 'or':
      return condition.parts.some(isScanned);
    default:
      return isComputed(condition);
  }
}

/** Whether what meets a condition may change without the store being told. */
function isComputed<T>(condition: Condition<T>): boolean {
  switch (condition.kind) {
    case 'not':
      return isComputed(condition.part);
    case 'and':
    case 'or':
      return condition.parts.some(isComputed);
    default:
      return condition.field.isComputed ?? false;
  }
}

/** What is kept under a key, made if it isn't there; it becomes the latest used, and of too many the first one goes. */
function recent<Key, Value>(kept: Map<Key, Value>, key: Key, most: number, make: () => Value): Value {
  const value = kept.get(key) ?? make();
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
  return value;
}
