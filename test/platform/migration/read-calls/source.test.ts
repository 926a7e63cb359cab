import fc from 'fast-check';
import { UnreadableInput } from '../../../../src/platform/migration/read-calls/found-call';
import { JAVASCRIPT, PHP, PYTHON } from '../../../../src/platform/migration/read-calls/languages';
import { findCalls, type Language, mayCallV1 } from '../../../../src/platform/migration/read-calls/source';
import { processorMs } from '../../../support/processor-time';
import { tableRows } from '../../../support/table-rows';

const find = (text: string, language: Language) => JSON.parse(JSON.stringify(findCalls(text, language)));
const A = 'https://api.jwplatform.com/v1';

/** A program, the route that it calls and the parameters, one a line; ⏎ is a line end. */
const rowsOf = (table: string) =>
  tableRows(table).map((row) => row.map((each) => each.replaceAll('⏎', '\n')));

/** First what the clients' own documentation has, then what programs make of it. */
const IN_JAVASCRIPT = `
jwApi.videos.show({ video_key: 'k' }).then((response) => {}) → /v1/videos/show → {"video_key":"k"}
jwApi.upload({ title: 'a' }, '/path/to/file') → /v1/videos/create → {"title":"a"}
api.get('v1/videos/show', { video_key: 'some_key' }, null, function(err, result) {}); → /v1/videos/show → {"video_key":"some_key"}
api.post('v1/videos/update', null, { video_key: 'k', title: 'b' }, cb) → /v1/videos/update → {"video_key":"k","title":"b"}
api.getUploadUrl('v1', function(err, result) {}); → /v1/videos/create → {}
api.getVideoData('v1', key, cb) → /v1/videos/conversions/list → {"video_key":"{key}"}
const video_params = {title: 'new video'}⏎jwplayer.call_api({ method: 'post', path: '/v1/videos/create' },⏎video_params) → /v1/videos/create → {"title":"new video"}
this.jw.videos.tracks.create({ video_key: this.key, kind: 'captions' }) → /v1/videos/tracks/create → {"video_key":"{this.key}","kind":"captions"}
let p: Params = { title: 'a' }; p.author = 'b'; p['custom.x'] = -1; jw.videos.create(p) → /v1/videos/create → {"title":"a","author":"b","custom.x":"-1"}
const p = { title: 'a' }; jw.videos.create({ ...p, 'tags': 'b' + ',c', api_key: 'K' }) → /v1/videos/create → {"title":"a","tags":"b,c"}
const x = <a href={y}>{jw.videos.list()}</a> → /v1/videos/list → {}
jw.status() → /v1/status → {}
made(jwplatform).videos.show({ video_key: ('k') }) → /v1/videos/show → {"video_key":"k"}
jw.videos.show({ video_key: '\\u{ffffff}k' }) → /v1/videos/show → {"video_key":"k"}
let n = 0; jw.videos.list({ result_offset: n, result_limit: 50 }); n += 50 → /v1/videos/list → {"result_offset":"{n}","result_limit":"50"}
const q = { result_offset: 0, search: 'a' }; jw.videos.list(q); q['result_offset'] += 50 → /v1/videos/list → {"result_offset":"{result_offset}","search":"a"}
(jw as any).videos!.show<Video>({ video_key: 'k' } as Query) → /v1/videos/show → {"video_key":"k"}
(await made(jwplatform)).videos.show(<Query>{ video_key: key! }) → /v1/videos/show → {"video_key":"{key}"}
const id = <T>(x: T) => <any>x; jw.videos.list({} satisfies Query) → /v1/videos/list → {}
jw.videos.show({ video_key: item.key as string }) → /v1/videos/show → {"video_key":"{item.key}"}
`;

test.each([
  ...rowsOf(IN_JAVASCRIPT),
  [
    `jw?.videos['list']({ result_limit: 5, 'search:title': \`a \${b}\` })`,
    '/v1/videos/list',
    '{"result_limit":"5","search:title":"a {b}"}',
  ],
])('JavaScript: %s', (text = '', route, parameters = '') => {
  const line = text.split('\n').length > 1 ? 2 : 1;
  expect(find(text, JAVASCRIPT)).toEqual([{ route, parameters: JSON.parse(parameters), line }]);
});

