import fc from 'fast-check';
import type { V1Call } from '../../../../src/platform/migration/migrate-call';
import { HarReader } from '../../../../src/platform/migration/read-calls/har';

function read(text: string | Uint8Array, piece = 1 << 16): unknown[] {
  const calls: V1Call[] = [];
  const reader = new HarReader((call) => calls.push(call));
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  for (let at = 0; at < bytes.length; at += piece) reader.write(bytes.subarray(at, at + piece));
  reader.end();
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
  entry(`${A}/videos/update?video_key=v`, { mimeType: 'application/json', text: '{"title":"a","n":[1]}' }),
  entry('http://127.0.0.1:8080/v1/videos/frames/list'),
];
const FOUND = [
  { route: '/v1/videos/list', parameters: { result_limit: '5', search: 'démo' } },
  { route: '/v1/videos/create', parameters: { title: 'a b', tags: 'c' } },
  { route: '/v1/videos/create', parameters: { title: 'a' } },
  { route: '/v1/videos/update', parameters: { video_key: 'v', title: 'a' } },
  { route: '/v1/videos/frames/list', parameters: {} },
];

test('the calls of v1 of an archive are found, with what their bodies have', () => {
  expect(read(har(ENTRIES))).toEqual(FOUND);
});

test('it is the same in whatever pieces the archive comes', () => {
  const text = har(ENTRIES);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), (piece) => {
      expect(read(text, piece)).toEqual(FOUND);
    }),
    { numRuns: 20 },
  );
  expect(read(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]))).toEqual(FOUND);
});

test.each([
  ['escapes', '\\"\\\\\\u00e9'],
  ['characters of several bytes', 'é漢😀'],
  ['plain text', 'abc'],
])('the body of an answer may be as long as it likes: %s', (_name, part) => {
  const body = part.repeat(1_000_000 / part.length);
  const text = har([ENTRIES[0] ?? {}, entry('https://example.com/'), ENTRIES[3] ?? {}]).replace(
    '{\\"status\\":\\"ok\\"}',
    () => body,
  );
  expect(read(text)).toEqual([FOUND[0], FOUND[1]]);
});

test.each([
  ['["log"', 'is no HAR file; export it as HAR 1.2'],
  ['{"log":{"entries":[{"request":{}},', 'ends in the middle; export it again'],
  ['', 'ends in the middle; export it again'],
  ['{"log":}', 'is no HAR file; export it as HAR 1.2'],
  ['hello', 'is no HAR file; export it as HAR 1.2'],
  ['{} {}', 'is no HAR file; export it as HAR 1.2'],
  ['{"a":'.repeat(1_000_000), 'is nested deeper than 100 levels'],
  [`{"log":{"entries":[${'{"a":'.repeat(1_000_000)}`, 'is nested deeper than 100 levels'],
])('%.40s is refused', (text, fault) => {
  expect(() => read(text)).toThrow(fault);
});

test('an entry of headers without end is refused, and entries without end are not', () => {
  const header = JSON.stringify({ name: 'n'.repeat(20), value: 'v'.repeat(20) });
  const bomb = `{"log":{"entries":[{"request":{"headers":[${`${header},`.repeat(100_000)}`;
  expect(() => read(bomb)).toThrow('has an entry of more than 4 MiB');
  const small = JSON.stringify(entry(`${A}/status`));
  expect(read(`{"log":{"entries":[${Array(5_000).fill(small).join(',')}]}}`)).toHaveLength(5_000);
});

test('requests of other forms are passed over', () => {
  const odd = [
    { request: null },
    { request: 5 },
    { request: { url: 7 } },
    { request: { url: `${A}/status`, postData: [] } },
    {},
  ];
  expect(read(har(odd))).toEqual([{ route: '/v1/status', parameters: {} }]);
  expect(read('{"__proto__":{"log":1},"log":{"entries":{"a":{"request":{"url":"x"}}}}}')).toEqual([]);
});

const FORM = 'application/x-www-form-urlencoded; charset=UTF-8';
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
  ['as one that can not be read', { mimeType: MULTIPART, text: 'cut' }, { parameters: {}, incomplete: true }],
  ['as one that can not be read', { mimeType: 'text/x', text: 'a\nb' }, { parameters: {}, incomplete: true }],
  ['as nothing when it is empty', { mimeType: FORM, text: '', params: [] }, { parameters: {} }],
])('a body is read %s', (_how, postData, found) => {
  expect(read(har([entry(`${A}/videos/create`, postData)]))).toEqual([
    { route: '/v1/videos/create', ...found },
  ]);
});

test('what a browser asks before a call is no call', () => {
  const { request, ...rest } = entry(`${A}/videos/list`);
  expect(
    read(
      har([
        { ...rest, request: { ...request, method: 'OPTIONS' } },
        { request, ...rest },
      ]),
    ),
  ).toHaveLength(1);
});
