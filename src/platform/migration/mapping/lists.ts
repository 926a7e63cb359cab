import { FIELDS } from './fields';
import type { RouteMapping, V1Resource } from './routes';

/** How many v1 lists when nothing is said; v2 lists 10 then. */
export const V1_LIMIT = 50;

/** What the array of a list is called, in v1 and in v2. */
export const LIST_NAMES: Partial<Readonly<Record<V1Resource, readonly [v1: string, v2: string]>>> = {
  video: ['videos', 'media'],
  channel: ['channels', 'playlists'],
  player: ['players', 'players'],
  conversion: ['conversions', 'originals, media_renditions'],
  track: ['tracks', 'text_tracks'],
};

/** How a list of v1 is narrowed by a parameter. */
export type ListParameter =
  | { readonly v1: string; readonly kind: 'limit' | 'offset' | 'sort' | 'search' | 'tags' | 'tags_mode' }
  /** Words with commas, one of which the v2 field must have. */
  | { readonly v1: string; readonly kind: 'any_of'; readonly v2: string }
  /** The end of a range of times. */
  | { readonly v1: string; readonly kind: 'since' | 'until'; readonly v2: string }
  /** The v2 field must have this value. */
  | { readonly v1: string; readonly kind: 'is'; readonly v2: string };

const PAGED: readonly ListParameter[] = [
  { v1: 'result_limit', kind: 'limit' },
  { v1: 'result_offset', kind: 'offset' },
  { v1: 'order_by', kind: 'sort' },
  { v1: 'search', kind: 'search' },
];

const LIST_PARAMETERS: Partial<Readonly<Record<V1Resource, readonly ListParameter[]>>> = {
  video: [
    ...PAGED,
    { v1: 'tags', kind: 'tags' },
    { v1: 'tags_mode', kind: 'tags_mode' },
    { v1: 'statuses_filter', kind: 'any_of', v2: 'status' },
    { v1: 'mediatypes_filter', kind: 'any_of', v2: 'media_type' },
    { v1: 'start_date', kind: 'since', v2: 'publish_start_date' },
    { v1: 'end_date', kind: 'until', v2: 'publish_start_date' },
  ],
  channel: [...PAGED, { v1: 'type', kind: 'is', v2: 'playlist_type' }],
  player: PAGED,
  conversion: PAGED,
  track: [
    ...PAGED,
    { v1: 'statuses_filter', kind: 'any_of', v2: 'status' },
    { v1: 'kinds_filter', kind: 'any_of', v2: 'track_kind' },
  ],
};

/** The parameters that narrow the list of a route; none where it is no list, or v2 has none. */
export function listParametersOf({ resource, action }: RouteMapping): readonly ListParameter[] {
  return (action === 'list' && LIST_PARAMETERS[resource]) || [];
}

/** The v1 fields that `search` looks in, and those that `search:*` does. */
const SEARCHED: Partial<Readonly<Record<V1Resource, readonly [usual: string[], all: string[]]>>> = {
  video: [
    ['author', 'description', 'tags', 'title', 'key'],
    ['author', 'description', 'link', 'md5', 'tags', 'title', 'key'],
  ],
  channel: [
    ['description', 'title', 'key'],
    ['author', 'description', 'link', 'title', 'key'],
  ],
  player: [
    ['name', 'key'],
    ['name', 'key'],
  ],
  track: [
    ['label', 'key'],
    ['label', 'language', 'key'],
  ],
};

export function searchedFields(resource: V1Resource, all: boolean): readonly string[] {
  return SEARCHED[resource]?.[all ? 1 : 0] ?? [];
}

/**
 * The name that `sort` and `q` of v2 have for a field of v1, as `publish_start_date` for `date`; undefined for a field
 * that v2 doesn't have. `<resource>_key` is v1's other name of `key`.
 */
export function listedName(resource: V1Resource, v1: string): string | undefined {
  if (v1.startsWith('custom.')) return `custom_params.${v1.slice('custom.'.length)}`;
  const name = v1.endsWith('_key') && v1 !== 'protectionrule_key' ? 'key' : v1;
  const place = FIELDS[resource].find((field) => field.v1 === name && field.answer !== undefined)?.answer;
  return place?.replace(/^metadata\./, '');
}
