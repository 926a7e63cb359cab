interface Owned {
  readonly id: string;
  readonly siteId: string;
}

/** Things that belong to sites, found by id and kept in the order they were made, so that a page of them is a slice. */
export class SiteStore<T extends Owned> {
  readonly #byId = new Map<string, T>();
  readonly #bySite = new Map<string, T[]>();

  add(item: T): void {
    this.#byId.set(item.id, item);
    const items = this.#bySite.get(item.siteId);
    if (items) items.push(item);
    else this.#bySite.set(item.siteId, [item]);
  }

  find(id: string): T | undefined {
    return this.#byId.get(id);
  }

  /** The thing with this id when it belongs to this site. */
  findIn(siteId: string, id: string): T | undefined {
    const item = this.#byId.get(id);
    return item?.siteId === siteId ? item : undefined;
  }

  /** Oldest first. */
  ofSite(siteId: string): readonly T[] {
    return this.#bySite.get(siteId) ?? [];
  }

  /** Of every site. */
  all(): readonly T[] {
    return [...this.#byId.values()];
  }

  remove(item: T): void {
    if (!this.#byId.delete(item.id)) return;
    const items = this.#bySite.get(item.siteId) ?? [];
    items.splice(items.indexOf(item), 1);
  }

  clear(): void {
    this.#byId.clear();
    this.#bySite.clear();
  }
}
