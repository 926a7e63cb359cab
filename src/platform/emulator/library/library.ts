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
  for (const name of ['remove_tag', 'rename_tag'] as const) {
    mountAction(app, context, SITE_ACTIONS[name], ({ params: { siteId = '' }, body }) => {
      changeTags(context, name, siteId, body);
      return undefined;
    });
  }
  // A released client has the days in the query, and more there.
  const days = ({ body, query: { start_date, end_date } }: Pick<Request, 'body' | 'query'>) => ({
    start_date,
    end_date,
    ...body,
  });
  mountAction(app, context, SITE_ACTIONS.query_usage, (request) =>
    usageOf(context, [request.params.siteId ?? ''], days(request)),
  );
  mountAction(app, context, SITE_ACTIONS.query_account_usage, (request, response) =>
    usageOf(context, callerOf(response).siteIds, days(request)),
  );
}

const TAG_ACTIONS = { remove_tag: removeTag, rename_tag: renameTag };
const tagSchemas = once(() => ({
  remove_tag: actionSchema(SITE_ACTIONS.remove_tag.body),
  rename_tag: actionSchema(SITE_ACTIONS.rename_tag.body),
}));
const usageSchema = once(() => actionSchema(SITE_ACTIONS.query_usage.body));

/** Changes a tag of all media of a site, and answers how many had it. @throws HttpError 400 */
export function changeTags(
  context: EmulatorContext,
  name: keyof typeof TAG_ACTIONS,
  siteId: string,
  body: unknown,
): number {
  return TAG_ACTIONS[name](context, siteId, readActionFields(tagSchemas()[name], body, 'invalid_body'));
}

/** What sites used, day by day; without a body, on the latest days. @throws HttpError 400 */
export function usageOf(context: EmulatorContext, siteIds: readonly string[], body: unknown) {
  return queryUsage(context, siteIds, readActionFields(usageSchema(), body ?? {}, 'invalid_body'));
}
