import type { Credential } from './auth';
import type { EmulatorConfig } from './config';
import { ItemStore } from './listing/item-store';
import type { LiveEvent } from './live/live-event';
import type { RateWindow } from './rate-limit';
import { valuesAfter } from './resources/body';
import { CHANNEL, type Channel } from './resources/channels';
import type { Import } from './resources/imports';
import type { Media } from './resources/media';
import type { Original } from './resources/originals';
import type { Player } from './resources/players';
import type { Playlist } from './resources/playlists';
import type { Rendition } from './resources/renditions';
import { itemOf } from './resources/resource';
import type { TextTrack } from './resources/text-tracks';
import type { Thumbnail } from './resources/thumbnails';
import { Usage } from './resources/usage';
import type { Signatures } from './v1/signed-call';
import type { Webhook } from './webhooks/webhooks';

/** The state of the platform, in memory alone. */
export function createState(now: () => Date) {
  return {
    credentials: new ItemStore<Credential>(now),
    channels: new ItemStore<Channel>(now, 'siteId'),
    events: new ItemStore<LiveEvent>(now, 'channelId'),
    media: new ItemStore<Media>(now, 'siteId'),
    originals: new ItemStore<Original>(now, 'mediaId'),
    renditions: new ItemStore<Rendition>(now, 'mediaId'),
    textTracks: new ItemStore<TextTrack>(now, 'mediaId'),
    thumbnails: new ItemStore<Thumbnail>(now, 'siteId'),
    players: new ItemStore<Player>(now, 'siteId'),
    playlists: new ItemStore<Playlist>(now, 'siteId'),
    imports: new ItemStore<Import>(now, 'siteId'),
    webhooks: new ItemStore<Webhook>(now),
    usage: new Usage(),
    /** By the caller that the rate limit counts. */
    rateWindows: new Map<string, RateWindow>(),
    /** Of calls of v1. */
    signatures: new Map() as Signatures,
  } as const;
}

export type EmulatorState = ReturnType<typeof createState>;

declare module './resources/resource' {
  interface LibraryState extends EmulatorState {}
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
