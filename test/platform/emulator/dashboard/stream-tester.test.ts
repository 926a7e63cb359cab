import { onceForAll } from '../../../support/after-test';
import { FAIRPLAY_KEYS, KEYS, keyFileOf, servedClip } from '../../../support/packaged-clip';
import { textOf } from '../../../support/read-page';
import { serve } from '../../../support/serve';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';
import { until } from '../../../support/until';

const shared = onceForAll(() => startEmulator());

const PATH = '/dashboard/stream-tester';

const KEY_FILE = keyFileOf(KEYS);

/** Sends the form, as a browser does. */
const send = ({ unauthenticated }: TestEmulator, fields: Readonly<Record<string, string>>) =>
  unauthenticated.post(PATH).type('form').send(fields);

const summaryOf = (page: string) => /id="verdict"[^>]*><p><b>([^<]*)\.</.exec(page)?.[1];

/** The item for the player on the page. */
function itemIn(page: string): unknown {
  const [, item = 'null'] = /data-options="([^"]*)"/.exec(page) ?? [];
  return JSON.parse(item.replaceAll('&#34;', '"'))?.item ?? null;
}

test('leads from /verify to the page, with the address filled in', async () => {
  const { unauthenticated } = await shared();
  const address = 'https://cdn.example.com/a.mpd?token=b&c';
  const { status, headers } = await unauthenticated.get('/verify').query({ url: address });
  expect(status).toBe(302);
  const { text } = await unauthenticated.get(String(headers.location)).expect(200);
  expect(text).toContain('value="https://cdn.example.com/a.mpd?token=b&#38;c"');
  await unauthenticated.post('/verify').expect(405).expect('allow', 'GET, HEAD');
});

test('lets the page load its own files alone, and the stream from anywhere', async () => {
  const { unauthenticated } = await shared();
  const { headers, text } = await unauthenticated.get(PATH);
  expect(headers['content-security-policy']).toBe(
    "default-src 'none';base-uri 'none';connect-src 'self' http: https:;form-action 'self';" +
      "frame-ancestors 'none';img-src 'self' data:;script-src 'self';style-src 'self';media-src blob: http: https:",
  );
  const files = [...text.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g)].map(([, path]) => String(path));
  const own = ['style.css', 'script.js', 'stream-tester.js'].map((name) => `/dashboard/${name}`);
  const styles = ['/docs/oat.min.css', '/docs/style.css'];
  expect(files).toEqual([...styles, ...own, '/embed/channel.js', '/embed/page.js']);
  for (const path of files) await unauthenticated.get(path).expect(200);
});

test.each([
  ['for another host', { host: 'evil.example' }, 'host_refused', '/verify'],
  ['for another host', { host: 'evil.example' }, 'host_refused', PATH],
  ['of a webhook', { 'user-agent': 'packager-drm-emulator-webhook' }, 'webhook_refused', PATH],
])('refuses a request %s', async (_of, headers, code, path) => {
  const { unauthenticated } = await shared();
  const { status, body } = await unauthenticated.get(path).set({ ...headers, accept: 'application/json' });
  expect([status, body.errors]).toEqual([403, [{ code, description: expect.any(String) }]]);
});

const DASH = 'application/dash+xml';
const HLS = 'application/vnd.apple.mpegurl';
const HLS_KEYS = { keyIds: [FAIRPLAY_KEYS.keyId.toString('base64url')] };

test.each([
  ['an encrypted stream with the license server of the emulator', 'dash', KEYS, DASH, {}],
  // Its playlists name no key id.
  ['one in HLS with its key ids, too', 'hls', FAIRPLAY_KEYS, HLS, HLS_KEYS],
  ['a clear one without a license server', 'dash', undefined, DASH, undefined],
] as const)(
  'reports whether a stream decrypts, and gives the player %s',
  async (_what, format, keys, type, own) => {
    const emulator = await startEmulator();
    const file = await servedClip(format, keys);
    const { status, text } = await send(emulator, { url: file, key_file: keys ? KEY_FILE : '' });
    expect([status, summaryOf(text)]).toEqual([200, 'Nothing wrong was found']);
    expect(textOf(text)).toContain(keys ? 'Decrypts' : 'Clear');
    const drm = { clearkey: { url: `${emulator.url}/keyprovider/clearkey`, ...own } };
    expect(itemIn(text)).toEqual({ title: 'The stream', sources: [{ file, type, ...(own && { drm }) }] });
  },
);

test.each([
  ['key_file', 'Key file'],
  ['former', 'Former key file'],
])('refuses a %s that is no key file with one sentence, and fetches nothing', async (field, label) => {
  const emulator = await shared();
  const sent = { url: 'http://127.0.0.1:1/m.mpd', [field]: 'MIT License\n\nNo key.' };
  const { status, text } = await send(emulator, sent);
  expect(status).toBe(400);
  expect(textOf(text)).toContain(`${label}: the pasted text has no line`);
  expect(textOf(text)).not.toContain('nothing listens there');
});

test('reports that a player that plays does not prove the key file', async () => {
  const emulator = await shared();
  const address = await servedClip('dash', KEYS);
  const key = Buffer.alloc(16, 0x55).toString('base64');
  const wrong = KEY_FILE.replace(/(content-key: ).*/, `$1${key}`);
  const { text } = await send(emulator, { url: address, key_file: wrong });
  expect(textOf(text)).toContain('content_key_wrong');
  expect(textOf(text)).toContain('It may play although the key file is wrong.');
});

