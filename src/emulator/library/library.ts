import type { Express, Request } from 'express';
import { callerOf } from '../auth';
import type { EmulatorContext } from '../context';
import { actionSchema, readActionFields } from '../resources/body';
import { MEDIA, MEDIA_RENDITION, ORIGINAL, TEXT_TRACK, THUMBNAIL } from '../resources/media-table';
import { PLAYLIST, type PlaylistType } from '../resources/playlist-table';
import { callsOf, once, type ResourceCalls } from '../resources/resource-calls';
import { mountAction, mountResource } from '../resources/resource-routes';
import { IMPORT, PLAYER, SITE_ACTIONS } from '../resources/site-table';
import { importBehaviour } from './imports';
import { mediaBehaviour } from './media-api';
import { playerBehaviour } from './players';
import { playlistBehaviour, typedPlaylistCalls } from './playlists';
import { originalBehaviour, renditionBehaviour } from './renditions';
import { removeTag, renameTag } from './tags';
import { textTrackBehaviour } from './text-tracks';
import { thumbnailBehaviour } from './thumbnails';
import { queryUsage } from './usage';

/** What can be done with the library, whoever asks. */
export interface Library {
  readonly media: ResourceCalls;
  readonly originals: ResourceCalls;
  readonly renditions: ResourceCalls;
  readonly textTracks: ResourceCalls;
  readonly thumbnails: ResourceCalls;
  readonly players: ResourceCalls;
  /** Of all types. */
  readonly playlists: ResourceCalls;
  readonly typedPlaylists: ReadonlyMap<PlaylistType, ResourceCalls>;
  readonly imports: ResourceCalls;
}

export function createLibrary(context: EmulatorContext): Library {
  const { now } = context.clock;
  return {
    media: callsOf(MEDIA, mediaBehaviour(context), now),
    originals: callsOf(ORIGINAL, originalBehaviour(context), now),
    renditions: callsOf(MEDIA_RENDITION, renditionBehaviour(context), now),
    textTracks: callsOf(TEXT_TRACK, textTrackBehaviour(context), now),
    thumbnails: callsOf(THUMBNAIL, thumbnailBehaviour(context), now),
    players: callsOf(PLAYER, playerBehaviour(context), now),
    playlists: callsOf(PLAYLIST, playlistBehaviour(context), now),
    typedPlaylists: typedPlaylistCalls(context),
    imports: callsOf(IMPORT, importBehaviour(context), now),
  };
}

/** The routes of the library. */
export function mountLibrary(app: Express, context: EmulatorContext): void {
  const { library } = context;
  const { typedPlaylists, ...others } = library;
  // The paths of one type are among those of all types.
  for (const calls of [...typedPlaylists.values(), ...Object.values(others)])
    mountResource(app, context, calls);
  mountSiteActions(app, context);
}

function mountSiteActions(app: Express, context: EmulatorContext): void {
  const tags = { remove_tag: removeTag, rename_tag: renameTag };
  for (const [name, act] of Object.entries(tags)) {
    const action = SITE_ACTIONS[name as keyof typeof tags];
    const schema = once(() => actionSchema(action.body));
    mountAction(app, context, action, ({ params: { siteId = '' }, body }) => {
      act(context, siteId, readActionFields(schema(), body, 'invalid_body'));
      return undefined;
    });
  }
  const schema = once(() => actionSchema(SITE_ACTIONS.query_usage.body));
  // Who says nothing asks for the latest days. A released client has the days in the query, and more there.
  const read = ({ body, query: { start_date, end_date } }: Pick<Request, 'body' | 'query'>) =>
    readActionFields(schema(), { start_date, end_date, ...body }, 'invalid_body');
  mountAction(app, context, SITE_ACTIONS.query_usage, (request) =>
    queryUsage(context, [request.params.siteId ?? ''], read(request)),
  );
  mountAction(app, context, SITE_ACTIONS.query_account_usage, (request, response) =>
    queryUsage(context, callerOf(response).siteIds, read(request)),
  );
}