const IN_PYTHON = String.raw`
jwplatform_client.videos.show(video_key='k') → /v1/videos/show → {"video_key":"k"}
params = {'title': 'a', 'custom.b': c}⏎jw_client.videos.create(http_method='POST', upload_method='single', **params) → /v1/videos/create → {"upload_method":"single","title":"a","custom.b":"{c}"}
p = dict(title='a')⏎p['date'] = 1⏎c.videos.update(video_key=self.k, **p) → /v1/videos/update → {"video_key":"{self.k}","title":"a","date":"1"}
p = {}⏎p.update({'title': 'a'}); p.update(tags='b')⏎c.videos.create(**p) → /v1/videos/create → {"title":"a","tags":"b"}
for v in client.videos.list(result_limit=10, search=f'x{y}')['videos']: pass → /v1/videos/list → {"result_limit":"10","search":"x{y}"}
c.channels.videos.create(**{'channel_key': "c", 'video_key': 'a' 'b'}) → /v1/channels/videos/create → {"channel_key":"c","video_key":"ab"}
n = 0; c.videos.list(result_offset=n); n = n + 50 → /v1/videos/list → {"result_offset":"{n}"}
c.videos.show(video_key=a or b) → /v1/videos/show → {"video_key":"{value}"}
c().call('/videos/show', {'video_key': k}) → /v1/videos/show → {"video_key":"{k}"}
c.accounts.tags.update(name=r'\a', new_name='''b\n''') → /v1/accounts/tags/update → {"name":"\\a","new_name":"b\n"}
`;

test.each(rowsOf(IN_PYTHON))('Python: %s', (text = '', route, parameters = '') => {
  expect(find(`${text} # jwplatform`, PYTHON)).toEqual([
    { route, parameters: JSON.parse(parameters), line: text.split('\n').length },
  ]);
});

const IN_PHP = String.raw`
<?php⏎$params = array();⏎$params['title'] = 'A';⏎$params["description"] = "B $c";⏎$r = json_encode($jwplatform_api->call('/videos/create', $params)); → /v1/videos/create → {"title":"A","description":"B {c}"}
<?php $this->botr->call("/videos/list", array('result_limit' => 5, 'search' => $term)); → /v1/videos/list → {"result_limit":"5","search":"{term}"}
<?php $api->call('videos/update', ['video_key' => $v->key, 'title' => 'it\'s', 'date' => -1, 'x' => true]); → /v1/videos/update → {"video_key":"{v.key}","title":"it's","date":"-1","x":"true"}
<?php $api->call("/videos/$action", array('video_key' => $v -> key)); → /v1/videos/{action} → {"video_key":"{v.key}"}
<?php for ($n = 0; ; ++$n) $api->call('/videos/list', ['result_offset' => $n]); → /v1/videos/list → {"result_offset":"{n}"}
<?php $r = jwplayer_api_call( '/videos/delete', array( 'video_key' => $hash ) ); → /v1/videos/delete → {"video_key":"{hash}"}
<?php $r = Jw::apiCall('/videos/show', ['video_key' => $v]); → /v1/videos/show → {"video_key":"{v}"}
<html><?= $api->call('/channels/' . 'list') ?></html> → /v1/channels/list → {}
`;

test.each(rowsOf(IN_PHP))('PHP: %s', (text = '', route, parameters = '') => {
  expect(find(text, PHP)).toEqual([
    { route, parameters: JSON.parse(parameters), line: text.split('\n').length },
  ]);
});

