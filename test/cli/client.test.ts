import { createServer } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { createHttpCall, createSidecarApi } from '../../src/cli/client';
import { readConnection } from '../../src/cli/context';
import { folderOfEachTest } from '../support/after-test';
import { startFakeUpstream } from '../support/fake-upstream';
import { listening } from '../support/listening';
import { cli, refused } from '../support/run-cli';
import { API_KEY, startSidecar } from '../support/start-sidecar';
import { pem, pemPath, shows } from '../support/tls';

/** The API of a sidecar at an address, whose answers may be so much shorter than usual. */
function apiOf(url: string, less = 0) {
  const connection = readConnection({ url, key: 'k' }, {}, '/');
  const send = createHttpCall(connection);
  return createSidecarApi(connection, new AbortController().signal, ({ maxBytes, ...request }) =>
    send({ ...request, maxBytes: maxBytes - less }),
  );
}

test('cuts an answer of more than 64 MiB, as if it did not end', async () => {
  const { url, on } = await startFakeUpstream();
  on('/readyz', { body: { status: 'ready' } });
  const { ready } = apiOf(url, 64 * 1024 * 1024 - 3);
  const description = expect.stringContaining("the answer does not end, or is larger than a sidecar's");
  await expect(ready()).rejects.toMatchObject({ exitCode: 3, problems: [{ description }] });
});

test.each([
  ['220 mail ready\r\n', 'the server does not speak HTTP'],
  [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(16 * 1024)}\r\n\r\n`, 'its answer has more than 16 KiB of headers'],
])('says of a server what it sends in place of an answer: %#', async (bytes, why) => {
  const server = createServer((socket) => void socket.on('error', () => undefined).end(bytes));
  const url = `http://127.0.0.1:${await listening(server)}`;
  expect(await get(url)).toEqual(unreachable(url, why));
  // A later try would not help.
  const onWait = jest.fn();
  expect(
    (await cli(['delete', 'a', 'b', '--yes', '--url', url, '--key', 'k'], { cwd: '/', onWait })).code,
  ).toBe(3);
  expect(onWait).not.toHaveBeenCalled();
});

test('takes no page for the word that a sidecar is ready', async () => {
  const upstream = await startFakeUpstream();
  const { ready } = apiOf(upstream.url);
  upstream.on('/readyz', { headers: { 'content-type': 'text/html' }, body: '<html>' });
  await expect(ready()).rejects.toMatchObject({ exitCode: 3, problems: [{ code: 'not_a_sidecar' }] });
  upstream.on('/readyz', { body: { status: 'ready' } });
  await expect(ready()).resolves.toEqual({ status: 'ready' });
});

const refusal = (code: string) => ({ errors: [{ code, description: 'No.' }] });

test.each<[number, string, number, string]>([
  [401, 'unauthorized', 3, 'URL refused the API key of --key: No.'],
  [429, 'too_many_attempts', 3, 'URL refused the API key of --key: No.'],
  [401, 'client_certificate_required', 3, 'No.'],
  [403, 'client_certificate_refused', 3, 'No.'],
  [403, 'forbidden', 1, 'No.'],
])('blames the API key for %i %s only when it is the cause', async (status, name, code, sentence) => {
  const upstream = await startFakeUpstream();
  upstream.on('/api/keyfile/news', { status, body: refusal(name) });
  expect(await get(upstream.url)).toEqual(refused(code, sentence.replace('URL', upstream.url)));
});

test.each([
  [[], ' The change may have been made all the same; look before you repeat it.'],
  [['--dry-run'], ''],
])('says of a lost answer to put %j what may be done', async (args, maybe) => {
  const upstream = await startFakeUpstream();
  upstream.on('*', 'reset');
  const put = ['put', 'news', '--content-id', 'a', '--url', upstream.url, '--key', 'k', ...args];
  const cut = 'the connection was cut (is it http:// in place of https://?)';
  const why = `${cut}.${maybe}`.slice(0, -1);
  expect(await cli(put, { cwd: '/' })).toEqual(unreachable(upstream.url, why));
  for (const status of [502, 503, 504]) {
    upstream.on('*', status);
    const away = `The proxy in front of the sidecar at ${upstream.url}/base can't reach it (status ${status}).${maybe}`;
    expect(await cli([...put, '--url', `${upstream.url}/base/`], { cwd: '/' })).toEqual(refused(3, away));
  }
});

