interface Identified {
  readonly id: string;
}

/** Things that belong to an owner, such as a site, found by id and kept in the order of their creation. */
export class ItemStore<T extends Identified> {
  readonly #ownerOf: (item: T) => string;
  readonly #byId = new Map<string, T>();
  /** By owner, then by id. */
  readonly #owned = new Map<string, Map<string, T>>();
  #watcher: ((item: T) => void) | undefined;

  /** @param ownerOf the id of the owner of an item. It must stay the same. */
  constructor(ownerOf: (item: T) => string) {
    this.#ownerOf = ownerOf;
  }

  add(item: T): void {
    const owner = this.#ownerOf(item);
    const owned = this.#owned.get(owner) ?? new Map<string, T>();
    this.#owned.set(owner, owned.set(item.id, item));
    this.#byId.set(item.id, item);
    this.#watcher?.(item);
  }

  /** Calls a function with each item that is added, changed or removed, before the caller continues. One, for good. */
  watch(watcher: (item: T) => void): void {
    this.#watcher = watcher;
  }

  /** To be called for each item whose fields have changed, for the watcher. */
  changed(item: T): void {
    this.#watcher?.(item);
  }

  find(id: string): T | undefined {
    return this.#byId.get(id);
  }

  /** The item with this id when it belongs to this owner. */
  findOf(owner: string, id: string): T | undefined {
    return this.#owned.get(owner)?.get(id);
  }

  /** The items of an owner, oldest first. */
  of(owner: string): readonly T[] {
    return [...(this.#owned.get(owner)?.values() ?? [])];
  }

  /** Of every owner. */
  all(): readonly T[] {
    return [...this.#byId.values()];
  }

  remove(item: T): void {
    if (!this.#byId.delete(item.id)) return;
    const owner = this.#ownerOf(item);
    const owned = this.#owned.get(owner);
    owned?.delete(item.id);
    if (owned?.size === 0) this.#owned.delete(owner);
    this.#watcher?.(item);
  }

  clear(): void {
    this.#byId.clear();
    this.#owned.clear();
  }
}
