import type { Express, Request } from 'express';
import { callerOf } from '../auth';
import type { Webhooks } from '../webhooks/webhooks';
import { CHANNEL, channelBehaviour } from './channels';
import { EVENT, eventBehaviour } from './events';
import { IMPORT, importBehaviour } from './imports';
import { MEDIA } from './media';
import { mediaBehaviour } from './media-behaviour';
import { ORIGINAL, originalBehaviour } from './originals';
import { PLAYER, playerBehaviour } from './players';
import { PLAYLIST, TYPED_PLAYLISTS, typedPlaylistCalls } from './playlists';
import { MEDIA_RENDITION, renditionBehaviour } from './renditions';
import type { Platform, Resource } from './resource';
import { callsOf, mountAction, mountResource, type RouteParts } from './resource-calls';
import { changeTags, TAG_ACTIONS } from './tags';
import { TEXT_TRACK, textTrackBehaviour } from './text-tracks';
import { THUMBNAIL, thumbnailBehaviour } from './thumbnails';
import { USAGE_ACTIONS, usageOf } from './usage';
import { WEBHOOK, webhookBehaviour, webhookResource } from './webhooks';

/** By the names of their stores, in the order of the API's description. */
export const KINDS = {
  media: MEDIA,
  originals: ORIGINAL,
  renditions: MEDIA_RENDITION,
  textTracks: TEXT_TRACK,
  thumbnails: THUMBNAIL,
  players: PLAYER,
  playlists: PLAYLIST,
  imports: IMPORT,
  channels: CHANNEL,
  events: EVENT,
  webhooks: WEBHOOK,
};

/** Every resource of the management API. */
export const RESOURCES: readonly Resource[] = Object.values<Resource>(KINDS).flatMap((kind) =>
  kind.type === 'playlist' ? [...TYPED_PLAYLISTS, kind] : kind,
);

type Library = ReturnType<typeof createLibrary>;

export function createLibrary(
  parts: Parameters<typeof channelBehaviour>[0] &
    Parameters<typeof eventBehaviour>[0] & { readonly webhooks: Webhooks },
) {
  const { clock, state, webhooks } = parts;
  const { now } = clock;
  return {
    channels: callsOf(CHANNEL, channelBehaviour(parts), now),
    events: callsOf(EVENT, eventBehaviour(parts), now),
    webhooks: callsOf(webhookResource(webhooks.rules), webhookBehaviour(parts), now),
    media: callsOf(MEDIA, mediaBehaviour(parts), now),
    originals: callsOf(ORIGINAL, originalBehaviour(parts), now),
    renditions: callsOf(MEDIA_RENDITION, renditionBehaviour(parts), now),
    textTracks: callsOf(TEXT_TRACK, textTrackBehaviour(parts), now),
    thumbnails: callsOf(THUMBNAIL, thumbnailBehaviour(parts), now),
    players: callsOf(PLAYER, playerBehaviour(parts), now),
    // They show the common fields of all types, and change none.
    playlists: callsOf(PLAYLIST, { store: state.playlists }, now),
    typedPlaylists: typedPlaylistCalls(parts),
    imports: callsOf(IMPORT, importBehaviour(parts), now),
  };
}

export function mountLibrary(
  app: Express,
  parts: Platform & RouteParts & { readonly library: Library },
): void {
  const { typedPlaylists, ...others } = parts.library;
  // The paths of one type are among those of all types.
  for (const calls of [...typedPlaylists.values(), ...Object.values(others)])
    mountResource(app, parts, calls);
  for (const name of ['remove_tag', 'rename_tag'] as const) {
    mountAction(app, parts, TAG_ACTIONS[name], ({ params: { siteId = '' }, body }) => {
      changeTags(parts, name, siteId, body);
      return undefined;
    });
  }
  // A released client has the days in the query, and more there.
  const days = ({ body, query: { start_date, end_date } }: Pick<Request, 'body' | 'query'>) => ({
    start_date,
    end_date,
    ...body,
  });
  mountAction(app, parts, USAGE_ACTIONS.query_usage, (request) =>
    usageOf(parts, [request.params.siteId ?? ''], days(request)),
  );
  mountAction(app, parts, USAGE_ACTIONS.query_account_usage, (request, response) =>
    usageOf(parts, callerOf(response).siteIds, days(request)),
  );
}
