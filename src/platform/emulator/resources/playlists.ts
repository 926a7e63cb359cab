import type * as z from 'zod';
import { PLAYLIST_TYPES } from '../../migration/mapping/values';
import { field, objectOf, text } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import { Choice, CUSTOM_PARAMS, CustomParams, list, row, type SetFields, SITE, WholeNumber } from './fields';
import {
  type Behaviour,
  type Kept,
  type MetadataOf,
  named,
  newItem,
  type Platform,
  type Resource,
  type Stored,
} from './resource';
import { callsOf, type ResourceCalls } from './resource-calls';

const match = Choice(['any', 'all']);

const COMMON = {
  title: row(text(1000), 'The title.', { default: '', filter: 'words' }),
  description: row(text(5000), 'The description.', { filter: 'words' }),
  author: row(text(200), 'The author.', { filter: 'text' }),
  link: row(text(2000), 'The page that it is shown on.', { filter: 'text' }),
  custom_params: CUSTOM_PARAMS,
} as const satisfies SetFields;

const MediaIds = list(text(200).min(1, 'is empty'), 5000);

const oneOf = <Values extends z.ZodType>(values: Values, says: string) =>
  objectOf({
    match: field(match.nullish(), 'Whether one of the values is enough.'),
    values: field(values, says),
  });
const criteria = objectOf({
  tags: field(oneOf(list(text(200), 100), 'The tags.').nullish(), 'By their tags.'),
  custom_params: field(
    oneOf(CustomParams, 'Names and their values.').nullish(),
    'By their custom parameters.',
  ),
});

const MEDIA_FILTER = row(
  objectOf({
    include: field(criteria.nullish(), 'Which to take.'),
    exclude: field(criteria.nullish(), 'Which of these to leave out.'),
  }),
  'Which media it has: those with any or all of the tags, or custom parameters, of `include`, without those of `exclude`. Without `include` all media.',
  { default: {} },
);

const mediaLimit = (most: number) =>
  row(WholeNumber(5000).min(1, 'must be at least 1'), 'How many media at most.', { default: most });

const SORTS = [
  'created:asc',
  'created:dsc',
  'title:asc',
  'title:dsc',
  'publish_start_date:asc',
  'publish_start_date:dsc',
  'duration:asc',
  'duration:dsc',
  'views:dsc',
] as const;

export type PlaylistType = (typeof PLAYLIST_TYPES)[number];

const shown = {
  playlist_type: row(Choice(PLAYLIST_TYPES), 'Its type.', { filter: 'text' }),
} as const;

export const PLAYLIST = {
  ...named('playlist', SITE, 'playlistId'),
  says: 'A list of media. The routes of its type show and change the fields of that type.',
  verbs: ['list', 'read', 'delete'],
  metadata: COMMON,
  shown,
  kept: { playlistType: Choice(PLAYLIST_TYPES) },
} as const satisfies Resource;

function playlistOf<const T extends PlaylistType, const F extends SetFields>(
  type: T,
  says: string,
  fields: F,
) {
  return {
    ...PLAYLIST,
    type,
    noun: type.replaceAll('_', ' '),
    says,
    collection: `${SITE}/playlists/${type}`,
    one: `${SITE}/playlists/:playlistId/${type}`,
    verbs: ['create', 'read', 'update', 'delete'] as const,
    metadata: { ...COMMON, ...fields },
  };
}

const MANUAL_PLAYLIST = playlistOf('manual_playlist', 'A list of media in an order of your own.', {
  media_filter: row(
    objectOf({ include: field(oneOf(MediaIds, 'The ids of the media.').nullish(), 'Which to take.') }),
    'The ids of the media, in their order, as `include.values`.',
    { default: {} },
  ),
});

export const DYNAMIC_PLAYLIST = playlistOf(
  'dynamic_playlist',
  'All media with certain tags or custom parameters.',
  {
    media_filter: MEDIA_FILTER,
    sort: row(Choice(SORTS), 'Their order.', { default: 'publish_start_date:dsc' }),
    media_limit: mediaLimit(50),
  },
);

const TRENDING_PLAYLIST = playlistOf('trending_playlist', 'The media that viewers asked for most often.', {
  media_filter: MEDIA_FILTER,
  media_limit: mediaLimit(10),
});

