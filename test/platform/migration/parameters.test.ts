import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { findRoute, type RouteMapping } from '../../../src/platform/migration/mapping/routes';
import { migrateCall, type V2Call } from '../../../src/platform/migration/migrate-call';
import { changeCustom, readParameters, v1Fields } from '../../../src/platform/migration/parameters';
import { asClientLine, asCurl } from '../../../src/platform/migration/render';

function route(name: string): RouteMapping {
  const mapping = findRoute(name);
  if (!mapping) throw new Error(`${name} is no route`);
  return mapping;
}

const read = (name: string, parameters: Record<string, string>) => readParameters(route(name), parameters);
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

test('names of an object prototype are names as any others', () => {
  const named = JSON.parse('{"__proto__":"1","custom.__proto__":"2","constructor":"3"}');
  const parts = read('/v1/players/update', named);
  expect(JSON.stringify(parts.body)).toBe('{"metadata":{"setup_config":{"__proto__":1,"constructor":3}}}');
  expect(JSON.stringify(changeCustom({ a: 'b' }, parts.custom))).toBe('{"a":"b","__proto__":"2"}');
  expect(({} as Record<string, unknown>).a).toBeUndefined();
});

test('custom parameters are set and taken away, and the others stay', () => {
  const { custom } = read('/v1/videos/update', { 'custom.a': '1', 'custom.-b': '', 'custom.c.d': '2' });
  expect(plain(custom)).toEqual({ set: { a: '1', 'c.d': '2' }, removed: ['b'] });
  expect(plain(changeCustom({ b: 'x', e: 'y' }, custom))).toEqual({ e: 'y', a: '1', 'c.d': '2' });
});

test('a value that v2 cannot take is reported with the valid form, and so is each of several', () => {
  expect(
    read('/v1/videos/create', { date: 'yesterday', sourcetype: 'tape', upload_method: 'ftp' }).faults,
  ).toEqual([
    { field: 'date', fault: 'must be a UNIX time in seconds, as 1237387851' },
    { field: 'sourcetype', fault: 'must be one of file, url' },
    {
      field: 'upload_method',
      fault: 'must be one of single, s3, multipart, resumable, fetch, external, direct',
    },
  ]);
  const channel = { type: 'radio', sort_order: 'size-asc', videos_max: 'all' };
  expect(read('/v1/channels/create', channel).faults.map(({ fault }) => fault)).toEqual([
    'must be one of manual, dynamic, trending, article_matching, search, recommendations',
    'must be one of date, title, duration, views, with -asc or -desc',
    'must be a number, as 12.5',
  ]);
  const player = { repeat: 'maybe', playback_rate_controls: 'fast' };
  expect(read('/v1/players/create', player).faults.map(({ fault }) => fault)).toEqual([
    'must be true, false, or numbers with commas between them',
    'must be true or false',
  ]);
});

test('an unknown parameter is reported with the one that was meant', () => {
  expect(read('/v1/videos/create', { titel: 'a', zzzzzzzzzz: 'b' }).unknown).toEqual([
    { field: 'titel', near: 'title' },
    { field: 'zzzzzzzzzz', near: undefined },
  ]);
  expect(read('/v1/videos/show', { title: 'a' }).unknown).toHaveLength(1);
});

const LISTS = String.raw`
-> page_length=50
result_limit=05&result_offset=020 -> page=5; page_length=5
result_limit=00&result_offset=5 -> 
order_by=date:desc,title -> page_length=50; sort=publish_start_date:dsc,title:asc
order_by=protectionrule_key -> page_length=50; sort=protection_rule_key:asc
order_by={field} -> page_length=50; sort={field}
tags=a,b c -> page_length=50; q=tags: a AND tags: "b c"
tags=a,b&tags_mode=any -> page_length=50; q=(tags: a OR tags: b)
statuses_filter=ready,failed -> page_length=50; q=(status: ready OR status: failed)
mediatypes_filter=audio -> page_length=50; q=media_type: audio
search:title=a"b* -> page_length=50; q=title: "*a\"b\**"
search:custom.a=x -> page_length=50; q=custom_params.a: "*x*"
search=x -> page_length=50; q=(author: "*x*" OR description: "*x*" OR tags: "*x*" OR title: "*x*" OR id: "*x*")
start_date=0&end_date=86400 -> page_length=50; q=publish_start_date: [1970-01-01T00:00:00+00:00 TO 1970-01-02T00:00:00+00:00]
end_date=0 -> page_length=50; q=publish_start_date: [* TO 1970-01-01T00:00:00+00:00]
result_limit={n}&search= -> page_length={n}
`;