test('shows no API key that a server quotes', async () => {
  const upstream = await startFakeUpstream();
  const errors = [{ code: 'unauthorized', description: 'No such key: s3cret-key.' }];
  const [path, headers] = ['/api/keyfile/news', { 'content-type': 'text/plain' }];
  upstream.on(path, { status: 401, body: { errors } });
  const sentence = `${upstream.url} refused the API key of --key: No such key: ***.`;
  expect(await get(upstream.url, '--key', 's3cret-key')).toEqual(refused(3, sentence));
  upstream.on(path, { headers: { ...headers, warning: '299 - "key: s3cret-key"' }, body: 'a: b\n' });
  const put = ['put', 'news', '--url', upstream.url, '--key', 's3cret-key', '--content-id', 'a'];
  expect((await cli(put, { cwd: '/' })).stderr).toMatch(/^warning: key: \*{3}\n/);
  const results = [{ index: 0, streamid: 'news', result: 'failed', errors }];
  upstream.on('*', { body: { summary: { failed: 1 }, results } });
  const [, , ...options] = put;
  const { stdout } = await cli(['put', '--tracks', 'SD=news', ...options], { cwd: '/' });
  expect(stdout).toContain('No such key: ***.');
});

test('follows no redirect: the key is for the address alone', async () => {
  const elsewhere = await startFakeUpstream();
  const upstream = await startFakeUpstream();
  upstream.on('/api/keyfile/news', {
    status: 307,
    headers: { location: `${elsewhere.url}/api/keyfile/news` },
  });
  const sentence = `The server at ${upstream.url} does not answer as this version's key-file API (status 307, text/html). Check the address.`;
  expect(await get(upstream.url)).toEqual(refused(3, sentence));
  expect(elsewhere.received).toEqual([]);
});

async function startSecure(options: object = {}): Promise<string> {
  const { url, on } = await startFakeUpstream({ ...shows('server'), ...options });
  on('/api/keyfile/news', { headers: { 'content-type': 'text/plain' }, body: 'a: b\n' });
  return url;
}

const get = (url: string, ...args: string[]) =>
  cli(['get', 'news', '--reveal', '--url', url, '--key', 'k', ...args], { cwd: '/' });

const unreachable = (url: string, why: string) =>
  refused(
    3,
    `No answer from ${url}: ${why}. The address comes from --url; change it with --url or PACKAGERDRM_URL.`,
  );

test('trusts the authority of --ca, and nobody else', async () => {
  const url = await startSecure();
  const why = 'its certificate is not trusted; give the authority that issued it with --ca';
  for (const trusted of ['authority', 'server'])
    expect(await get(url, '--ca', pemPath(trusted))).toEqual({ code: 0, stdout: 'a: b\n', stderr: '' });
  expect(await get(url)).toEqual(unreachable(url, why));
  expect(await get(url, '--ca', pemPath('other-authority'))).toEqual(unreachable(url, why));
});

test('shows its certificate to a sidecar that asks for one', async () => {
  const url = await startSecure({ ca: pem('authority'), requestCert: true, rejectUnauthorized: true });
  const mine = ['--cert', pemPath('client'), '--cert-key', pemPath('client-key')];
  expect((await get(url, '--ca', pemPath('authority'), ...mine)).code).toBe(0);
  expect((await get(url, '--ca', pemPath('authority'))).code).toBe(3);
});

test('says that a file holds no certificate', async () => {
  const url = await startSecure();
  const sentence = 'The file of --ca holds no certificate: a PEM file has a line -----BEGIN ….';
  expect(await get(url, '--ca', __filename)).toEqual(refused(2, sentence));
  expect(await get(url, '--ca', pemPath('client-key'))).toEqual(refused(2, sentence));
});

test('says when the scheme is the other one', async () => {
  const url = (await startSecure()).replace('https', 'http');
  expect(await get(url)).toEqual(
    unreachable(url, 'the connection was cut (is it http:// in place of https://?)'),
  );
  const plain = (await startFakeUpstream()).url.replace('http', 'https');
  expect(await get(plain)).toEqual(
    unreachable(plain, 'it does not speak TLS (is it https:// in place of http://?)'),
  );
});

