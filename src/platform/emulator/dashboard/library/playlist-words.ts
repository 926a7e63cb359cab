import { HttpError } from '../../../../http/errors';
import type { EmulatorContext } from '../../context';
import type { Playlist, PlaylistMetadata } from '../../library/playlists';
import type { ResourceCalls } from '../../resources/resource-calls';

/** @throws HttpError 404 */
export function playlistOf({ state }: EmulatorContext, id: string): Playlist {
  const playlist = state.playlists.find(id);
  if (playlist) return playlist;
  const description = 'There is no playlist with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

/** The calls of a playlist's own type. */
export function callsFor({ library }: EmulatorContext, { playlistType }: Playlist): ResourceCalls {
  const calls = library.typedPlaylists.get(playlistType);
  if (calls) return calls;
  throw new Error(`A playlist has the type ${playlistType}, which has no calls.`);
}

export function titleOfPlaylist({ metadata: { title } }: Playlist): string {
  return title.trim() === '' ? 'Untitled playlist' : title;
}

/** A type for people: `search_playlist` is search. */
export function typeName(type: string): string {
  return type.replace(/_playlist$/, '').replaceAll('_', ' ');
}

/** The ids of a manual playlist's media in their order; undefined for a playlist of another type. */
export function idsIn({ playlistType, metadata }: Playlist): readonly string[] | undefined {
  if (playlistType !== 'manual_playlist') return undefined;
  const { media_filter: filter } = metadata as PlaylistMetadata<'manual_playlist'>;
  return filter.include?.values ?? [];
}
