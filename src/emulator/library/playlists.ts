import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { type PLAYLIST, type PlaylistType, TYPED_PLAYLISTS } from '../resources/playlist-table';
import type { Behaviour, Kept, MetadataOf, Resource } from '../resources/resource';
import { callsOf, type ResourceCalls } from '../resources/resource-calls';

/** A playlist of any type. Its metadata have the fields of its type. */
export interface Playlist {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  readonly playlistType: PlaylistType;
  metadata: MetadataOf<typeof PLAYLIST>;
}

type TypedPlaylist = (typeof TYPED_PLAYLISTS)[number];

/** The metadata of a playlist of this type, with the fields that it alone has. */
export type PlaylistMetadata<T extends PlaylistType> = MetadataOf<Extract<TypedPlaylist, { type: T }>>;

/** What is special about playlists of all types: what they have in common is shown, and changed by none. */
export function playlistBehaviour(context: EmulatorContext): Behaviour<typeof PLAYLIST, Playlist> {
  const { state } = context;
  return {
    list: ({ siteId = '' }) => state.playlists.list(siteId),
    find: ({ siteId = '', playlistId = '' }) => state.playlists.findOf(siteId, playlistId),
    remove: (playlist) => state.playlists.remove(playlist),
    shown: SHOWN,
  };
}

const SHOWN = { playlist_type: ({ playlistType }: Playlist) => playlistType };

/** The calls of each type of playlist. */
export function typedPlaylistCalls(context: EmulatorContext): ReadonlyMap<PlaylistType, ResourceCalls> {
  return new Map(
    TYPED_PLAYLISTS.map((resource) => [resource.type as PlaylistType, callsOfType(context, resource)]),
  );
}

function callsOfType(context: EmulatorContext, resource: TypedPlaylist): ResourceCalls {
  const { state, clock, newResourceId } = context;
  const playlistType = resource.type as PlaylistType;
  const behaviour: Behaviour<Resource & { shown: typeof PLAYLIST.shown }, Playlist & Kept<Resource>> = {
    ...(playlistBehaviour(context) as object),
    list: () => [],
    find({ siteId = '', playlistId = '' }) {
      const playlist = state.playlists.findOf(siteId, playlistId);
      return playlist?.playlistType === playlistType ? (playlist as Playlist & Kept<Resource>) : undefined;
    },
    create({ siteId = '' }, { metadata }) {
      const created = clock.now();
      const playlist = {
        id: newResourceId(),
        siteId,
        created,
        lastModified: created,
        playlistType,
        metadata: valuesAfter(resource.metadata, metadata) as Playlist['metadata'] &
          Kept<Resource>['metadata'],
      };
      state.playlists.add(playlist);
      return playlist;
    },
    update(playlist, metadata) {
      playlist.metadata = metadata as typeof playlist.metadata;
      playlist.lastModified = clock.now();
      state.playlists.changed(playlist);
    },
    remove: (playlist) => state.playlists.remove(playlist),
    shown: SHOWN,
  };
  return callsOf(resource as Resource & { shown: typeof PLAYLIST.shown }, behaviour, clock.now);
}