// A variable that holds some of a query is no parameter.
test.each([
  [JAVASCRIPT, `fetch('${A}/videos/list?tags=a&api_key=K&search=' + term)`, { tags: 'a', search: '{term}' }],
  [JAVASCRIPT, `fetch(\`${A}/videos/list?\${params}&api_key=k&tags=v\`)`, { tags: 'v' }],
  [JAVASCRIPT, "jw.get('v1/videos/list?tags=v&' + params)", { tags: 'v' }],
  [JAVASCRIPT, `axios.get(\`${A}/videos/list?tags=\${tag}\`)`, { tags: '{tag}' }],
  [PYTHON, `requests.get('${A}/videos/list?tags=' + tag)`, { tags: '{tag}' }],
  [PYTHON, `requests.get(f'${A}/videos/list', params=p)`, {}],
  [PYTHON, `requests.get('${A}/videos/list?tags=%s' % tag)`, { tags: '{value}' }],
  [PYTHON, `requests.get('${A}/videos/list?tags={}'.format(tag))`, { tags: '{value}' }],
  [JAVASCRIPT, `const API: string = '${A}'; fetch(\`\${API}/videos/list?tags=a\`)`, { tags: 'a' }],
  [JAVASCRIPT, `this.url = '${A}/'; fetch(this.url + 'videos/list?tags=' + tag)`, { tags: '{tag}' }],
  [JAVASCRIPT, `const c = axios.create({ baseURL: '${A}/' }); c.get('videos/list?tags=a')`, { tags: 'a' }],
  [JAVASCRIPT, `c = axios.create({ baseURL: '${A}' }); c.get('/videos/list', { params })`, {}],
  [PYTHON, `BASE = "${A}"; requests.get(f"{BASE}/videos/list?tags=a")`, { tags: 'a' }],
  [PHP, `<?php define('JW', '${A}'); get(JW . '/videos/list?tags=' . $tag);`, { tags: '{tag}' }],
  [
    PHP,
    `<?php class C { const U = '${A}'; function f() { get(self::U . '/videos/list?tags=a'); } }`,
    { tags: 'a' },
  ],
  [PHP, `<?php $u = "${A}/videos/list?tags=$tag";`, { tags: '{tag}' }],
  [PHP, `<?php $u = '${A}/videos/list?tags=' . $tag;`, { tags: '{tag}' }],
  [PHP, `<?php $url = '${A}/videos/list?' . $params . '&tags=v';`, { tags: 'v' }],
])('an address in a text is a call that may have more parameters: %#', (language, text, parameters) => {
  expect(find(text, language)).toEqual([{ route: '/v1/videos/list', parameters, line: 1, incomplete: true }]);
});

test('parameters that cannot be known are reported as missing', () => {
  const incomplete = (text: string, language: Language) => find(text, language)[0]?.incomplete;
  expect(incomplete('jw.videos.create(params)', JAVASCRIPT)).toBe(true);
  expect(incomplete("jw.videos.create({ title: 'a', ...rest })", JAVASCRIPT)).toBe(true);
  expect(incomplete("jw.videos.create({ title: 'a', [name]: 1 })", JAVASCRIPT)).toBe(true);
  expect(incomplete('jw.videos.create(**kwargs)', PYTHON)).toBe(true);
  expect(incomplete("<?php $a->call('/videos/create', $args);", PHP)).toBe(true);
  const nested = "<?php $p = ['title' => 'a']; $p['tags'][] = 'b'; $a->call('/videos/create', $p);";
  expect(incomplete(nested, PHP)).toBe(true);
  expect(incomplete("p = { title: 'a' }; p.custom.b = 1; jw.videos.create(p)", JAVASCRIPT)).toBe(true);
  const assigned = "p = { title: 'a' }; Object.assign(p, more); jw.videos.create(p)";
  expect(incomplete(assigned, JAVASCRIPT)).toBe(true);
  expect(incomplete("p = {'title': 'a'}; p |= more; jw.videos.create(**p)", PYTHON)).toBe(true);
  expect(incomplete("jw.videos.create({ title: 'a' })", JAVASCRIPT)).toBeUndefined();
});

test.each([
  [JAVASCRIPT, "const p = { title: 'a' };\nfunction f(p, b = 1) { jw.videos.create(p) }"],
  [JAVASCRIPT, "const p = { title: 'a' };\nconst f = p => jw.videos.create(p)"],
  [PYTHON, "p = {'title': 'a'}\ndef f(x, **p): jw.videos.create(**p)"],
  [PHP, "<?php $p = ['title' => 'a'];\nfunction f(array $p = []) { $jw->call('/videos/create', $p); }"],
])('a parameter of a function does not have the value of its name before', (language, text) => {
  expect(find(text, language)).toEqual([
    { route: '/v1/videos/create', parameters: {}, line: 2, incomplete: true },
  ]);
});

test.each([
  [JAVASCRIPT, "function f(p) { p.title = 'a'; jw.videos.create(p) }"],
  [PYTHON, "def f(p):\n  p['title'] = 'a'; jw.videos.create(**p)"],
  [PHP, "<?php $video['title'] = 'a';\n$jw->call('/videos/create', $video);"],
])('a field that is added to an unknown variable is a parameter', (language, text) => {
  const [{ line: _line, ...call }] = find(text, language);
  expect(call).toEqual({ route: '/v1/videos/create', parameters: { title: 'a' }, incomplete: true });
});

