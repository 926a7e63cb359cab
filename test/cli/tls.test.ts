import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { startFakeUpstream } from '../support/fake-upstream';
import { cli } from '../support/run-cli';
import { pem, pemPath } from '../support/tls';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function start(options: object = {}): Promise<string> {
  const tls = { cert: pem('server'), key: pem('server-key'), ...options };
  const server = createServer(tls, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('a: b\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
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
  stderr: `error: No sidecar answers at ${url}: ${why}. The address comes from --url; --url and PACKAGERDRM_URL set another.\n`,
});

test('trusts the authority of --ca, and nobody else', async () => {
  const url = await start();
  const why = 'its certificate is not trusted; name the authority that issued it by --ca';
  expect(await get(url, '--ca', pemPath('authority'))).toEqual({ code: 0, stdout: 'a: b\n', stderr: '' });
  expect(await get(url)).toEqual(unreachable(url, why));
  expect(await get(url, '--ca', pemPath('other-authority'))).toEqual(unreachable(url, why));
});

test('shows its certificate to a sidecar that asks for one', async () => {
  const url = await start({ ca: pem('authority'), requestCert: true, rejectUnauthorized: true });
  const mine = ['--cert', pemPath('client'), '--cert-key', pemPath('client-key')];
  expect((await get(url, '--ca', pemPath('authority'), ...mine)).code).toBe(0);
  expect((await get(url, '--ca', pemPath('authority'))).code).toBe(3);
});

test('says that a file holds no certificate', async () => {
  const url = await start();
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
  const url = (await start()).replace('https', 'http');
  expect(await get(url)).toEqual(
    unreachable(url, 'the connection was cut (is it http:// in place of https://?)'),
  );
  const plain = (await startFakeUpstream()).url.replace('http', 'https');
  expect(await get(plain)).toEqual(
    unreachable(plain, 'it does not speak TLS (is it https:// in place of http://?)'),
  );
});