test('reads the key file of the stream from a sidecar, once, with its API key', async () => {
  const emulator = await startEmulator();
  const address = await servedClip('dash', KEYS);
  const seen: unknown[] = [];
  const { url: sidecar } = await serve((request, response) => {
    seen.push([request.url, request.headers['x-api-key'], request.headers.accept]);
    response.setHeader('content-type', 'text/plain; charset=utf-8').end(KEY_FILE);
  });
  const fields = { url: address, sidecar: `${sidecar}/prefix`, stream_id: 'news', api_key: 'read-key-0123' };
  const { text } = await send(emulator, fields);
  expect(seen).toEqual([['/prefix/api/keyfile/news', 'read-key-0123', 'text/plain']]);
  expect(textOf(text)).toContain('Decrypts');
});

test.each([
  [401, 'The sidecar refuses the API key (401).'],
  [403, 'The API key may not read this key file (403).'],
  [404, 'The sidecar has no key file for the stream news (404).'],
  [302, 'The service at this address is no sidecar: it answered 302.'],
  [200, 'The service at this address is no sidecar: it answered 200.'],
])('says why a sidecar that answers %i gives no key file', async (status, problem) => {
  const emulator = await shared();
  const { url: sidecar } = await serve((_request, response) => {
    response.writeHead(status, { location: '/elsewhere', 'content-type': 'text/html' }).end();
  });
  const fields = { url: 'http://127.0.0.1:1/a.mpd', sidecar, stream_id: 'news', api_key: 'key' };
  const answer = await send(emulator, fields);
  expect([answer.status, textOf(answer.text)]).toEqual([400, expect.stringContaining(problem)]);
});

/** Wrong forms and their faults, one a line. */
const INCOMPLETE = `
url=file:///etc/passwd → The address must be a whole one, which begins with https:// or http://.
 → Give the address of a DASH manifest (.mpd) or an HLS playlist (.m3u8).
url=http://127.0.0.1:1/&sidecar=news → The address of the sidecar must be a whole one, which begins with https:// or http://.
url=http://127.0.0.1:1/&sidecar=http://127.0.0.1:1 → Give the stream id by which the sidecar has the key file.
url=http://127.0.0.1:1/&sidecar=http://127.0.0.1:1&stream_id=news → Give the API key of the sidecar: printable ASCII.
url=http://127.0.0.1:1/&sidecar=http://10.0.0.1&stream_id=news&api_key=key → The sidecar does not answer: it is an address of a private network, which the emulator does not call unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set.
`;

test.each(tableRows(INCOMPLETE))('says what is missing in %j', async (fields, problem) => {
  const { status, text } = await send(await shared(), Object.fromEntries(new URLSearchParams(fields)));
  expect([status, textOf(text)]).toEqual([400, expect.stringContaining(problem ?? '')]);
});

test('does not fetch from a private network, and follows no redirect into one', async () => {
  const emulator = await shared();
  const { url: redirecting } = await serve((_request, response) => {
    response.writeHead(302, { location: 'http://192.168.0.1/a.mpd' }).end();
  });
  for (const url of ['http://169.254.169.254/latest/meta-data', 'http://[::ffff:10.0.0.1]/', redirecting]) {
    const { status, text } = await send(emulator, { url });
    expect(status).toBe(200);
    expect(text).toContain('it is an address of a private network');
    expect(itemIn(text)).toBeNull();
  }
});

test("tests the emulator's own addresses by whatever name it is called", async () => {
  const emulator = await startEmulator({ EMULATOR_HOST: '0.0.0.0' });
  const own = 'http://emulator.internal:9999/manifests/nothing0.m3u8';
  const { text } = await send(emulator, { url: own }).set('host', 'emulator.internal:9999');
  expect(text).toContain('is not there (404)');
  // The pages and the control port stay out of reach.
  const dashboard = 'http://emulator.internal:9999/dashboard/credentials';
  const refused = await send(emulator, { url: dashboard }).set('host', 'emulator.internal:9999');
  expect(refused.text).toContain('is refused (403)');
});

test('writes no key, API key or query into the page or the log', async () => {
  const emulator = await startEmulator();
  const address = await servedClip('dash', KEYS);
  const { url: sidecar } = await serve((_request, response) => {
    response.setHeader('content-type', 'text/plain').end(KEY_FILE);
  });
  const pasted = { key_file: KEY_FILE, former: KEY_FILE };
  const fetched = { sidecar, stream_id: 'news', api_key: 'read-key-0123' };
  const { text } = await send(emulator, { url: address, ...pasted, ...fetched });
  const log = await emulator.logOf(1);
  const secrets = [KEYS.key, FAIRPLAY_KEYS.key].flatMap((key) =>
    (['hex', 'base64', 'base64url'] as const).map((encoding) => key.toString(encoding)),
  );
  for (const secret of [...secrets, '0123456789abcdef0123456789abcdef', 'read-key-0123']) {
    expect(text).not.toContain(secret);
    expect(log).not.toContain(secret);
  }
});

test('makes three tests at a time, and each ends when its client goes', async () => {
  const emulator = await startEmulator();
  let asked = 0;
  let gone = 0;
  const { url } = await serve((_request, response) => {
    asked += 1;
    response.on('close', () => {
      gone += 1;
    });
  });
  const tests = [1, 2, 3].map(() => send(emulator, { url }));
  for (const test of tests) test.end(() => undefined);
  await until(() => asked === 3);
  const other = () => send(emulator, { url: 'http://127.0.0.1:1/' });
  const { status, headers, text } = await other();
  expect({ status, retry: headers['retry-after'] }).toEqual({ status: 503, retry: '5' });
  expect(text).toContain('3 tests are under way. Wait until one of them is over.');
  tests[0]?.abort();
  await until(() => gone === 1);
  await until(async () => (await other()).status === 200);
  for (const test of tests) test.abort();
});
