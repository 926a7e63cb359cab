import type { AddressInfo } from 'node:net';
import { createServer, type TlsOptions } from 'node:tls';
import { openEngine, startGateway } from '../../../support/etcd-gateway';
import { pem, shows } from '../../../support/tls';

const ca = pem('authority');
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const BODY = '{"header":{"cluster_id":"5"}}';

/** A server of etcd behind TLS. */
async function startSecure(options: TlsOptions, host = '127.0.0.1'): Promise<string> {
  const server = createServer(options, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closing.push(() => server.close());
  return `https://${host}:${(server.address() as AddressInfo).port}`;
}

test('presents the certificate in force at each new connection', async () => {
  const url = await startSecure({ ...shows('server'), ca, requestCert: true, rejectUnauthorized: true });
  let presented: object = { ca };
  const engine = openEngine([url], { timeoutMs: 1000, tls: () => presented });
  await expect(engine.read(['a'])).rejects.toMatchObject({
    kind: expect.stringMatching(/^(?:denied|unavailable)$/),
  });
  presented = { ca, ...shows('client') };
  expect((await engine.read(['a'])).values).toEqual([undefined]);
});

test.each<[what: string, name: string, authority: string, host: string, why: string]>([
  ['has expired', 'expired-client', 'authority', '127.0.0.1', 'its certificate has expired'],
  [
    ...(['is of another authority', 'server', 'other-authority', '127.0.0.1'] as const),
    'its certificate is not trusted; name the authority that signed it with PACKAGERDRMAPI_FLEET_TLSCA',
  ],
  [
    ...(['is for clients', 'client', 'authority', '127.0.0.1'] as const),
    'its certificate is not one for servers (extended key usage serverAuth)',
  ],
  ['has another name', 'server', 'authority', '127.0.0.2', 'its certificate is for another name'],
])('a certificate that %s is named as the fault', async (_what, name, authority, host, why) => {
  const [url, trusted] = [await startSecure(shows(name), host), { ca: pem(authority) }];
  const engine = openEngine([url], { timeoutMs: 1000, tls: () => trusted });
  expect(await engine.servers()).toEqual([{ url, fault: why }]);
  await expect(engine.change([{ key: 'a', expected: 0, value: undefined }])).rejects.toMatchObject({
    kind: 'unavailable',
    message: `${url}: ${why}`,
  });
});

test('TLS where there is none, and none where there is, are unavailable', async () => {
  const wrong = (await startGateway()).url.replace('http:', 'https:');
  await expect(openEngine([wrong], { timeoutMs: 1000 }).read(['a'])).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/TLS/),
  });
  const secure = (await startSecure(shows('server'))).replace('https:', 'http:');
  await expect(openEngine([secure], { timeoutMs: 1000 }).read(['a'])).rejects.toMatchObject({
    kind: 'unavailable',
  });
});
