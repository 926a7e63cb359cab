import fc from 'fast-check';
import { findRoute, ROUTES } from '../../../src/platform/migration/mapping/routes';
import { ADVICE } from '../../../src/platform/migration/mapping/sentences';
import { migrateCall, type V2Call } from '../../../src/platform/migration/migrate-call';

/** Each route with parameters, the verdict, and below it the calls that do it in v2. */
const TABLE = `
/v1/accounts/tags/create?name=a unsupported
/v1/accounts/tags/delete?name=a ready
  PUT /v2/sites/S/remove_tag/ {"name":"a"}
/v1/accounts/tags/list unsupported
/v1/accounts/tags/show?name=a unsupported
/v1/accounts/tags/update?name=a&new_name=b ready
  PUT /v2/sites/S/rename_tag/ {"old_name":"a","new_name":"b"}
/v1/accounts/usage/show?start_date=0&end_date=86400 ready
  PUT /v2/sites/S/query_usage/ {"start_date":"1970-01-01","end_date":"1970-01-02"}
/v1/channels/create?type=manual&title=a&custom.x=1 ready
  POST /v2/sites/S/playlists/manual_playlist/ {"metadata":{"title":"a","custom_params":{"x":"1"}}}
/v1/channels/create?title=a&tags=b,c&tags_mode=any&sort_order=date-desc&videos_max=5 ready
  POST /v2/sites/S/playlists/dynamic_playlist/ {"metadata":{"title":"a","media_filter":{"include":{"tags":{"values":["b","c"],"match":"any"}}},"sort":"publish_start_date:dsc","media_limit":5}}
/v1/channels/delete?channel_key=c ready
  DELETE /v2/sites/S/playlists/c/
/v1/channels/delete?channel_key=c&type=manual ready
  DELETE /v2/sites/S/playlists/c/manual_playlist/
/v1/channels/list ready
  GET /v2/sites/S/playlists/?page_length=50
/v1/channels/show?channel_key=c ready
  GET /v2/sites/S/playlists/c/
/v1/channels/update?channel_key=c&title=a ready
  GET /v2/sites/S/playlists/c/
  PATCH /v2/sites/S/playlists/c/{playlist_type}/ {"metadata":{"title":"a"}}
/v1/channels/videos/create?channel_key=c&video_key=v by_hand
  GET /v2/sites/S/playlists/c/manual_playlist/
  PATCH /v2/sites/S/playlists/c/manual_playlist/ {"metadata":{"media_filter":{"include":{"match":"any","values":["{ids of the present members}","v"]}}}}
/v1/channels/videos/delete?channel_key=c&video_key=v by_hand
  GET /v2/sites/S/playlists/c/manual_playlist/
  PATCH /v2/sites/S/playlists/c/manual_playlist/ {"metadata":{"media_filter":{"include":{"match":"any","values":["{ids of the members without v}"]}}}}
/v1/channels/videos/list?channel_key=c ready
  GET /v2/sites/S/playlists/c/manual_playlist/
/v1/channels/videos/show?channel_key=c&position=1 ready
  GET /v2/sites/S/playlists/c/manual_playlist/
/v1/channels/videos/update?channel_key=c&position_from=3&position_to=1 by_hand
  GET /v2/sites/S/playlists/c/manual_playlist/
  PATCH /v2/sites/S/playlists/c/manual_playlist/ {"metadata":{"media_filter":{"include":{"match":"any","values":["{ids of the members, the one at position 3 moved to 1}"]}}}}
/v1/players/create?name=Mine&release_channel=beta&responsive=true&autostart=viewable&playback_rate_controls=0.5,1,2&width=640&height=100%25&mute=false&__proto__x=1&custom.a=b ready
  POST /v2/sites/S/players/ {"metadata":{"name":"Mine","release_channel":"beta","setup_config":{"responsive":true,"autostart":"viewable","playbackRateControls":[0.5,1,2],"width":640,"height":"100%","mute":false,"__proto__x":1},"custom_params":{"a":"b"}}}
/v1/players/delete?player_key=p ready
  DELETE /v2/sites/S/players/p/
/v1/players/list ready
  GET /v2/sites/S/players/?page_length=50
/v1/players/show?player_key=p ready
  GET /v2/sites/S/players/p/
/v1/players/update?player_key=p&name=P ready
  PATCH /v2/sites/S/players/p/ {"metadata":{"name":"P"}}
/v1/players/update?player_key=p&preload=auto by_hand
  GET /v2/sites/S/players/p/
  PATCH /v2/sites/S/players/p/ {"metadata":{"setup_config":{"{name of each to keep}":"{its value}","preload":"auto"}}}
/v1/status unsupported
/v1/videos/create?title=a ready
  POST /v2/sites/S/media/ {"metadata":{"title":"a"},"upload":{"method":"direct"}}
/v1/videos/create?sourcetype=file&upload_method=multipart ready
  POST /v2/sites/S/media/ {"upload":{"method":"multipart"}}
/v1/videos/create?download_url=https://a.example/v ready
  POST /v2/sites/S/media/ {"upload":{"method":"fetch","download_url":"https://a.example/v"}}
/v1/videos/delete?video_key=v,w,v ready
  DELETE /v2/sites/S/media/v/
  DELETE /v2/sites/S/media/w/
/v1/videos/delete?video_key=v, ready
  DELETE /v2/sites/S/media/v/
/v1/channels/delete?channel_key=c,d&type=manual ready
  DELETE /v2/sites/S/playlists/c/manual_playlist/
  DELETE /v2/sites/S/playlists/d/manual_playlist/
/v1/videos/list ready
  GET /v2/sites/S/media/?page_length=50
/v1/videos/show?video_key=v ready
  GET /v2/sites/S/media/v/
/v1/videos/update?video_key=v&update_file=false ready
  PATCH /v2/sites/S/media/v/ {}
/v1/videos/update?video_key=v&tags=new,+video,&date=1237387851&expires_date=&link=https://a.example&sourceurl=https://a.example/a.m3u8&sourcetype=url&sourceformat=mp4&trim_in_point=00:00:01.000&md5=d4&api_key=k ready
  PATCH /v2/sites/S/media/v/ {"metadata":{"tags":["new","video"],"publish_start_date":"2009-03-18T14:50:51+00:00","publish_end_date":null,"permalink":"https://a.example"}}
  PUT /v2/sites/S/media/v/reupload/ {"upload":{"method":"external","mime_type":"video/mp4","source_url":"https://a.example/a.m3u8","trim_in_point":"00:00:01.000"}}
/v1/videos/update?video_key=v&custom.a=1&custom.-b= by_hand
  GET /v2/sites/S/media/v/
  PATCH /v2/sites/S/media/v/ {"metadata":{"custom_params":{"{name of each to keep}":"{its value}","a":"1"}}}
/v1/videos/update?video_key=v&title=a&update_file=true ready
  PATCH /v2/sites/S/media/v/ {"metadata":{"title":"a"}}
  PUT /v2/sites/S/media/v/reupload/ {"upload":{"method":"direct"}}
/v1/videos/conversions/create?video_key=v&template_key=t ready
  POST /v2/sites/S/media/v/media_renditions/ {"relationships":{"media_rendition_template":{"id":"t"}}}
/v1/videos/conversions/delete?conversion_key=c by_hand
  DELETE /v2/sites/S/media/{media_id}/media_renditions/c/
/v1/videos/conversions/list?video_key=v ready
  GET /v2/sites/S/media/v/originals/?page_length=50
  GET /v2/sites/S/media/v/media_renditions/?page_length=50
/v1/videos/conversions/show?conversion_key=c by_hand
  GET /v2/sites/S/media/{media_id}/media_renditions/c/
/v1/videos/tags/list unsupported
/v1/videos/thumbnails/show?video_key=v ready
  GET /v2/sites/S/thumbnails/?q=media_id%3A+v
  GET /v2/sites/S/thumbnails/{thumbnail_id}
/v1/videos/thumbnails/show by_hand
  GET /v2/sites/S/thumbnails/?q=media_id%3A+%7Bmedia_id%7D
  GET /v2/sites/S/thumbnails/{thumbnail_id}
/v1/videos/thumbnails/update?video_key=v&position=2.5 ready
  POST /v2/sites/S/thumbnails/ {"relationships":{"media":[{"id":"v"}]},"upload":{"source_type":"video_position","source_media_id":"v","video_position":2.5,"thumbnail_type":"static"}}
  PATCH /v2/sites/S/thumbnails/{thumbnail_id} {"relationships":{"media":[{"id":"v","is_poster":true}]}}
/v1/videos/thumbnails/update?video_key=v ready
  POST /v2/sites/S/thumbnails/ {"relationships":{"media":[{"id":"v"}]},"upload":{"method":"direct","source_type":"custom_upload","thumbnail_type":"static"}}
  PATCH /v2/sites/S/thumbnails/{thumbnail_id} {"relationships":{"media":[{"id":"v","is_poster":true}]}}
/v1/videos/tracks/create?video_key=v&kind=captions&label=English&language=en ready
  POST /v2/sites/S/media/v/text_tracks/ {"metadata":{"track_kind":"captions","label":"English","srclang":"en"},"upload":{"method":"direct"}}
/v1/players/create?name=a&playback_rate_controls=1&skin=007 ready
  POST /v2/sites/S/players/ {"metadata":{"name":"a","setup_config":{"playbackRateControls":[1],"skin":"007"}}}
/v1/videos/thumbnails/update by_hand
  POST /v2/sites/S/thumbnails/ {"relationships":{"media":[{"id":"{media_id}"}]},"upload":{"method":"direct","source_type":"custom_upload","thumbnail_type":"static"}}
  PATCH /v2/sites/S/thumbnails/{thumbnail_id} {"relationships":{"media":[{"id":"{media_id}","is_poster":true}]}}
/v1/videos/create?custom.-a= ready
  POST /v2/sites/S/media/ {"upload":{"method":"direct"}}
/v1/videos/update?video_key=v&update_file=true ready
  PUT /v2/sites/S/media/v/reupload/ {"upload":{"method":"direct"}}
/v1/videos/tracks/delete?track_key=t by_hand
  DELETE /v2/sites/S/media/{media_id}/text_tracks/t/
/v1/videos/tracks/list?video_key=v ready
  GET /v2/sites/S/media/v/text_tracks/?page_length=50
/v1/videos/tracks/show?video_key=v&track_key=t ready
  GET /v2/sites/S/media/v/text_tracks/t/
/v1/videos/tracks/update?video_key=v&track_key=t&label=a ready
  PATCH /v2/sites/S/media/v/text_tracks/t/ {"metadata":{"label":"a"}}
`;

