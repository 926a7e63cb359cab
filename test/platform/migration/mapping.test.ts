import { describeMapping, findRoute, ROUTES } from '../../../src/platform/migration/mapping/routes';

/** The route mapping of the contract, row by row. */
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

test('the mapping has every row of the contract, in its order, and no other', () => {
  expect(ROUTES.map(describeMapping)).toEqual(ROWS.trim().split('\n'));
});

test('a route is found with slashes at its end and doubled ones, and no other text is', () => {
  expect(findRoute('/v1/videos/list/')?.route).toBe('/v1/videos/list');
  expect(findRoute('/v1//videos/list')?.route).toBe('/v1/videos/list');
  expect(findRoute('/v1/videos/List')).toBeUndefined();
  expect(findRoute('/v2/videos/list')).toBeUndefined();
  expect(findRoute('__proto__')).toBeUndefined();
});
