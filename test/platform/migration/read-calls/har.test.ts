import { Readable } from 'node:stream';
import fc from 'fast-check';
import { callsOfHar } from '../../../../src/platform/migration/read-calls/har';

async function read(text: string | Uint8Array, piece = 1 << 16): Promise<unknown[]> {
  const bytes = Buffer.from(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / piece) }, (_each, at) =>
    bytes.subarray(at * piece, (at + 1) * piece),
  );
  const calls: unknown[] = [];
  for await (const call of callsOfHar(Readable.from(pieces))) calls.push(call);
  return JSON.parse(JSON.stringify(calls));
}

const entry = (url: string, postData?: object, response: object = {}) => ({
  startedDateTime: '2026-01-01T00:00:00Z',
  time: 1.5,
  request: {
    method: postData ? 'POST' : 'GET',
    url,
    headers: [{ name: 'a', value: 'b' }],
    ...(postData && { postData }),
  },
  response: { status: 200, content: { text: '{"status":"ok"}' }, ...response },
});
const har = (entries: readonly object[]) =>
  JSON.stringify({ log: { version: '1.2', creator: { name: 'x' }, pages: [], entries } });
const A = 'https://api.jwplatform.com/v1';

const ENTRIES = [
  entry(`${A}/videos/list?result_limit=5&search=d%C3%A9mo`),
  entry('https://example.com/'),
  entry('https://example.com/v1/charges'),
  entry(`${A}/videos/create`, { mimeType: 'application/x-www-form-urlencoded', text: 'title=a+b&tags=c' }),
  entry(`${A}/videos/create`, { params: [{ name: 'title', value: 'a' }, { name: 'x' }, null] }),
  entry(`${A}/videos/update?video_key=v`, {
    mimeType: 'application/json',
    text: '{"title":"a","tags":["b","c"],"custom":{"d":1,"e":null}}',
  }),
  entry('http://127.0.0.1:8080/v1/videos/frames/list'),
];
const FOUND = [
  { route: '/v1/videos/list', parameters: { result_limit: '5', search: 'démo' } },
  { route: '/v1/videos/create', parameters: { title: 'a b', tags: 'c' } },
  { route: '/v1/videos/create', parameters: { title: 'a' } },
  {
    route: '/v1/videos/update',
    parameters: { video_key: 'v', title: 'a', tags: ['b', 'c'], 'custom.d': '1' },
  },
  { route: '/v1/videos/frames/list', parameters: {} },
];

test('the calls of v1 of an archive are found with their bodies, whatever pieces it comes in', async () => {
  const text = har(ENTRIES);
  expect(await read(text)).toEqual(FOUND);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 200 }), async (piece) => {
      expect(await read(text, piece)).toEqual(FOUND);
    }),
    { numRuns: 20 },
  );
  expect(await read(`\ufeff${text}`)).toEqual(FOUND);
});

const NO_HAR = 'is no HAR file; export it as HAR 1.2';
const CUT = 'ends in the middle; export it again';

test.each([
  ['["log"', NO_HAR],
  ['{"log":{"entries":[{"request":{}},', CUT],
  ['', CUT],
  ['{"log":}', NO_HAR],
  ['hello', NO_HAR],
  ['{} {}', NO_HAR],
  [`{"log":{"entries":[${'{"a":'.repeat(20_000)}`, CUT],
])('text other than an archive is refused: %#', async (text, fault) => {
  await expect(read(text)).rejects.toThrow(fault);
});

test('requests of other forms are passed over', async () => {
  const odd = [
    { request: null },
    { request: 5 },
    { request: { url: 7 } },
    { request: { url: `${A}/status`, postData: [] } },
    {},
  ];
  expect(await read(har(odd))).toEqual([{ route: '/v1/status', parameters: {} }]);
  expect(await read('{"__proto__":{"log":1},"log":{"entries":{"a":{"request":{"url":"x"}}}}}')).toEqual([]);
});

const FORM = 'application/x-www-form-urlencoded; charset=UTF-8';
const HEAD = 'Content-Disposition: form-data; name="tags"\r\n\r\n';
const MULTIPART = 'multipart/form-data; boundary=x';

test.each([
  [
    'as it was sent, whatever the browser made of its parts',
    { mimeType: FORM, text: 'title=a%20b', params: [{ name: 'title', value: 'a%20b' }] },
    { parameters: { title: 'a b' } },
  ],
  [
    'without the files of a form in parts',
    {
      mimeType: MULTIPART,
      text: [
        '--x\r\nContent-Disposition: form-data; name="title"\r\n\r\na\r\nb\r\n',
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\nContent-Type: video/mp4\r\n\r\n00\r\n',
        '--x--\r\n',
      ].join(''),
    },
    { parameters: { title: 'a\r\nb' } },
  ],
  [
    'with each value of a name',
    { params: ['a', 'b'].map((value) => ({ name: 'tags', value })) },
    { parameters: { tags: ['a', 'b'] } },
  ],
  [
    'with each value of a name in parts',
    {
      mimeType: MULTIPART,
      text: ['--x', 'a', '--x', 'b', '--x--'].join('\r\n').replaceAll(/(?=[ab]\r)/g, HEAD),
    },
    { parameters: { tags: ['a', 'b'] } },
  ],
  ['as one that can not be read', { mimeType: MULTIPART, text: 'cut' }, { parameters: {}, incomplete: true }],
  ['as one that can not be read', { mimeType: 'text/x', text: 'a\nb' }, { parameters: {}, incomplete: true }],
  ['as nothing when it is empty', { mimeType: FORM, text: '', params: [] }, { parameters: {} }],
])('a body is read %s', async (_how, postData, found) => {
  const calls = await read(har([entry(`${A}/videos/create`, postData)]));
  expect(calls).toEqual([{ route: '/v1/videos/create', ...found }]);
});

test('the preflight of a browser is no call', async () => {
  const { request } = entry(`${A}/videos/list`);
  const calls = await read(har([{ request: { ...request, method: 'OPTIONS' } }, { request }]));
  expect(calls).toHaveLength(1);
});
