interface Identified {
  readonly id: string;
}

/**
 * Things that belong to an owner, such as a site, found by id and kept in the order they were made, so that a page of
 * them is a slice.
 */
export class ItemStore<T extends Identified> {
  readonly #ownerOf: (item: T) => string;
  readonly #byId = new Map<string, T>();
  readonly #byOwner = new Map<string, T[]>();

  /** @param ownerOf the id of what an item belongs to. It must stay the same. */
  constructor(ownerOf: (item: T) => string) {
    this.#ownerOf = ownerOf;
  }

  add(item: T): void {
    this.#byId.set(item.id, item);
    const items = this.#byOwner.get(this.#ownerOf(item));
    if (items) items.push(item);
    else this.#byOwner.set(this.#ownerOf(item), [item]);
  }

  /** To be told of each item whose fields have changed. */
  changed(_item: T): void {}

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
    return this.#byOwner.get(owner) ?? [];
  }

  /** Of every owner. */
  all(): readonly T[] {
    return [...this.#byId.values()];
  }

  remove(item: T): void {
    if (!this.#byId.delete(item.id)) return;
    const items = this.#byOwner.get(this.#ownerOf(item)) ?? [];
    items.splice(items.indexOf(item), 1);
  }

  clear(): void {
    this.#byId.clear();
    this.#byOwner.clear();
  }
}