test('calls of others, of v2 and of the same names are none', () => {
  const programs: [string, Language][] = [
    ["youtube.videos.list({ part: 'x' }); app.get('/v1/things', h); x.get('v2/a'); map.get('k')", JAVASCRIPT],
    ['youtube.videos.list({}); // not jwplatform', JAVASCRIPT],
    ["app.get('/videos/list', f); videos.list(); jw.videos.length; jw.videos.map(f)", JAVASCRIPT],
    ["youtube.videos().list(part='x')\nclient.Media.list(site_id='S')\nvideos.list()", PYTHON],
    ["<?php $a->call('/sites/x/analytics/queries', $q, 'v2'); $c->call('function');", PHP],
  ];
  for (const [text, language] of programs) expect([text, find(text, language)]).toEqual([text, []]);
});

test('a client without a clear name is known by the rest of the program', () => {
  expect(find('client.videos.list()', JAVASCRIPT)).toEqual([]);
  expect(find('client.videos.list() // of jwplatform', JAVASCRIPT)).toHaveLength(1);
});

test('an unknown method of a class of v1 is a call, to be reported as unknown', () => {
  expect(find('jw.accounts.usage.list({})', JAVASCRIPT)).toEqual([
    { route: '/v1/accounts/usage/list', parameters: {}, line: 1 },
  ]);
  expect(find("api.post('v1/templates/create', null, { name: 'a' }, cb)", JAVASCRIPT)[0].route).toBe(
    '/v1/templates/create',
  );
});

test('no secret of a program is kept', () => {
  const secret = 'uA96CFtJa138E2T5GhKfngml';
  const texts: [string, Language][] = [
    [
      `new JW({ apiKey: 'k', apiSecret: '${secret}' }); jw.videos.list({ api_key: '${secret}', title: sign('${secret}') })`,
      JAVASCRIPT,
    ],
    [`c = Client('k', '${secret}')\njw.videos.list(api_secret='${secret}', title=sign('${secret}'))`, PYTHON],
    [
      `<?php $a = new JwplatformAPI('k', '${secret}'); $a->call('/videos/list', ['api_signature' => '${secret}', 'title' => sign('${secret}')]);`,
      PHP,
    ],
  ];
  for (const [text, language] of texts) {
    expect(find(text, language)).toHaveLength(1);
    expect(JSON.stringify(find(text, language))).not.toContain(secret);
  }
});

test('faulty programs are read as far as they can be, and names of prototypes are names', () => {
  const firstRoute = (text: string, language: Language) => find(text, language)[0].route;
  const [script, python] = ["jw.videos.show({ video_key: 'k' })", "jw.videos.show(video_key='k')"];
  expect(firstRoute(`const = {{{ ${script} ]]] jw.videos.list(`, JAVASCRIPT)).toBe('/v1/videos/show');
  expect(firstRoute(`def (\n${python}\n  x = = 3`, PYTHON)).toBe('/v1/videos/show');
  const odd = "x.constructor('v1'); x.__proto__('v1', 1);";
  const named = "jw.videos.list({ __proto__: 'a', constructor: 'b' })";
  expect(find(`${odd} ${named}`, JAVASCRIPT)).toHaveLength(1);
  const pieces = fc.constantFrom(
    ...'jw .videos .list ( ) { } \' " ` ${ = p [ ] $ ->call <?php \n : , ** + . f'.split(' '),
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 40 }), (parts) => {
      for (const language of [JAVASCRIPT, PYTHON, PHP]) findCalls(parts.join(''), language);
    }),
  );
});

test.each([
  [JAVASCRIPT, `jw.videos.create({ title: ${"'a' + ".repeat(4000)}'a' })`],
  [JAVASCRIPT, `jw.videos.create(${'{ a: '.repeat(1000)}1${' }'.repeat(1000)})`],
  [JAVASCRIPT, `jw${'.videos'.repeat(4000)}.list()`],
  [JAVASCRIPT, `const p = ${'{ ...'.repeat(1000)}`],
  [JAVASCRIPT, `jw.videos.list(${'a => '.repeat(4000)}a)`],
  [PYTHON, `jw.videos.create(title=${"'a' + ".repeat(4000)}'a')`],
  [PYTHON, `jw.videos.create(**${"{'a': ".repeat(1000)}1${'}'.repeat(1000)})`],
  [PHP, `<?php $jw->call('/videos/create', ['title' => ${"'a' . ".repeat(4000)}'a']);`],
  [PHP, `<?php $jw->call('/videos/create', ${"['a' => ".repeat(1000)}1${']'.repeat(1000)});`],
])('a program as deep as nobody writes one is read', (language, text) => {
  expect(findCalls(text, language).length).toBeLessThanOrEqual(1);
});