test.each(LISTS.trim().split('\n'))('a list of v1 asks v2 for the same: %s', (row) => {
  const [query, expected = ''] = row.split('-> ');
  const parameters = Object.fromEntries(new URLSearchParams(query?.trim()));
  const pairs = expected.split('; ').map((pair) => pair.split(/=(.*)/).slice(0, 2));
  expect(read('/v1/videos/list', parameters).list?.query).toEqual(Object.fromEntries(pairs));
});

test('parameters of a v1 list that v2 does not have are reported', () => {
  const list = read('/v1/videos/list', {
    result_offset: '7',
    result_limit: 'x',
    order_by: 'views:desc,title:constructor',
    'search:custom.*': 'a',
    tags: 'a',
    tags_mode: 'some',
  }).list;
  expect(list?.notes.filter(({ byHand }) => byHand).map(({ field }) => field)).toEqual([
    'order_by',
    'search:custom.*',
    'result_offset',
  ]);
  expect(list?.faults).toEqual([
    { field: 'result_limit', fault: 'must be a whole number, 0 or more' },
    { field: 'order_by', fault: 'must be as date:asc or date:desc' },
    { field: 'tags_mode', fault: 'must be all or any' },
  ]);
});

test('a media of v2 has the names and forms of v1', () => {
  const type = { media_type: 'video', hosting_type: 'external', mime_type: 'video/webm', source_url: null };
  const state = { id: 'Ny05CEfj', status: 'failed', error_message: 'Broken file', duration: 12.5 };
  expect(v1Fields('video', { ...state, ...type })).toEqual({
    key: 'Ny05CEfj',
    status: 'failed',
    error: 'Broken file',
    mediatype: 'video',
    duration: '12.5',
    sourcetype: 'url',
    sourceformat: 'webm_vp8',
    sourceurl: null,
  });
});

test('the options of a player are at top level again, and the link of a track is an object', () => {
  expect(
    v1Fields('player', {
      id: 'p',
      metadata: { name: 'P', setup_config: { playbackRateControls: [1, 2], mute: true, name: 'no' } },
    }),
  ).toEqual({ key: 'p', name: 'P', playback_rate_controls: '1,2', mute: true });
  expect(v1Fields('track', { delivery_url: 'https://cdn.example:8443/t/a.vtt?x=1' })).toEqual({
    link: { protocol: 'https', address: 'cdn.example:8443', path: '/t/a.vtt', query: { x: '1' } },
  });
});

test('v1 gets back the values that it sends, for the fields of a video and of a player', () => {
  const text = fc.string().filter((value) => !/^\{[^{}]*\}$/.test(value));
  const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
  const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,9}$/);
  fc.assert(
    fc.property(text, text, seconds, fc.dictionary(name, text), (title, link, date, custom) => {
      const sent = { title, link, date: String(date), expires_date: '', tags: 'a,b' };
      const flat = Object.fromEntries(Object.entries(custom).map(([key, value]) => [`custom.${key}`, value]));
      const parts = read('/v1/videos/create', { ...sent, ...flat });
      const metadata = { ...parts.body.metadata, custom_params: changeCustom({}, parts.custom) };
      expect(v1Fields('video', { metadata })).toEqual({ ...sent, date, expires_date: null, custom });
    }),
  );
  fc.assert(
    fc.property(fc.boolean(), fc.integer({ min: 1, max: 9999 }), (repeat, width) => {
      const options = { repeat: String(repeat), width: String(width) };
      const sent = { name: 'P', ...options, playback_rate_controls: '0.5,1' };
      const { body } = read('/v1/players/create', sent);
      expect(v1Fields('player', { metadata: body.metadata ?? {} })).toEqual({ ...sent, repeat, width });
    }),
  );
});

