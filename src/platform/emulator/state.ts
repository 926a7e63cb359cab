import type { Credential } from './auth';
import type { EmulatorConfig } from './config';
import { ItemStore } from './listing/item-store';
import type { RateWindow } from './rate-limit';
import { valuesAfter } from './resources/body';
import { CHANNEL } from './resources/channels';
import { itemOf, type LibraryState } from './resources/resource';
import { Usage } from './resources/usage';
import type { Signatures } from './v1/signed-call';

/** The state of the platform, in memory alone. Webhooks are kept by their own service. */
export interface EmulatorState extends LibraryState {
  readonly credentials: ItemStore<Credential>;
  /** By the caller that the rate limit counts. */
  readonly rateWindows: Map<string, RateWindow>;
  /** Of calls of v1. */
  readonly signatures: Signatures;
}

export function createState(now: () => Date): EmulatorState {
  return {
    credentials: new ItemStore(now),
    channels: new ItemStore(now, 'siteId'),
    events: new ItemStore(now, 'channelId'),
    media: new ItemStore(now, 'siteId'),
    originals: new ItemStore(now, 'mediaId'),
    renditions: new ItemStore(now, 'mediaId'),
    textTracks: new ItemStore(now, 'mediaId'),
    thumbnails: new ItemStore(now, 'siteId'),
    players: new ItemStore(now, 'siteId'),
    playlists: new ItemStore(now, 'siteId'),
    imports: new ItemStore(now, 'siteId'),
    webhooks: new ItemStore(now),
    usage: new Usage(),
    rateWindows: new Map(),
    signatures: new Map(),
  };
}

type Seeds = Pick<EmulatorConfig, 'siteIds' | 'apiSecret' | 'channel'>;

export function seedState(state: EmulatorState, seeds: Seeds, created: Date): void {
  for (const store of Object.values(state)) store.clear();
  state.credentials.add({
    id: 'seeded00',
    name: 'seeded',
    permission: 'Admin',
    siteIds: seeds.siteIds,
    secret: seeds.apiSecret,
    created,
  });
  const [siteId = ''] = seeds.siteIds;
  const metadata = valuesAfter(CHANNEL.metadata, { title: 'Live demo' });
  if (seeds.channel) state.channels.add(itemOf(CHANNEL, { ...seeds.channel, siteId, created, metadata }));
}
