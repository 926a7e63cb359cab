import { CHANNEL, EVENT } from './live-table';
import { MEDIA, MEDIA_RENDITION, ORIGINAL, TEXT_TRACK, THUMBNAIL } from './media-table';
import { PLAYLIST, TYPED_PLAYLISTS } from './playlist-table';
import type { Action, Resource } from './resource';
import { IMPORT, PLAYER, SITE_ACTIONS } from './site-table';
import { WEBHOOK } from './webhook-table';

/** Every resource of the management API. The routes of the types of playlists stand before those of all of them. */
export const RESOURCES: readonly Resource[] = [
  MEDIA,
  ORIGINAL,
  MEDIA_RENDITION,
  TEXT_TRACK,
  THUMBNAIL,
  PLAYER,
  ...TYPED_PLAYLISTS,
  PLAYLIST,
  IMPORT,
  CHANNEL,
  EVENT,
  WEBHOOK,
];

/** What acts on a whole site, or on the account. */
export const ACTIONS: Readonly<Record<string, Action>> = SITE_ACTIONS;