const first = (route: string, parameters: Record<string, string>): V2Call => {
  const call = migrateCall({ route, parameters }, 'S').calls.at(-1);
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
  const window = { result_limit: '{limit}', result_offset: '{offset}' };
  const call = first('/v1/videos/list', { ...window, search: 'a{b' });
  expect(asCurl(call).split('\n')[0]).toContain(
    "curl -g 'https://api.jwplayer.com/v2/sites/S/media/?page={page}&page_length={limit}&q=",
  );
  expect(asCurl(call)).toContain('a%7Bb');
});

/** A call of v1 and what a client of v2 does, one a line. */
const callsIn = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((row) => (/^(\S+) (.*) → (.*)$/.exec(row) ?? []).slice(1));

const IN_PYTHON = `
/v1/videos/show {"video_key":"v"} → Media.get(site_id="S", media_id="v")
/v1/videos/update {"video_key":"v","expires_date":"","tags":"a"} → Media.update(site_id="S", media_id="v", body={"metadata": {"tags": ["a"], "publish_end_date": None}})
/v1/videos/list {} → Media.list(site_id="S", query_params={"page_length": "50"})
/v1/videos/update {"video_key":"v","update_file":"1"} → Media.reupload(site_id="S", media_id="v", body={"upload": {"method": "direct"}})
/v1/players/create {"repeat":"true"} → request("POST", "/v2/sites/S/players/", body={"metadata": {"setup_config": {"repeat": True}}})
/v1/videos/tracks/show {"video_key":"v","track_key":"t"} → request("GET", "/v2/sites/S/media/v/text_tracks/t/")
`;

test.each(callsIn(IN_PYTHON))('%s %s is a line of the Python client', (route = '', parameters = '', line) => {
  expect(asClientLine(first(route, JSON.parse(parameters)), 'python')).toBe(`jwplatform_client.${line}`);
});

/** The released client forgets the site in the paths of the last two. */
const IN_PHP = String.raw`
/v1/videos/show {"video_key":"v"} → Media->get('S', 'v');
/v1/videos/create {"title":"it's"} → Media->create('S', ['metadata' => ['title' => 'it\'s'], 'upload' => ['method' => 'direct']]);
/v1/videos/update {"video_key":"v","update_file":"1"} → Media->reupload('S', 'v', ['upload' => ['method' => 'direct']]);
/v1/videos/list {} → request('GET', '/v2/sites/S/media/?page_length=50');
/v1/videos/tracks/show {"video_key":"v","track_key":"t"} → Media->TextTrack->get('S', 'v', 't');
/v1/videos/conversions/create {"video_key":"v","template_key":"t"} → Media->MediaRendition->create('S', 'v', ['relationships' => ['media_rendition_template' => ['id' => 't']]]);
/v1/channels/create {"type":"manual","title":"a"} → Playlist->ManualPlaylist->create('S', ['metadata' => ['title' => 'a']]);
/v1/channels/update {"channel_key":"c","type":"dynamic","title":"a"} → Playlist->DynamicPlaylist->update('S', 'c', ['metadata' => ['title' => 'a']]);
/v1/accounts/tags/delete {"name":"a"} → Site->remove_tag('S', ['name' => 'a']);
/v1/channels/show {"channel_key":"c"} → request('GET', '/v2/sites/S/playlists/c/');
`;

test.each(callsIn(IN_PHP))('%s %s is a line of the PHP client', (route = '', parameters = '', line) => {
  expect(asClientLine(first(route, JSON.parse(parameters)), 'php')).toBe(`$jwplatform_client->${line}`);
});

test('a shell hands curl exactly the address and the body, with any content', () => {
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
