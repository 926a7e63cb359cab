import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { createSidecarApi } from '../../src/cli/client';
import { type Connection, readConnection } from '../../src/cli/connection';
import { createHttpCall } from '../../src/cli/http-call';
import { startFakeUpstream } from '../support/fake-upstream';
import { cli } from '../support/run-cli';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function start(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  cleanups.push(() => {
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
  expect(await cli(['list', '--url', url, '--key', 'k'], { cwd: '/' })).toEqual({
    code: 3,
    stdout: '',
    stderr: `error: No sidecar answers at ${url}: its answer does not end, or is far larger than any of a sidecar. The address comes from --url; --url and PACKAGERDRM_URL set another.\n`,
  });
});

test('waits no longer for an answer that comes drop by drop', async () => {
  const url = await start((response) => {
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  });
  const call = createHttpCall(connectionTo(url));
  await expect(call({ method: 'GET', path: '/', timeoutMs: 200 }, signal)).rejects.toMatchObject({
    causeCode: 'ETIMEDOUT',
  });
});

test('says that what answers does not speak HTTP', async () => {
  const server = createTcpServer(
    (socket) => void socket.on('error', () => undefined).end('220 mail ready\r\n'),
  );
  cleanups.push(() => server.close());
  const url = await listen(server);
  const { code, stderr } = await cli(['get', 'news', '--url', url, '--key', 'k'], { cwd: '/' });
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: `error: No sidecar answers at ${url}: what answers does not speak HTTP. The address comes from --url; --url and PACKAGERDRM_URL set another.\n`,
  });
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
  await expect(ready()).resolves.toBeUndefined();
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
