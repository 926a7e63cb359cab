import { ListIndex } from './list-index';

interface Identified {
  readonly id: string;
}

/** The items of one owner, as lists are made of them. */
export interface ItemList<T extends Identified> {
  /** Oldest first. */
  readonly items: readonly T[];
  /** Finds them by their words, and in other orders. It is made when it is first asked for. */
  readonly index: ListIndex<T>;
}

/**
 * Things that belong to an owner, such as a site, found by id and kept in the order they were made, so that a page of
 * them is a slice.
 */
export class ItemStore<T extends Identified> {
  readonly #ownerOf: (item: T) => string;
  readonly #byId = new Map<string, T>();
  readonly #byOwner = new Map<string, OwnedItems<T>>();
  #watcher: ((item: T) => void) | undefined;

  /** @param ownerOf the id of what an item belongs to. It must stay the same. */
  constructor(ownerOf: (item: T) => string) {
    this.#ownerOf = ownerOf;
  }

  add(item: T): void {
    const owner = this.#ownerOf(item);
    const owned = this.#byOwner.get(owner) ?? new OwnedItems<T>();
    this.#byOwner.set(owner, owned);
    this.#byId.set(item.id, item);
    owned.add(item);
    this.#watcher?.(item);
  }

  /** Tells of each item that is added, changed or removed, before the caller goes on. One listener, for good. */
  watch(watcher: (item: T) => void): void {
    this.#watcher = watcher;
  }

  /** To be told of each item whose fields have changed: lists are filtered and sorted by what they were before, else. */
  changed(item: T): void {
    this.#byOwner.get(this.#ownerOf(item))?.changed(item);
    this.#watcher?.(item);
  }

  find(id: string): T | undefined {
    return this.#byId.get(id);
  }

  /** The item with this id when it belongs to this owner. */
  findOf(owner: string, id: string): T | undefined {
    const item = this.#byId.get(id);
    return item && this.#ownerOf(item) === owner ? item : undefined;
  }

  /** Oldest first. */
  of(owner: string): readonly T[] {
    return this.list(owner).items;
  }

  /** What `listPage` takes: of many items, it finds some without reading all. */
  list(owner: string): ItemList<T> {
    return this.#byOwner.get(owner) ?? new OwnedItems<T>();
  }

  /** Of every owner. */
  all(): readonly T[] {
    return [...this.#byId.values()];
  }

  remove(item: T): void {
    if (this.#byId.get(item.id) !== item) return;
    this.#byId.delete(item.id);
    this.#byOwner.get(this.#ownerOf(item))?.remove(item);
    this.#watcher?.(item);
  }

  clear(): void {
    this.#byId.clear();
    this.#byOwner.clear();
  }
}

class OwnedItems<T extends Identified> implements ItemList<T> {
  readonly items: T[] = [];
  #index: ListIndex<T> | undefined;

  get index(): ListIndex<T> {
    this.#index ??= new ListIndex(this.items);
    return this.#index;
  }

  add(item: T): void {
    this.items.push(item);
    this.#tell((index) => index.add(item));
  }

  changed(item: T): void {
    this.#tell((index) => index.changed(item));
  }

  remove(item: T): void {
    const place = this.items.indexOf(item);
    if (place !== -1) this.items.splice(place, 1);
    this.#tell((index) => index.remove(item));
  }

  #tell(change: (index: ListIndex<T>) => void): void {
    if (!this.#index) return;
    change(this.#index);
    if (this.#index.isWorn) this.#index = undefined;
  }
}
