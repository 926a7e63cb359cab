import { CredentialStore } from './auth';
import type { Media } from './library/media';
import { ItemStore } from './listing/item-store';
import type { Channel } from './live/channels';
import type { LiveEvent } from './live/events';
import type { RateWindow } from './rate-limit';

/** What the platform holds; it is gone when the process ends. Webhooks are kept by their own service. */
export interface EmulatorState {
  readonly credentials: CredentialStore;
  readonly channels: ItemStore<Channel>;
  /** By stream key. */
  readonly streamKeys: Map<string, Channel>;
  readonly events: ItemStore<LiveEvent>;
  readonly media: ItemStore<Media>;
  /** By what the rate limit counts. */
  readonly rateWindows: Map<string, RateWindow>;
}

/** What the state starts with, and comes back to at a reset. */
export interface StateSeeds {
  /** The sites of the seeded Admin credential; the first one is the one that examples use. */
  readonly siteIds: readonly string[];
  readonly apiSecret: string;
}

const siteOf = ({ siteId }: { readonly siteId: string }) => siteId;

export function createState(): EmulatorState {
  return {
    credentials: new CredentialStore(),
    channels: new ItemStore<Channel>(siteOf),
    streamKeys: new Map(),
    events: new ItemStore<LiveEvent>(siteOf),
    media: new ItemStore<Media>(siteOf),
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
