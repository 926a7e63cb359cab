import fc from 'fast-check';
import { readLog } from '../../../../src/platform/migration/read-calls/log';

/** The calls of a log that comes in pieces, equal ones counted. */
async function read(text: string | Buffer, piece = 1 << 16) {
  const bytes = Buffer.from(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
  }
  const seen = new Map<string, number>();
  const lines = await readLog(pieces(), ({ route, parameters }, method) => {
    const call = JSON.stringify({ route, parameters: { ...parameters }, method });
    seen.set(call, (seen.get(call) ?? 0) + 1);
  });
  return { seen: [...seen].map(([call, count]) => ({ ...JSON.parse(call), count })), lines };
}

const LIST = {
  route: '/v1/videos/list',
  parameters: { tags: 'a b', result_limit: '5' },
  method: 'GET',
  count: 1,
};
const PATH = '/v1/videos/list?tags=a%20b&result_limit=5';

test.each([
  ['common', `10.0.0.1 - me [22/Nov/2026:12:00:00 +0000] "GET ${PATH} HTTP/1.1" 200 5`],
  [
    'combined',
    `::1 - - [22/Nov/2026:12:00:00 +0000] "GET ${PATH} HTTP/2.0" 200 5 "https://a.example/v1/x?y" "curl/8"`,
  ],
  ['without a protocol', `[t] "GET ${PATH}" 200`],
  ['of nginx with its host', `api.example.com 10.0.0.1 "GET ${PATH} HTTP/1.1" rt=0.1`],
  [
    'of a load balancer',
    `http 2026-11-22T12:00:00Z app/lb 1.2.3.4:80 5.6.7.8:80 0 0 0 200 200 1 2 "GET https://api.example.com:443${PATH} HTTP/1.1" "curl/8"`,
  ],
  ['with tabs', `2026-11-22\tGET\t${PATH}\t200`],
  ['of a program', `INFO request method=GET path=${PATH} status=200`],
  ['of Windows', `"GET ${PATH} HTTP/1.1" 200\r`],
  ['JSON', JSON.stringify({ time: 't', request: `GET ${PATH} HTTP/1.1`, status: 200 })],
  ['JSON, path and method apart', JSON.stringify({ http: { method: 'GET', path: PATH } })],
  [
    'JSON, query apart',
    JSON.stringify({ method: 'GET', path: '/v1/videos/list', query: 'tags=a%20b&result_limit=5' }),
  ],
  ['JSON, with slashes escaped', JSON.stringify({ request: `GET ${PATH} HTTP/1.1` }).replaceAll('/', '\\/')],
  ['JSON, with & escaped', JSON.stringify({ request: `GET ${PATH} HTTP/1.1` }).replaceAll('&', '\\u0026')],
  ['JSON, a URL', JSON.stringify({ verb: 'GET', url: `https://api.example.com${PATH}` })],
])('a line is read: %s', async (_name, line) => {
  const { seen, lines } = await read(`${line}\n`);
  expect({ seen: seen.map((each) => ({ ...each, method: each.method ?? 'GET' })), lines }).toEqual({
    seen: [LIST],
    lines: { lines: 1, tooLong: 0 },
  });
});

test.each([
  '"GET /api/v1/videos/list HTTP/1.1"',
  '"GET /v2/sites/a/media/ HTTP/1.1"',
  '"GET /v1 HTTP/1.1"',
  '"GET /v12/a HTTP/1.1"',
  'no request at all',
  '',
  '{"broken":"/v1\\/',
  '{"a":{"b":{"c":{"d":{"e":{"f":{"g":"/v1/videos/list"}}}}}}}',
])('a line without a call is none: %s', async (line) => {
  expect((await read(`${line}\n`)).seen).toEqual([]);
});

test('it is the same in whatever pieces the log comes', async () => {
  const text = Array.from(
    { length: 30 },
    (_each, index) => `${'x'.repeat(index)} "GET ${PATH} HTTP/1.1"`,
  ).join('\n');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 500 }), async (piece) => {
      const lines = { lines: 30, tooLong: 0 };
      expect(await read(text, piece)).toEqual({ seen: [{ ...LIST, count: 30 }], lines });
    }),
    { numRuns: 30 },
  );
});

test('a line that never ends is let go, and the lines around it are read', async () => {
  const long = `"GET /v1/videos/show?x=${'y'.repeat(5_000_000)} HTTP/1.1"`;
  expect(await read(`"GET ${PATH} HTTP/1.1"\n${long}\n"GET ${PATH} HTTP/1.1"\n`)).toEqual({
    seen: [{ ...LIST, count: 2 }],
    lines: { lines: 3, tooLong: 1 },
  });
  expect((await read(long)).lines).toEqual({ lines: 1, tooLong: 1 });
});

test('names in UTF-8 are read as they are', async () => {
  const { seen } = await read('"GET /v1/videos/list?search=démo HTTP/1.1"\n');
  expect(seen[0]?.parameters).toEqual({ search: 'démo' });
});

test('bytes of any kind are lines of some kind', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), async (bytes) => {
      await read(Buffer.from(bytes));
      await read(Buffer.concat([Buffer.from('{"a":"/v1/'), Buffer.from(bytes)]));
    }),
  );
});
