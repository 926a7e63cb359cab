/** Things that belong to an owner, such as a site, found by id and kept in the order of their creation. */
export class ItemStore<T extends { readonly id: string }> {
  readonly #items = new Map<string, T>();
  #watcher: ((item: T) => void) | undefined;

  /** @param owner the field with the id of the owner of an item. */
  constructor(private readonly owner: keyof T) {}

  add(item: T): T {
    this.#items.set(item.id, item);
    this.#watcher?.(item);
    return item;
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
    return this.#items.get(id);
  }

  findOf(owner: string, id: string): T | undefined {
    const item = this.#items.get(id);
    return item && item[this.owner] === owner ? item : undefined;
  }

  /** The items of an owner, oldest first. */
  of(owner: string): T[] {
    return this.all().filter((item) => item[this.owner] === owner);
  }

  all(): T[] {
    return [...this.#items.values()];
  }

  remove(item: T): void {
    if (this.#items.delete(item.id)) this.#watcher?.(item);
  }

  clear(): void {
    this.#items.clear();
  }
}
