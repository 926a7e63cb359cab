import { CredentialStore } from './auth';
import type { Media } from './library/media';
import type { Channel } from './live/channels';
import type { LiveEvent } from './live/events';
import type { RateWindow } from './rate-limit';

/** What the platform holds; it is gone when the process ends. Webhooks are kept by their own service. */
export interface EmulatorState {
  readonly credentials: CredentialStore;
  readonly channels: SiteStore<Channel>;
  /** By stream key. */
  readonly streamKeys: Map<string, Channel>;
  readonly events: SiteStore<LiveEvent>;
  readonly media: SiteStore<Media>;
  /** By what the rate limit counts. */
  readonly rateWindows: Map<string, RateWindow>;
}

/** What the state starts with, and comes back to at a reset. */
export interface StateSeeds {
  /** The sites of the seeded Admin credential; the first one is the one that examples use. */
  readonly siteIds: readonly string[];
  readonly apiSecret: string;
}

export function createState(): EmulatorState {
  return {
    credentials: new CredentialStore(),
    channels: new SiteStore(),
    streamKeys: new Map(),
    events: new SiteStore(),
    media: new SiteStore(),
    rateWindows: new Map(),
  };
}

/** Empties the state and plants the seeds. */
export function seedState(state: EmulatorState, seeds: StateSeeds, created: Date): void {
  for (const store of Object.values(state)) store.clear();
  state.credentials.add({
    id: 'seeded00',
    name: 'seeded',
    permission: 'Admin',
    siteIds: seeds.siteIds,
    secret: seeds.apiSecret,
    created,
  });
}

interface Owned {
  readonly id: string;
  readonly siteId: string;
}

/** Things that belong to sites, found by id and kept in the order they were made, so that a page of them is a slice. */
class SiteStore<T extends Owned> {
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
