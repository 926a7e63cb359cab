import { CredentialStore } from './credentials';
import type { Media } from './library/media';
import { SiteStore } from './listing/site-store';
import type { Channel } from './live/channel';
import type { LiveEvent } from './live/live-event';
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