const ARTICLE_MATCHING_PLAYLIST = playlistOf(
  'article_matching_playlist',
  'The media that fit the text of a page, which the request of a viewer has as `search`.',
  { media_filter: MEDIA_FILTER, media_limit: mediaLimit(10) },
);

const SEARCH_PLAYLIST = playlistOf(
  'search_playlist',
  'The media that match the search of a viewer, which the request has as `search`.',
  {
    media_filter: MEDIA_FILTER,
    query: row(text(500), 'The search text when the request has none.'),
    media_limit: mediaLimit(50),
  },
);

const RECOMMENDATIONS_PLAYLIST = playlistOf(
  'recommendations_playlist',
  'The media that are like another one, which the request has as `related_media_id`.',
  { media_filter: MEDIA_FILTER, media_limit: mediaLimit(10) },
);

export const TYPED_PLAYLISTS = [
  MANUAL_PLAYLIST,
  DYNAMIC_PLAYLIST,
  TRENDING_PLAYLIST,
  ARTICLE_MATCHING_PLAYLIST,
  SEARCH_PLAYLIST,
  RECOMMENDATIONS_PLAYLIST,
] as const;

/** A playlist of any type. Its metadata have the fields of its type. */
export interface Playlist extends Omit<Stored<typeof PLAYLIST>, 'metadata'> {
  metadata: MetadataOf<typeof PLAYLIST> & { readonly media_filter: MediaFilter };
}

type TypedPlaylist = (typeof TYPED_PLAYLISTS)[number];

export type PlaylistMetadata<T extends PlaylistType> = MetadataOf<Extract<TypedPlaylist, { type: T }>>;

type MediaFilter = PlaylistMetadata<'manual_playlist' | 'dynamic_playlist'>['media_filter'];

export function takeFromPlaylists(
  parts: Platform,
  { id, siteId }: { readonly id: string; readonly siteId: string },
): void {
  changeFilters(parts, siteId, ({ include, ...others }) =>
    include && 'values' in include && include.values.includes(id)
      ? { ...others, include: { ...include, values: include.values.filter((each) => each !== id) } }
      : undefined,
  );
}

export function changeTagOfPlaylists(
  parts: Platform,
  siteId: string,
  change: (tags: readonly string[]) => string[] | undefined,
): void {
  changeFilters(parts, siteId, (filter) => {
    const changed = Object.entries(filter).flatMap(([name, criteria]) => {
      const tags = criteria && 'tags' in criteria ? criteria.tags : undefined;
      const values = tags && change(tags.values);
      return values ? [[name, { ...criteria, tags: { ...tags, values } }] as const] : [];
    });
    return changed.length > 0 ? { ...filter, ...Object.fromEntries(changed) } : undefined;
  });
}

function changeFilters(
  { state }: Platform,
  siteId: string,
  change: (filter: MediaFilter) => MediaFilter | undefined,
): void {
  for (const playlist of state.playlists.of(siteId)) {
    const changed = change(playlist.metadata.media_filter);
    if (!changed) continue;
    state.playlists.change(playlist, { metadata: { ...playlist.metadata, media_filter: changed } });
  }
}

export function typedPlaylistCalls(parts: Platform): ReadonlyMap<PlaylistType, ResourceCalls> {
  return new Map(TYPED_PLAYLISTS.map((resource) => [resource.type, callsOfType(parts, resource)]));
}

/** A resource of any type of playlist, whose metadata are known by their table alone. */
type AnyPlaylist = Resource & { readonly shown: typeof PLAYLIST.shown };

function callsOfType(parts: Platform, typed: TypedPlaylist): ResourceCalls {
  const { state, clock } = parts;
  const resource: AnyPlaylist = typed;
  const store = state.playlists as ItemStore<Playlist & Kept<AnyPlaylist>>;
  const behaviour: Behaviour<AnyPlaylist, Playlist & Kept<AnyPlaylist>> = {
    store,
    sees: ({ playlistType }) => playlistType === typed.type,
    create({ siteId = '' }, { metadata }) {
      const values = metadata as (Playlist & Kept<AnyPlaylist>)['metadata'];
      const made = newItem(PLAYLIST, parts, { siteId, playlistType: typed.type, metadata: values });
      return state.playlists.add({ ...made, metadata: values });
    },
  };
  return callsOf(resource, behaviour, clock.now);
}
