import { CHANNEL } from './channels';
import { EVENT } from './events';
import { IMPORT } from './imports';
import { MEDIA } from './media';
import { ORIGINAL } from './originals';
import { PLAYER } from './players';
import { PLAYLIST, TYPED_PLAYLISTS } from './playlists';
import { MEDIA_RENDITION } from './renditions';
import type { Action, Resource } from './resource';
import { TAG_ACTIONS } from './tags';
import { TEXT_TRACK } from './text-tracks';
import { THUMBNAIL } from './thumbnails';
import { USAGE_ACTIONS } from './usage';
import { WEBHOOK } from './webhooks';

/** Every resource of the management API. The routes of the types of playlists come before those of all of them. */
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

/** The actions on a whole site, or on the account. */
export const ACTIONS: Readonly<Record<string, Action>> = { ...TAG_ACTIONS, ...USAGE_ACTIONS };
