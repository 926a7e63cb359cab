/** Things that belong to an owner, such as a site, found by id and kept in the order of their creation. */
export class ItemStore<T extends { readonly id: string }> {
  readonly #items = new Map<string, T>();
  #watcher: ((item: T) => void) | undefined;

  /** @param owner the field with the id of the owner of an item, as paths name it; without it, they have none. */
  constructor(
    private readonly now: () => Date,
    readonly owner?: keyof T & string,
  ) {}

  add(item: T): T {
    this.#items.set(item.id, item);
    this.#watcher?.(item);
    return item;
  }

  /** Calls a function with each item that is added, changed or removed, before the caller continues. One, for good. */
  watch(watcher: (item: T) => void): void {
    this.#watcher = watcher;
  }

  /** Sets these fields, and the time of the last change. */
  change(item: T, to: Partial<T> = {}): void {
    Object.assign(item, to, { lastModified: this.now() });
    this.#watcher?.(item);
  }

  find(id: string): T | undefined {
    return this.#items.get(id);
  }

  findOf(owner: string | undefined, id: string): T | undefined {
    const item = this.#items.get(id);
    return item && this.#isOf(owner, item) ? item : undefined;
  }

  /** The items of an owner, oldest first. */
  of(owner: string | undefined): T[] {
    return this.all().filter((item) => this.#isOf(owner, item));
  }

  #isOf(owner: string | undefined, item: T): boolean {
    return this.owner === undefined || item[this.owner] === owner;
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
