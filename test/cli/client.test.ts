import { createServer, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { createHttpCall, createSidecarApi } from '../../src/cli/client';
import { type Connection, readConnection } from '../../src/cli/connection';
import { afterTest } from '../support/after-test';
import { startFakeUpstream } from '../support/fake-upstream';
import { cli } from '../support/run-cli';
import { pem, pemPath } from '../support/tls';

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function start(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  afterTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return listen(server);
}

const connectionTo = (url: string): Connection => readConnection({ url, key: 'k' }, {}, '/');
const signal = new AbortController().signal;

test('cuts an answer that does not end', async () => {
  const piece = Buffer.alloc(1024 * 1024, ' ');
  const url = await start((response) => {
    const pour = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', pour).on('error', () => undefined);
    pour();
  });
  expect(await cli(['list', '--url', url, '--key', 'k'], { cwd: '/' })).toEqual(
    unreachable(url, 'its answer does not end, or is far larger than the answer of a sidecar'),
  );
});

test('says that the server does not speak HTTP', async () => {
  const server = createTcpServer(
    (socket) => void socket.on('error', () => undefined).end('220 mail ready\r\n'),
  );
  afterTest(() => server.close());
  const url = await listen(server);
  expect(await get(url)).toEqual(unreachable(url, 'the server does not speak HTTP'));
});

test('takes no page for the word that a sidecar is ready', async () => {
  const upstream = await startFakeUpstream();
  const { ready } = createSidecarApi(
    connectionTo(upstream.url),
    signal,
    createHttpCall(connectionTo(upstream.url)),
  );
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
  const ended = await cli(['get', 'news', '--url', upstream.url, '--key', 'k'], { cwd: '/' });
  expect(ended).toEqual({
    code,
    stdout: '',
    stderr: `error: ${sentence.replace('URL', upstream.url)}\n`,
  });
});

test('follows no redirect: the key is for the address alone', async () => {
  const elsewhere = await startFakeUpstream();
  const upstream = await startFakeUpstream();
  upstream.on('/api/keyfile/news', {
    status: 307,
    headers: { location: `${elsewhere.url}/api/keyfile/news` },
  });
  const { code, stderr } = await cli(['get', 'news', '--url', upstream.url, '--key', 'k'], { cwd: '/' });
  expect({ code, stderr, received: elsewhere.received }).toEqual({
    code: 3,
    stderr: `error: The server at ${upstream.url} does not answer as this version's key-file API (status 307, text/html). Check the address.\n`,
    received: [],
  });
});

async function startSecure(options: object = {}): Promise<string> {
  const tls = { cert: pem('server'), key: pem('server-key'), ...options };
  const server = createSecureServer(tls, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('a: b\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const get = (url: string, ...args: string[]) =>
  cli(['get', 'news', '--reveal', '--url', url, '--key', 'k', ...args], { cwd: '/' });

const unreachable = (url: string, why: string) => ({
  code: 3,
  stdout: '',
  stderr: `error: Can't connect to ${url}: ${why}. The address comes from --url; change it with --url or PACKAGERDRM_URL.\n`,
});

test('trusts the authority of --ca, and nobody else', async () => {
  const url = await startSecure();
  const why = 'its certificate is not trusted; give the authority that issued it with --ca';
  expect(await get(url, '--ca', pemPath('authority'))).toEqual({ code: 0, stdout: 'a: b\n', stderr: '' });
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
  const mine = ['--cert', __filename, '--cert-key', pemPath('client-key')];
  const refused = (option: string) => ({
    code: 2,
    stdout: '',
    stderr: `error: The file of ${option} holds no certificate: a PEM file has a line -----BEGIN ….\n`,
  });
  expect(await get(url, ...mine)).toEqual(refused('--cert'));
  expect(await get(url, '--ca', __filename)).toEqual(refused('--ca'));
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