describe('secrets', () => {
  const CONTENT_KEY = 'lnA03mLuxnL3toiRMxV4Zw==';
  const FAIRPLAY = { key: 'CBF76BB43B9A54254A5FC20074A3A53B', iv: '1A3F2AA76D84742DD123E3E50E7BC681' };
  const CLIENT_API_KEY = 'client-api-key-that-is-secret';
  const SECRETS = [API_KEY, CLIENT_API_KEY, CONTENT_KEY, FAIRPLAY.key, FAIRPLAY.iv];
  // As hex and without its padding, too: a description may hold the bytes in another form.
  const FORMS = [...SECRETS, CONTENT_KEY.slice(0, -2), Buffer.from(CONTENT_KEY, 'base64').toString('hex')];

  const BODY = {
    cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: CONTENT_KEY },
    fairplay: { ...FAIRPLAY, laurl: 'skd://h/a' },
  };
  const AS_OPTIONS = [
    ...['--cenc-keyid', BODY.cenc.keyid, '--cenc-contentkey', CONTENT_KEY],
    ...['--fairplay-key', FAIRPLAY.key, '--fairplay-iv', FAIRPLAY.iv],
    ...['--fairplay-laurl', BODY.fairplay.laurl],
  ];
  const CLIENT = ['--client', 'acme', '--client-api-key', CLIENT_API_KEY];

  const FILES: Readonly<Record<string, string>> = {
    'body.json': JSON.stringify(BODY),
    'broken.json': `{"cenc": {"contentkey": "${CONTENT_KEY}" "${FAIRPLAY.key}"`,
    'unknown.json': JSON.stringify({
      ...BODY,
      [CONTENT_KEY]: 1,
      cenc: { ...BODY.cenc, keyid: CONTENT_KEY.slice(1) },
    }),
    'manifest.yaml': `streams: [{ streamid: a, cenc: { keyid: "${BODY.cenc.keyid}", contentkey: "${CONTENT_KEY}" } }]\n`,
    'wrong.yaml': `streams:\n  - { streamid: a, cenc: ${CONTENT_KEY}, clientApiKey: [${CLIENT_API_KEY}] }\n`,
    'manifest.csv': `streamid,cenc.keyid,cenc.contentkey\na,${BODY.cenc.keyid},${CONTENT_KEY}\n`,
    'broken.csv': `streamid,cenc.contentkey\na,"${CONTENT_KEY}"${FAIRPLAY.key}\n`,
    'odd-header.csv': `streamid,${CONTENT_KEY}\na,b\n`,
    'blank.yaml': `streams:\n  - { streamid: a, cenc: {keyid: ${BODY.cenc.keyid}, contentkey:${CONTENT_KEY}} }\n`,
    'twice.yaml': `{ ${CONTENT_KEY}: 1, ${CONTENT_KEY}: 2 }\n`,
    'wrong.csv': `streamid,cenc.contentkey\na,${CONTENT_KEY},${FAIRPLAY.key}\n`,
  };

  const COMMANDS: readonly (readonly string[])[] = [
    ['put', 'a', ...AS_OPTIONS, '--dry-run'],
    ['put', 'a', '--file', 'body.json'],
    ['put', 'a', '--file', 'broken.json'],
    ['put', 'a', '--content-id', 'c', ...CLIENT],
    ['put', 'a', `--clientapikey=${CLIENT_API_KEY}`],
    ['put', 'a', '--cenc-keyid', CONTENT_KEY, '--cenc-contentkey', FAIRPLAY.key],
    ['get', 'a'],
    ['get', 'odd'],
    ['check', 'body.json'],
    ['check', 'unknown.json'],
    ['check', 'broken.json'],
    ['put', 'a', '--file', 'twice.yaml'],
    ...Object.keys(FILES)
      .filter((name) => !name.endsWith('.json'))
      .map((name) => ['apply', name, '--yes', ...CLIENT]),
    ['rotate', 'manifest.yaml', '--yes', '--verbose', ...CLIENT],
    ['delete', '--not-in', 'wrong.csv', '--yes'],
    ['list', '--csv'],
    ['delete', 'a', 'odd', '--yes'],
    ['get', 'a', '--key', `${API_KEY} with a space`],
    ['get', 'a', '--key', CLIENT_API_KEY],
  ];

  const cwd = folderOfEachTest();

  beforeEach(async () => {
    for (const [name, text] of Object.entries(FILES)) await fs.writeFile(join(cwd, name), text);
  });

  async function leaks(sidecar: { url: string }, args: readonly string[]): Promise<string[]> {
    const found: string[] = [];
    for (const json of [[], ['--json']]) {
      const { stdout, stderr } = await cli([...args, ...json], { cwd, sidecar });
      const text = `${stdout}${stderr}`.toLowerCase();
      expect(text).not.toBe('');
      found.push(...FORMS.filter((form) => text.includes(form.toLowerCase())));
    }
    return found;
  }

  test.each(COMMANDS.map((args) => [args.slice(0, 4).join(' '), args] as const))(
    'shows no secret with a real sidecar: %s',
    async (_name, args) => {
      const sidecar = await startSidecar();
      await sidecar.api.post('/api/keyfile/a').send(BODY);
      const odd = `${CONTENT_KEY}\n# ${CONTENT_KEY}\nmy-key: ${CONTENT_KEY}\nmpegdashstreaming-cenc-content-key:${CONTENT_KEY}\n`;
      await fs.writeFile(join(sidecar.folder, 'odd.key'), odd);
      expect(await leaks(sidecar, args)).toEqual([]);
    },
  );
});