test.each([
  [JAVASCRIPT, 'jw(', ')'],
  [PYTHON, '[', ''],
  [PHP, '<?php if (1) {', '}'],
])('a program of a hundred thousand brackets is refused before it is parsed', (language, open, close) => {
  const parse = jest.fn(language.parse);
  const text = open.repeat(100_000) + close.repeat(100_000);
  expect(() => findCalls(text, { ...language, parse })).toThrow(
    new UnreadableInput('is nested deeper than 5000 brackets'),
  );
  expect(parse).not.toHaveBeenCalled();
});

test.each([
  [JAVASCRIPT, (at: number) => `const p${at + 1} = { ...p${at}, a${at}: 1 };`],
  [PYTHON, (at: number) => `p${at + 1} = {**p${at}, 'a${at}': 1}`],
])('a long chain of spreads ends at the limit of copied entries', (language, link) => {
  const chain = (links: number) => Array.from({ length: links }, (_, at) => link(at)).join('\n');
  const call = language === PYTHON ? 'jw.videos.create(**p900)' : 'jw.videos.create(p900)';
  expect(findCalls(`${chain(900).replace('p0', '{}')}\n${call}`, language)).toHaveLength(1);
  expect(() => findCalls(chain(1200).replace('...p0', '').replace('**p0', ''), language)).toThrow(
    new UnreadableInput('copies more than 500000 entries by spreads'),
  );
});

test('heredocs are read, and a program of very many without an end is refused before it is parsed', () => {
  const call = "$jw->call('/videos/show', ['video_key' => 'k']);";
  const closed = "$a = <<<X\nb\n  X;\n$b = <<<'Y'\nY;\n".repeat(2000);
  expect(findCalls(`<?php ${closed}${call}`, PHP)).toHaveLength(1);
  expect(findCalls(`<?php ${call} ${'$a = <<<X\nb;\n'.repeat(20)}`, PHP)).toHaveLength(1);
  expect(() => findCalls(`<?php ${'$a = <<<X\nb;\n'.repeat(2000)}`, PHP)).toThrow(
    new UnreadableInput('has too many heredocs without an end'),
  );
});

test('an address that is put together of many texts is found once', () => {
  const text = `${"'a' + ".repeat(500)}'a';\nfetch('https://api.jwplatform.com' + '/v1/videos/list');`;
  expect(findCalls(text, JAVASCRIPT)).toMatchObject([{ route: '/v1/videos/list', line: 2 }]);
});

test('a program without calls is not parsed', () => {
  expect(mayCallV1("const app = require('express')()")).toBe(false);
  expect(mayCallV1("require('jwplatform')")).toBe(true);
  expect(mayCallV1('this.jw.videos.list()')).toBe(true);
  expect(mayCallV1("$this->api->call('/videos/thumbnails/show', $p)")).toBe(true);
  expect(mayCallV1("$this->call('GET', '/videos/list')")).toBe(false);
  expect(mayCallV1('prisma.videos.create({})')).toBe(false);
  expect(mayCallV1('import jwplatform')).toBe(true);
  expect(mayCallV1("require_once('botr/api.php');")).toBe(true);
  expect(mayCallV1('fetch("/v1/videos/list")')).toBe(true);
});

test('a program with very many calls is read in a time that grows with its length, and each has its line', async () => {
  const begin = "const jw = require('jwplatform');\n";
  const text = `${begin}${"jw.videos.show({ video_key: 'a' });\n".repeat(20_000)}`;
  let lines: (number | undefined)[] = [];
  const took = await processorMs(() => {
    lines = findCalls(text, JAVASCRIPT).map(({ line }) => line);
  });
  expect(lines).toEqual(Array.from({ length: 20_000 }, (_none, at) => at + 2));
  expect(took).toBeLessThan(2500);
});