const ROWS = TABLE.trim()
  .split(/\n(?! )/)
  .map((row) => row.split('\n').map((each) => each.trim()));

function migrated(call: string) {
  const [route = '', query] = call.split('?');
  return migrateCall({ route, parameters: Object.fromEntries(new URLSearchParams(query)) }, 'S');
}

function line({ method, path, query, body }: V2Call): string {
  const search = new URLSearchParams(query).toString();
  const sent = body === undefined ? '' : ` ${JSON.stringify(body)}`;
  return `${method} ${path}${search === '' ? '' : `?${search}`}${sent}`;
}

test.each(ROWS)('%s in v2', (row, ...calls) => {
  const [call = '', verdict] = row.split(' ');
  const migration = migrated(call);
  expect([migration.verdict, ...migration.calls.map(line)]).toEqual([verdict, ...calls]);
});

test.each([
  [
    '/v1/videos/conversions/create?video_key={k}&template_key={t}',
    [],
    'POST /v2/sites/S/media/{k}/media_renditions/ {"relationships":{"media_rendition_template":{"id":"{t}"}}}',
  ],
  [
    '/v1/videos/update?video_key={k}&title={title}&tags={tags}&date={date}',
    ['tags', 'date'],
    'PATCH /v2/sites/S/media/{k}/ {"metadata":{"title":"{title}","tags":["{tags}"],"publish_start_date":"{date}"}}',
  ],
  [
    '/v1/videos/list?start_date={since}&result_limit=5',
    ['start_date'],
    'GET /v2/sites/S/media/?page_length=5&q=publish_start_date%3A+%5B%7Bsince%7D+TO+*%5D',
  ],
])('a placeholder replaces an unknown value, whose form may be another: %s', (call, byHand, ...calls) => {
  const { notes, calls: found } = migrated(call);
  expect(found.map(line)).toEqual(calls);
  expect(notes.filter((note) => note.byHand).map(({ field }) => field)).toEqual(byHand);
});

