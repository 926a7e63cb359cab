import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { type PLAYLIST, type PlaylistType, TYPED_PLAYLISTS } from '../resources/playlist-table';
import type { Behaviour, Kept, MetadataOf, Resource } from '../resources/resource';
import { callsOf, type ResourceCalls } from '../resources/resource-calls';
import type { Media } from './media';

/** A playlist of any type. Its metadata have the fields of its type. */
export interface Playlist {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  readonly playlistType: PlaylistType;
  metadata: MetadataOf<typeof PLAYLIST> & { readonly media_filter: MediaFilter };
}

type TypedPlaylist = (typeof TYPED_PLAYLISTS)[number];

/** The metadata of a playlist of this type, with the fields that it alone has. */
export type PlaylistMetadata<T extends PlaylistType> = MetadataOf<Extract<TypedPlaylist, { type: T }>>;

/** What is special about playlists of all types: what they have in common is shown, and changed by none. */
export function playlistBehaviour(context: EmulatorContext): Behaviour<typeof PLAYLIST, Playlist> {
  const { state } = context;
  return {
    list: ({ siteId = '' }) => state.playlists.of(siteId),
    find: ({ siteId = '', playlistId = '' }) => state.playlists.findOf(siteId, playlistId),
    remove: (playlist) => state.playlists.remove(playlist),
    shown: SHOWN,
  };
}

const SHOWN = { playlist_type: ({ playlistType }: Playlist) => playlistType };

/** Which media a playlist of any type has, as far as its own fields say. */
type MediaFilter = PlaylistMetadata<'manual_playlist' | 'dynamic_playlist'>['media_filter'];

/** Takes a media that goes out of the orders that people made. */
export function takeFromPlaylists(context: EmulatorContext, { id, siteId }: Media): void {
  changeFilters(context, siteId, ({ include, ...others }) =>
    include && 'values' in include && include.values.includes(id)
      ? { ...others, include: { ...include, values: include.values.filter((each) => each !== id) } }
      : undefined,
  );
}

/** Renames a tag in what playlists ask for. */
export function changeTagOfPlaylists(
  context: EmulatorContext,
  siteId: string,
  change: (tags: readonly string[]) => string[] | undefined,
): void {
  changeFilters(context, siteId, (filter) => {
    const changed = Object.entries(filter).flatMap(([name, criteria]) => {
      const tags = criteria && 'tags' in criteria ? criteria.tags : undefined;
      const values = tags && change(tags.values);
      return values ? [[name, { ...criteria, tags: { ...tags, values } }] as const] : [];
    });
    return changed.length > 0 ? { ...filter, ...Object.fromEntries(changed) } : undefined;
  });
}

function changeFilters(
  { state, clock }: EmulatorContext,
  siteId: string,
  change: (filter: MediaFilter) => MediaFilter | undefined,
): void {
  for (const playlist of state.playlists.of(siteId)) {
    const changed = change(playlist.metadata.media_filter);
    if (!changed) continue;
    playlist.metadata = { ...playlist.metadata, media_filter: changed };
    playlist.lastModified = clock.now();
    state.playlists.changed(playlist);
  }
}

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
    shown: SHOWN,
  };
  return callsOf(resource as Resource & { shown: typeof PLAYLIST.shown }, behaviour, clock.now);
}
