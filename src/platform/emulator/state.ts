import { CredentialStore } from './auth';
import { ItemStore } from './listing/item-store';
import type { LiveEvent } from './live/live-event';
import type { RateWindow } from './rate-limit';
import { valuesAfter } from './resources/body';
import { addChannel, CHANNEL, type Channel } from './resources/channels';
import type { Import } from './resources/imports';
import type { Media } from './resources/media';
import type { Original } from './resources/originals';
import type { Player } from './resources/players';
import type { Playlist } from './resources/playlists';
import type { Rendition } from './resources/renditions';
import type { LibraryState } from './resources/resource';
import type { TextTrack } from './resources/text-tracks';
import type { Thumbnail } from './resources/thumbnails';
import { Usage } from './resources/usage';
import type { Signatures } from './v1/authentication';

/** The state of the platform, in memory alone. Webhooks are kept by their own service. */
export interface EmulatorState extends LibraryState {
  readonly credentials: CredentialStore;
  /** By the caller that the rate limit counts. */
  readonly rateWindows: Map<string, RateWindow>;
  /** Of calls of v1. */
  readonly signatures: Signatures;
}

export interface StateSeeds {
  /** The sites of the seeded Admin credential; the first one is the one that examples use. */
  readonly siteIds: readonly string[];
  readonly apiSecret: string;
  /** A channel of the first site, published at once, whose addresses are known before the start. */
  readonly channel?: { readonly id: string; readonly streamKey: string } | undefined;
}

const siteOf = ({ siteId }: { readonly siteId: string }) => siteId;

const mediaOf = ({ mediaId }: { readonly mediaId: string }) => mediaId;

export function createState(): EmulatorState {
  return {
    credentials: new CredentialStore(),
    channels: new ItemStore<Channel>(siteOf),
    events: new ItemStore<LiveEvent>(siteOf),
    media: new ItemStore<Media>(siteOf),
    originals: new ItemStore<Original>(mediaOf),
    renditions: new ItemStore<Rendition>(mediaOf),
    textTracks: new ItemStore<TextTrack>(mediaOf),
    thumbnails: new ItemStore<Thumbnail>(siteOf),
    players: new ItemStore<Player>(siteOf),
    playlists: new ItemStore<Playlist>(siteOf),
    imports: new ItemStore<Import>(siteOf),
    usage: new Usage(),
    rateWindows: new Map(),
    signatures: new Map(),
  };
}

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
  const [siteId = ''] = seeds.siteIds;
  const metadata = valuesAfter(CHANNEL.metadata, { title: SEEDED_TITLE });
  if (seeds.channel) addChannel(state, { ...seeds.channel, siteId, created, metadata });
}

const SEEDED_TITLE = 'Live demo';