test('the table has every route', () => {
  const routes = new Set(ROWS.map(([call = '']) => call.split(/[? ]/)[0]));
  expect([...routes].sort()).toEqual(ROUTES.map(({ route }) => route).sort());
});

test('each call quotes the row of the mapping and what the contract says of the resource', () => {
  const { notes } = migrated('/v1/videos/update?video_key=v&date=0&md5=x&api_format=xml');
  expect(notes.filter(({ byHand }) => byHand)).toEqual([]);
  expect(notes.map(({ kind, field, sentence }) => [kind, field, sentence])).toEqual([
    ['changed', undefined, '/v1/videos/update → PATCH /v2/sites/{site_id}/media/{media_id}/'],
    [
      'changed',
      undefined,
      'Management API v2 uses Bearer authentication: header `Authorization: Bearer <V2_API_SECRET>`. v1 used signature-based authentication and is replaced.',
    ],
    ['changed', undefined, 'Resource renames: video → media'],
    [
      'beware',
      undefined,
      'v1 error body (replaced): object with `code` (for example `ServerError`) and `message`; one error at a time. `message` became `description`. v2 error body: object with `errors`, an array; each item has `code` (short string meant for automation, snake case; `server_error` is the code shown) and `description` (human-readable explanation). Several errors can be returned in one response.',
    ],
    ['removed', 'api_format', 'v2 answers JSON only; v1 also answered XML and others, as `api_format` said.'],
    ['changed', 'date', 'Media field renames: `date` to `publish_start_date`'],
    ['removed', 'md5', '`md5` and `size` removed'],
  ]);
});

