import { CONTRACT } from './sentences';

export type HttpMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** What a v1 route is about. */
export type V1Resource =
  | 'tag'
  | 'usage'
  | 'channel'
  | 'channel_video'
  | 'player'
  | 'status'
  | 'video'
  | 'conversion'
  | 'video_tag'
  | 'thumbnail'
  | 'track';

export type V1Action = 'create' | 'delete' | 'list' | 'show' | 'update';

interface V2Operation {
  readonly method: HttpMethod;
  /** With placeholders in braces, as `/v2/sites/{site_id}/media/{media_id}/`. */
  readonly path: string;
}

/** A row of the route mapping. */
export interface RouteMapping {
  /** As `/v1/videos/create`. */
  readonly route: string;
  readonly resource: V1Resource;
  readonly action: V1Action;
  /** What does it in v2; empty: v2 doesn't support it. */
  readonly v2: readonly V2Operation[];
  /** Of several: whether one of them does it, or all are needed. */
  readonly joined: 'or' | 'and';
  /** What the contract says of the resource. */
  readonly sentence: string | undefined;
}

const SITE = '/v2/sites/{site_id}/';
const MEDIA = `${SITE}media/{media_id}/`;
const PLAYLIST = `${SITE}playlists/{playlist_id}/`;
const TYPED_PLAYLIST = `${PLAYLIST}{playlist_type}/`;
const RENDITION = `${MEDIA}media_renditions/{rendition_id}/`;
const TRACK = `${MEDIA}text_tracks/{track_id}/`;
/** As the contract writes it: without a slash at its end. */
const THUMBNAIL = `${SITE}thumbnails/{thumbnail_id}`;

const operation = (method: HttpMethod) => (path: string) => ({ method, path });
const get = operation('GET');
const post = operation('POST');
const patch = operation('PATCH');
const put = operation('PUT');
const remove = operation('DELETE');

type Row = readonly [action: V1Action, joined: 'or' | 'and', ...operations: readonly V2Operation[]];

function rows(prefix: string, resource: V1Resource, sentence: string, table: readonly Row[]): RouteMapping[] {
  return table.map(([action, joined, ...operations]) => ({
    route: prefix === '/v1/status' ? prefix : `${prefix}/${action}`,
    resource,
    action,
    v2: operations,
    joined,
    sentence: sentence === '' ? undefined : sentence,
  }));
}

/** Every row of the contract's route mapping, in its order. */
export const ROUTES: readonly RouteMapping[] = [
  ...rows('/v1/accounts/tags', 'tag', CONTRACT.tag, [
    ['create', 'or'],
    ['delete', 'or', put(`${SITE}remove_tag/`)],
    ['list', 'or'],
    ['show', 'or'],
    ['update', 'or', put(`${SITE}rename_tag/`)],
  ]),
  ...rows('/v1/accounts/usage', 'usage', CONTRACT.usage, [['show', 'or', put(`${SITE}query_usage/`)]]),
  ...rows('/v1/channels', 'channel', CONTRACT.channel, [
    ['create', 'or', post(`${SITE}playlists/{playlist_type}/`)],
    ['delete', 'or', remove(PLAYLIST), remove(TYPED_PLAYLIST)],
    ['list', 'or', get(`${SITE}playlists/`)],
    ['show', 'or', get(PLAYLIST), get(TYPED_PLAYLIST)],
    ['update', 'or', patch(TYPED_PLAYLIST)],
  ]),
  ...rows('/v1/channels/videos', 'channel_video', CONTRACT.channel, [
    ['create', 'or', patch(TYPED_PLAYLIST)],
    ['delete', 'or', patch(TYPED_PLAYLIST)],
    ['list', 'or', patch(TYPED_PLAYLIST)],
    ['show', 'or', patch(TYPED_PLAYLIST)],
    ['update', 'or', patch(TYPED_PLAYLIST)],
  ]),
  ...rows('/v1/players', 'player', CONTRACT.player, [
    ['create', 'or', post(`${SITE}players/`)],
    ['delete', 'or', remove(`${SITE}players/{player_id}/`)],
    ['list', 'or', get(`${SITE}players/`)],
    ['show', 'or', get(`${SITE}players/{player_id}/`)],
    ['update', 'or', patch(`${SITE}players/{player_id}/`)],
  ]),
  ...rows('/v1/status', 'status', '', [['show', 'or']]),
  ...rows('/v1/videos', 'video', CONTRACT.video, [
    ['create', 'or', post(`${SITE}media/`)],
    ['delete', 'or', remove(MEDIA)],
    ['list', 'or', get(`${SITE}media/`)],
    ['show', 'or', get(MEDIA)],
    ['update', 'or', patch(MEDIA)],
  ]),
  ...rows('/v1/videos/conversions', 'conversion', CONTRACT.conversion, [
    ['create', 'or', post(`${MEDIA}media_renditions/`)],
    ['delete', 'or', remove(RENDITION)],
    ['list', 'and', get(`${MEDIA}originals/`), get(`${MEDIA}media_renditions/`)],
    ['show', 'or', get(RENDITION)],
  ]),
  ...rows('/v1/videos/tags', 'video_tag', CONTRACT.tag, [['list', 'or']]),
  ...rows('/v1/videos/thumbnails', 'thumbnail', CONTRACT.thumbnail, [
    ['show', 'or', get(THUMBNAIL)],
    ['update', 'and', post(`${SITE}thumbnails/`), patch(THUMBNAIL)],
  ]),
  ...rows('/v1/videos/tracks', 'track', CONTRACT.track, [
    ['create', 'or', post(`${MEDIA}text_tracks/`)],
    ['delete', 'or', remove(TRACK)],
    ['list', 'or', get(`${MEDIA}text_tracks/`)],
    ['show', 'or', get(TRACK)],
    ['update', 'or', patch(TRACK)],
  ]),
];

const BY_ROUTE = new Map(ROUTES.map((mapping) => [mapping.route, mapping]));

/** The row of a v1 route; slashes at its end and double ones don't matter, as for v1 itself. */
export function findRoute(path: string): RouteMapping | undefined {
  return BY_ROUTE.get(path) ?? BY_ROUTE.get(path.replaceAll(/\/{2,}/g, '/').replace(/\/$/, ''));
}

/** A route that may be any text, as it can be shown: what may be an id or a secret is `{…}`. */
export function shownRoute(route: string): string {
  const parts = route.slice(0, 500).split('/').slice(0, 8);
  return parts.map((part) => (/^(?:[a-z][a-z_-]{0,39}|v1|)$/.test(part) ? part : '{…}')).join('/');
}

/** The row as the contract's table writes it. */
export function describeMapping({ route, v2, joined }: RouteMapping): string {
  if (v2.length === 0) return `${route} → not supported`;
  return `${route} → ${v2.map(({ method, path }) => `${method} ${path}`).join(` ${joined} `)}`;
}
