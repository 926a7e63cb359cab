import { CONTRACT } from './sentences';

export type HttpMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

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

export interface RouteMapping {
  /** As `/v1/videos/create`. */
  readonly route: string;
  readonly resource: V1Resource;
  readonly action: V1Action;
  /** The v2 operations that replace it; empty: v2 doesn't support it. */
  readonly v2: readonly V2Operation[];
  /** Of several: whether one of them does it, or all are needed. */
  readonly joined: 'or' | 'and';
  readonly sentence: string | undefined;
}

/** Every row of the contract's route mapping, in its order. */
const ROWS = `
/v1/accounts/tags/create → not supported
/v1/accounts/tags/delete → PUT /v2/sites/{site_id}/remove_tag/
/v1/accounts/tags/list → not supported
/v1/accounts/tags/show → not supported
/v1/accounts/tags/update → PUT /v2/sites/{site_id}/rename_tag/
/v1/accounts/usage/show → PUT /v2/sites/{site_id}/query_usage/
/v1/channels/create → POST /v2/sites/{site_id}/playlists/{playlist_type}/
/v1/channels/delete → DELETE /v2/sites/{site_id}/playlists/{playlist_id}/ or DELETE /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/list → GET /v2/sites/{site_id}/playlists/
/v1/channels/show → GET /v2/sites/{site_id}/playlists/{playlist_id}/ or GET /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/update → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/videos/create → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/videos/delete → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/videos/list → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/videos/show → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/channels/videos/update → PATCH /v2/sites/{site_id}/playlists/{playlist_id}/{playlist_type}/
/v1/players/create → POST /v2/sites/{site_id}/players/
/v1/players/delete → DELETE /v2/sites/{site_id}/players/{player_id}/
/v1/players/list → GET /v2/sites/{site_id}/players/
/v1/players/show → GET /v2/sites/{site_id}/players/{player_id}/
/v1/players/update → PATCH /v2/sites/{site_id}/players/{player_id}/
/v1/status → not supported
/v1/videos/create → POST /v2/sites/{site_id}/media/
/v1/videos/delete → DELETE /v2/sites/{site_id}/media/{media_id}/
/v1/videos/list → GET /v2/sites/{site_id}/media/
/v1/videos/show → GET /v2/sites/{site_id}/media/{media_id}/
/v1/videos/update → PATCH /v2/sites/{site_id}/media/{media_id}/
/v1/videos/conversions/create → POST /v2/sites/{site_id}/media/{media_id}/media_renditions/
/v1/videos/conversions/delete → DELETE /v2/sites/{site_id}/media/{media_id}/media_renditions/{rendition_id}/
/v1/videos/conversions/list → GET /v2/sites/{site_id}/media/{media_id}/originals/ and GET /v2/sites/{site_id}/media/{media_id}/media_renditions/
/v1/videos/conversions/show → GET /v2/sites/{site_id}/media/{media_id}/media_renditions/{rendition_id}/
/v1/videos/tags/list → not supported
/v1/videos/thumbnails/show → GET /v2/sites/{site_id}/thumbnails/{thumbnail_id}
/v1/videos/thumbnails/update → POST /v2/sites/{site_id}/thumbnails/ and PATCH /v2/sites/{site_id}/thumbnails/{thumbnail_id}
/v1/videos/tracks/create → POST /v2/sites/{site_id}/media/{media_id}/text_tracks/
/v1/videos/tracks/delete → DELETE /v2/sites/{site_id}/media/{media_id}/text_tracks/{track_id}/
/v1/videos/tracks/list → GET /v2/sites/{site_id}/media/{media_id}/text_tracks/
/v1/videos/tracks/show → GET /v2/sites/{site_id}/media/{media_id}/text_tracks/{track_id}/
/v1/videos/tracks/update → PATCH /v2/sites/{site_id}/media/{media_id}/text_tracks/{track_id}/
`;

const RESOURCES: Readonly<Record<string, readonly [V1Resource, sentence?: string]>> = {
  '/v1': ['status'],
  '/v1/accounts/tags': ['tag', CONTRACT.tag],
  '/v1/accounts/usage': ['usage', CONTRACT.usage],
  '/v1/channels': ['channel', CONTRACT.channel],
  '/v1/channels/videos': ['channel_video', CONTRACT.channel],
  '/v1/players': ['player', CONTRACT.player],
  '/v1/videos': ['video', CONTRACT.video],
  '/v1/videos/conversions': ['conversion', CONTRACT.conversion],
  '/v1/videos/tags': ['video_tag', CONTRACT.tag],
  '/v1/videos/thumbnails': ['thumbnail', CONTRACT.thumbnail],
  '/v1/videos/tracks': ['track', CONTRACT.track],
};

export const ROUTES: readonly RouteMapping[] = ROWS.trim().split('\n').map(readRow);

function readRow(row: string): RouteMapping {
  const [route = '', v2 = ''] = row.split(' → ');
  const [, path = '', method = ''] = /^(.*)\/(.*)$/.exec(route) ?? [];
  const [resource = 'status', sentence] = RESOURCES[path] ?? [];
  return {
    route,
    resource,
    action: resource === 'status' ? 'show' : (method as V1Action),
    v2: [...v2.matchAll(/([A-Z]+) (\S+)/g)].map(([, verb, place = '']) => ({
      method: verb as HttpMethod,
      path: place,
    })),
    joined: v2.includes(' and ') ? 'and' : 'or',
    sentence,
  };
}

const BY_ROUTE = new Map(ROUTES.map((mapping) => [mapping.route, mapping]));

/** The row of a v1 route; slashes at its end and double ones don't matter, as for v1 itself. */
export function findRoute(path: string): RouteMapping | undefined {
  return BY_ROUTE.get(path) ?? BY_ROUTE.get(path.replaceAll(/\/{2,}/g, '/').replace(/\/$/, ''));
}

/** Any text as a route that can be shown: parts that may be an id or a secret become `{…}`. */
export function shownRoute(route: string): string {
  const parts = route.slice(0, 500).split('/').slice(0, 8);
  return parts.map((part) => (/^(?:[a-z][a-z_-]{0,39}|v1|)$/.test(part) ? part : '{…}')).join('/');
}

export function describeMapping({ route, v2, joined }: RouteMapping): string {
  if (v2.length === 0) return `${route} → not supported`;
  return `${route} → ${v2.map(({ method, path }) => `${method} ${path}`).join(` ${joined} `)}`;
}