test.each([
  ['/v1/videos/create?title=a', ['sendFile']],
  ['/v1/videos/tracks/create?video_key=v&kind=captions', ['sendFile']],
  ['/v1/videos/create?title=a&upload_method=multipart', ['sendFile']],
  ['/v1/videos/update?video_key=v&update_file=true', ['reupload', 'sendFile']],
  ['/v1/videos/thumbnails/show?video_key=v', ['thumbnailOf']],
  ['/v1/videos/thumbnails/update?video_key=v', ['sendFile']],
  ['/v1/channels/create?title=a', ['defaultType']],
  ['/v1/channels/update?channel_key=c&title=a', ['playlistType']],
  ['/v1/channels/videos/list?channel_key=c', ['playlistRead']],
  ['/v1/videos/conversions/list?video_key=v', ['pageLength', 'originals']],
  ['/v1/videos/list?result_limit=2&search:nothing=a', []],
  ['/v1/videos/list?result_limit=2&search=a', ['search']],
  ['/v1/videos/delete?video_key=v', []],
  ['/v1/videos/delete?video_key=v,w', ['several']],
])('%s has the advice %j', (call, names) => {
  const sentences = migrated(call).notes.map(({ sentence }) => sentence);
  const advised = Object.entries(ADVICE).filter(([, sentence]) => sentences.includes(sentence));
  expect(advised.map(([name]) => name)).toEqual(names);
});

test('a route that is not supported says so with the row of the mapping', () => {
  expect(migrated('/v1/status')).toEqual({
    route: '/v1/status',
    verdict: 'unsupported',
    calls: [],
    notes: [{ kind: 'unsupported', sentence: '/v1/status → not supported', byHand: true }],
    answers: [],
  });
});

test('an unknown route is reported with the nearest one, and possible ids in it are not shown', () => {
  expect(migrated('/v1/videos/lst').notes[0]?.sentence).toBe(
    '/v1/videos/lst is no route of the mapping. Did you mean /v1/videos/list?',
  );
  expect(migrated('/v1/objects/uA96CFtJa138E2T5GhKfngml').route).toBe('/v1/objects/{…}');
  expect(migrated('/v1/videos/upload').notes[0]?.sentence).toMatch(/goes by PUT to the `upload_link`/);
});

