import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import type { V2Call } from '../../../src/platform/migration/migrate-call';
import { migrateCall } from '../../../src/platform/migration/migrate-call';
import { asClientLine, asCurl } from '../../../src/platform/migration/render';

const first = (route: string, parameters: Record<string, string>): V2Call => {
  const call = migrateCall({ route, parameters }, { site: 'S' }).calls.at(-1);
  if (!call) throw new Error(`${route} has no call`);
  return call;
};

test('a call is a curl command with the secret as a variable of the shell', () => {
  expect(asCurl(first('/v1/videos/update', { video_key: 'v', title: "it's" }), 'http://127.0.0.1:8080')).toBe(
    `curl -X PATCH http://127.0.0.1:8080/v2/sites/S/media/v/ \\
  -H "Authorization: Bearer $V2_API_SECRET" \\
  -H 'Content-Type: application/json' \\
  --data '{"metadata":{"title":"it'\\''s"}}'`,
  );
});

test('a placeholder in the address is no pattern for curl', () => {
  expect(asCurl(first('/v1/videos/show', {}))).toMatch(
    /^curl -g 'https:\/\/api\.jwplayer\.com\/v2\/sites\/S\/media\/\{media_id\}\/'/,
  );
});

test('a placeholder in the query can be read and filled in', () => {
  const call = first('/v1/videos/list', {
    result_limit: '{limit}',
    result_offset: '{offset}',
    search: 'a{b',
  });
  expect(asCurl(call).split('\n')[0]).toContain(
    "curl -g 'https://api.jwplayer.com/v2/sites/S/media/?page={page}&page_length={limit}&q=",
  );
  expect(asCurl(call)).toContain('a%7Bb');
});

test.each([
  ['/v1/videos/show', { video_key: 'v' }, 'Media.get(site_id="S", media_id="v")'],
  [
    '/v1/videos/update',
    { video_key: 'v', expires_date: '', tags: 'a' },
    'Media.update(site_id="S", media_id="v", body={"metadata": {"tags": ["a"], "publish_end_date": None}})',
  ],
  ['/v1/videos/list', {}, 'Media.list(site_id="S", query_params={"page_length": "50"})'],
  ['/v1/videos/delete', { video_key: 'v' }, 'Media.delete(site_id="S", media_id="v")'],
  [
    '/v1/videos/update',
    { video_key: 'v', update_file: '1' },
    'Media.reupload(site_id="S", media_id="v", body={"upload": {"method": "direct"}})',
  ],
  [
    '/v1/players/create',
    { repeat: 'true' },
    'request("POST", "/v2/sites/S/players/", body={"metadata": {"setup_config": {"repeat": True}}})',
  ],
  [
    '/v1/videos/tracks/show',
    { video_key: 'v', track_key: 't' },
    'request("GET", "/v2/sites/S/media/v/text_tracks/t/")',
  ],
])('%s %j is a line of the Python client', (route, parameters, line) => {
  expect(asClientLine(first(route, parameters), 'python')).toBe(`jwplatform_client.${line}`);
});

test.each([
  ['/v1/videos/show', { video_key: 'v' }, "Media->get('S', 'v');"],
  [
    '/v1/videos/create',
    { title: "it's" },
    "Media->create('S', ['metadata' => ['title' => 'it\\'s'], 'upload' => ['method' => 'direct']]);",
  ],
  ['/v1/videos/list', {}, "request('GET', '/v2/sites/S/media/?page_length=50');"],
  ['/v1/videos/tracks/show', { video_key: 'v', track_key: 't' }, "Media->TextTrack->get('S', 'v', 't');"],
  [
    '/v1/videos/conversions/create',
    { video_key: 'v', template_key: 't' },
    "Media->MediaRendition->create('S', 'v', ['relationships' => ['media_rendition_template' => ['id' => 't']]]);",
  ],
  [
    '/v1/channels/create',
    { type: 'manual', title: 'a' },
    "Playlist->ManualPlaylist->create('S', ['metadata' => ['title' => 'a']]);",
  ],
  [
    '/v1/channels/update',
    { channel_key: 'c', type: 'dynamic', title: 'a' },
    "Playlist->DynamicPlaylist->update('S', 'c', ['metadata' => ['title' => 'a']]);",
  ],
  ['/v1/accounts/tags/delete', { name: 'a' }, "Site->remove_tag('S', ['name' => 'a']);"],
  // The released client forgets the site in these paths.
  ['/v1/players/show', { player_key: 'p' }, "request('GET', '/v2/sites/S/players/p/');"],
  ['/v1/channels/show', { channel_key: 'c' }, "request('GET', '/v2/sites/S/playlists/c/');"],
])('%s %j is a line of the PHP client', (route, parameters, line) => {
  expect(asClientLine(first(route, parameters), 'php')).toBe(`$jwplatform_client->${line}`);
});

test('a shell hands curl exactly the address and the body, whatever stands in them', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string(), (key, title) => {
      fc.pre(!/^\{[^{}]*\}$/.test(key));
      const call = first('/v1/videos/update', { video_key: key, title });
      // The shell's own printf shows the words that curl would get.
      const script = `printf '%s\\0' ${asCurl(call).replace(/^curl /, '')}`;
      const words = execFileSync('/bin/sh', ['-c', script], { env: { V2_API_SECRET: 'x y' } })
        .toString()
        .split('\0');
      expect(words).toContain(`https://api.jwplayer.com${call.path}`);
      expect(words).toContain('Authorization: Bearer x y');
      expect(JSON.parse(words.at(-2) ?? '')).toEqual(call.body);
    }),
    { numRuns: 40 },
  );
});

test('control characters reach no terminal', () => {
  const call = first('/v1/videos/update', { video_key: 'v', title: 'a\u001b[2Jb\u202ec\n' });
  for (const text of [asCurl(call), asClientLine(call, 'python'), asClientLine(call, 'php')]) {
    expect(text).not.toMatch(/[^\P{C}\n]/u);
  }
});