test('unknown parameters and unusable values are reported, and need work by hand', () => {
  const { verdict, notes } = migrated(
    '/v1/videos/update?video_key=v&titel=a&date=soon&expires_date=9999999999999',
  );
  expect(verdict).toBe('by_hand');
  const value = 'The value must be a UNIX time in seconds, as 1237387851; it is left out.';
  const unknown = 'v2 has no place for this parameter; it is left out. Did you mean `title`?';
  expect(notes.filter(({ byHand }) => byHand)).toEqual([
    { kind: 'beware', field: 'date', sentence: value, byHand: true },
    { kind: 'beware', field: 'expires_date', sentence: value, byHand: true },
    { kind: 'unknown', field: 'titel', sentence: unknown, byHand: true },
  ]);
  const options = migrated('/v1/players/create?name=p&mutedAutoplayAllowed=true');
  expect(migrated('/v1/videos/create?custom.a=b').notes.map(({ field }) => field)).toContain('custom.*');
  expect(options.notes.map(({ field }) => field)).toContain('mutedAutoplayAllowed');
});

test('a key that is missing stays a placeholder, and a placeholder of the caller stays what it is', () => {
  for (const call of ['/v1/videos/show', '/v1/videos/show?video_key='])
    expect(migrated(call).calls.map(line)).toEqual(['GET /v2/sites/S/media/{media_id}/']);
  expect(migrated('/v1/videos/show').verdict).toBe('by_hand');
  const { verdict, calls } = migrated('/v1/videos/show?video_key={video.key}');
  expect([verdict, ...calls.map(line)]).toEqual(['ready', 'GET /v2/sites/S/media/{video.key}/']);
});

test('a key with slashes or half a character stays one part of the path', () => {
  expect(
    migrateCall({ route: '/v1/videos/show', parameters: { video_key: '../a/b\ud800' } }).calls[0]?.path,
  ).toBe('/v2/sites/{site_id}/media/..%2Fa%2Fb%EF%BF%BD/');
});

test('renamed and removed fields of the v2 answer are reported', () => {
  const answers = (call: string) => migrated(call).answers.map(({ v1, v2 }) => `${v1} ${v2}`);
  expect(answers('/v1/videos/list').join(', ')).toBe(
    'videos media, key id, title metadata.title, description metadata.description, author metadata.author, ' +
      'tags metadata.tags, date metadata.publish_start_date, expires_date metadata.publish_end_date, ' +
      'link metadata.permalink, category metadata.category, language metadata.language, ' +
      'protectionrule_key metadata.protection_rule_key, error error_message, mediatype media_type, ' +
      'updated last_modified, sourcetype hosting_type, sourceformat mime_type, sourceurl source_url, ' +
      'md5 null, size null, custom metadata.custom_params',
  );
  expect(answers('/v1/videos/tracks/show?track_key=t').join(', ')).toBe(
    'key id, kind track_kind, label metadata.label, language metadata.srclang, position metadata.position, ' +
      'error error_message, updated last_modified, link delivery_url, md5 null, size null',
  );
  expect(answers('/v1/videos/delete?video_key=v')).toEqual([]);
});

test('a route is found with slashes at its end and doubled ones, and no other text is', () => {
  expect(findRoute('/v1/videos/list/')?.route).toBe('/v1/videos/list');
  expect(findRoute('/v1//videos/list')?.route).toBe('/v1/videos/list');
  for (const path of ['/v1/videos/List', '/v2/videos/list', '__proto__'])
    expect(findRoute(path)).toBeUndefined();
});

const SECRET = 'uA96CFtJa138E2T5GhKfngml';

test('no secret is in the report, wherever the call has it', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ROUTES.map(({ route }) => route), '/v1/other/thing'),
      fc.constantFrom('api_key', 'api_secret', 'api_signature', 'API_SECRET', 'secret', 'client_secret'),
      (route, name) => {
        const migration = migrateCall({ route, parameters: { [name]: SECRET, title: 'a', name: 'b' } });
        expect(JSON.stringify(migration)).not.toContain(SECRET);
      },
    ),
  );
  for (const route of [`/v1/${SECRET}`, '/v1/videos/show']) {
    const migration = migrateCall({ route, parameters: { [SECRET]: '' } });
    expect(JSON.stringify(migration)).not.toContain(SECRET);
  }
});

test('a call of the mapping with any parameters has a verdict and paths of v2', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ROUTES.map(({ route }) => route)),
      fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.array(fc.string()))),
      (route, parameters) => {
        const { calls, verdict } = migrateCall({ route, parameters });
        expect(verdict === 'unsupported').toBe(findRoute(route)?.v2.length === 0);
        for (const { path } of calls) expect(path).toMatch(/^\/v2\/sites\/[^?#\s]+$/);
      },
    ),
  );
});
