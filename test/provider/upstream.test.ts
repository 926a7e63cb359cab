import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { ConfigError } from '../../src/http/config';
import { openUpstreamTls, readProviderConfig } from '../../src/provider/config';
import { createTunnel, isExcepted } from '../../src/provider/proxy';
import { afterTest, temporaryFolder } from '../support/after-test';
import { refusedUrl, startFakeUpstream } from '../support/fake-upstream';
import { listening } from '../support/listening';
import { recordedLog } from '../support/recorded-log';
import { startSidecar } from '../support/start-sidecar';
import { CONTENT_ID, reference, SPEKE_PATH } from '../support/start-speke';
import { pem, place, shows } from '../support/tls';
import { until } from '../support/until';

const PATH = '/api/keyfile/demo';
const BODY = { contentId: CONTENT_ID };

/** Lets a server listen; answers its port, and the connections that it has. */
async function serving(server: Server) {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
  });
  return { port: await listening(server), sockets };
}

/** A proxy that answers CONNECT with a status, or `hang`: not at all. */
async function startProxy(status: 200 | 403 | 407 | 'hang' = 200, secure = false) {
  const [asked, requests]: [string[], string[]] = [[], []];
  const tls = { ...shows('server'), requestCert: true, rejectUnauthorized: false };
  const server = secure ? createHttpsServer(tls) : createHttpServer();
  const certificates: object[] = [];
  server.on('secureConnection', (socket: TLSSocket) => certificates.push(socket.getPeerCertificate()));
  server.on('request', (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.end();
  });
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push([url, headers['proxy-authorization']].filter(Boolean).join(' '));
    // Of a socket that is not read, the end is not seen; and a server of HTTP leaves its half open.
    client.resume().on('end', () => client.end());
    if (status === 'hang') return;
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const [host, port] = url.split(':');
    const target = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.pipe(client).pipe(target);
    });
    target.on('error', () => undefined).on('close', () => client.destroy());
    client.on('close', () => target.destroy());
  });
  const { port, sockets } = await serving(server);
  return {
    url: `http${secure ? 's' : ''}://127.0.0.1:${port}`,
    port,
    asked,
    requests,
    sockets,
    certificates,
  };
}

async function startHttps() {
  const upstream = await startFakeUpstream({ ...shows('server'), ca: pem('authority'), requestCert: true });
  upstream.on(SPEKE_PATH, reference());
  return upstream;
}

async function ask(upstream: string, proxy: string, status: number, { except = '', timeoutMs = 5000 } = {}) {
  const sidecar = await startSidecar(
    {
      keyProviderUrl: `${upstream}${SPEKE_PATH}`,
      keyProviderProtocol: 'speke2',
      upstreamTimeoutMs: timeoutMs,
    },
    undefined,
    { upstreamTls: () => TRUST, tunnel: createTunnel({ url: proxy, except }) },
  );
  const { body } = await sidecar.api.post(PATH).send(BODY).expect(status);
  return body.errors?.[0].description;
}

const TRUST = { ca: pem('authority'), ...shows('client') };

describe('an https upstream behind a proxy', () => {
  it('is asked through its CONNECT, with the user of its address', async () => {
    const upstream = await startHttps();
    const proxy = await startProxy();
    await ask(upstream.url, proxy.url.replace('//', '//me:pass%20word@'), 200);
    const host = new URL(upstream.url).host;
    const basic = `Basic ${Buffer.from('me:pass word').toString('base64')}`;
    expect(proxy.asked).toEqual([`${host} ${basic}`, `${host} ${basic}`]);
    expect(upstream.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `POST ${SPEKE_PATH}`,
      `POST ${SPEKE_PATH}`,
    ]);
    await until(() => proxy.sockets.size === 0);
  });

  it('is asked through a proxy of HTTPS that has the same authority, and is not shown the client certificate', async () => {
    const proxy = await startProxy(200, true);
    await ask((await startHttps()).url, proxy.url, 200);
    expect(proxy.asked).toHaveLength(2);
    expect(proxy.certificates).toEqual([{}, {}]);
  });

  it('is asked directly where NO_PROXY names it, and an http upstream always', async () => {
    const proxy = await startProxy();
    await ask((await startHttps()).url, proxy.url, 200, { except: 'localhost,127.0.0.1' });
    const plain = await startFakeUpstream();
    plain.on(SPEKE_PATH, reference());
    await ask(plain.url, proxy.url, 200);
    expect([proxy.asked, proxy.requests]).toEqual([[], []]);
  });

  it.each([403, 407] as const)('is not taken for the proxy, which answers %s', async (status) => {
    const upstream = await startHttps();
    const proxy = await startProxy(status);
    expect(await ask(upstream.url, proxy.url, 502)).toBe(
      `The key provider can't be reached (PROXY_${status}); the proxy answers ${status}; check HTTPS_PROXY, or name the host in NO_PROXY. No key file was changed.`,
    );
    expect([upstream.received, proxy.requests]).toEqual([[], []]);
    await until(() => proxy.sockets.size === 0);
  });

  it('is out of reach where nothing listens in the place of the proxy', async () => {
    const upstream = await startHttps();
    expect(await ask(upstream.url, await refusedUrl(), 502)).toBe(
      "The key provider can't be reached (ECONNREFUSED); check PACKAGERDRMAPI_KEYPROVIDERURL and HTTPS_PROXY. No key file was changed.",
    );
  });

  it('is given up in time when the proxy is silent, or the server behind it, and no connection is left', async () => {
    const silent = await startProxy('hang');
    const upstream = await startHttps();
    expect(await ask(upstream.url, silent.url, 504, { timeoutMs: 150 })).toMatch(
      /did not answer within 150 ms/,
    );
    await until(() => silent.sockets.size === 0);
    const { port, sockets } = await serving(createServer((socket) => socket.resume()));
    const proxy = await startProxy();
    expect(await ask(`https://127.0.0.1:${port}`, proxy.url, 504, { timeoutMs: 150 })).toMatch(/150 ms/);
    expect(proxy.asked).toHaveLength(2);
    await until(() => proxy.sockets.size + sockets.size === 0);
    upstream.on(SPEKE_PATH, 'hang');
    expect(await ask(upstream.url, proxy.url, 504, { timeoutMs: 300 })).toMatch(/300 ms/);
    await until(() => proxy.sockets.size === 0);
  });
});

it.each<[list: string, url: string, isExcepted: boolean]>([
  ['', 'https://keys.example', false],
  ['*', 'https://keys.example', true],
  ['keys.example', 'https://keys.example', true],
  ['KEYS.example other', 'https://keys.Example', true],
  ['.example, x', 'https://keys.example', true],
  ['*.example', 'https://keys.example', true],
  ['ys.example', 'https://keys.example', false],
  ['keys.example:443', 'https://keys.example', true],
  ['keys.example:8443', 'https://keys.example', false],
  ['keys.example:8443', 'https://keys.example:8443', true],
  ['127.0.0.1', 'https://127.0.0.1:9', true],
  ['::1', 'https://[::1]:9', true],
  ['[::1]:9', 'https://[::1]:9', true],
])('NO_PROXY=%s covers %s: %j', (list, url, expected) => {
  expect(isExcepted(new URL(url), list)).toBe(expected);
});

it('is what the environment has for other programs, too, if it is a proxy of HTTP', () => {
  const read = (env: Readonly<Record<string, string>>) => readProviderConfig(env).proxy;
  expect(read({})).toBeUndefined();
  expect(read({ HTTPS_PROXY: 'http://me:word@proxy.example:3128', NO_PROXY: '.example' })).toEqual({
    url: 'http://me:word@proxy.example:3128',
    except: '.example',
  });
  expect(read({ https_proxy: 'proxy.example:3128' })).toEqual({
    url: 'http://proxy.example:3128',
    except: '',
  });
  for (const wrong of ['socks5://proxy.example', 'http://me:100%@proxy.example'])
    expect(() => read({ HTTPS_PROXY: wrong })).toThrow(
      new ConfigError([
        'HTTPS_PROXY: must be the http:// or https:// address of a proxy, which may have user and password in it, percent-encoded',
      ]),
    );
});

type Files = Parameters<typeof openUpstreamTls>[0];

/** A provider that lets in clients of two authorities alone, and a sidecar that goes there with the files. */
async function startTls(files: Files | undefined, server: TlsOptions = shows('server')) {
  const upstream = await startFakeUpstream({
    ...server,
    ca: [pem('authority'), pem('other-authority')],
    requestCert: true,
    rejectUnauthorized: true,
  });
  upstream.on(SPEKE_PATH, reference());
  const { log, lines } = recordedLog();
  const opened = files && openUpstreamTls(files, { log, clock: () => new Date(), intervalMs: 10 });
  if (opened) afterTest(async () => opened.close());
  const sidecar = await startSidecar(
    { keyProviderUrl: `${upstream.url}${SPEKE_PATH}`, keyProviderProtocol: 'speke2' },
    undefined,
    { upstreamTls: opened?.current },
  );
  const clients = () => upstream.received.map(({ client }) => client);
  return { sidecar, clients, lines };
}

async function placed(name: string) {
  const folder = await temporaryFolder();
  const [authorities, certificate, key] = ['ca', 'crt', 'key'].map((file) => join(folder, file)) as [
    string,
    string,
    string,
  ];
  place('authority', authorities);
  place(name, certificate);
  place(`${name}-key`, key);
  return { authorities, client: { certificate, key } };
}

it('an upstream of another authority, which wants a client certificate, is asked with what the files hold, also after they change', async () => {
  const files = await placed('client');
  const { sidecar, clients, lines } = await startTls(files);
  await sidecar.api.post(PATH).send(BODY).expect(200);
  const client = 'CN=client of the tests';
  expect(clients()).toEqual([client, client]);
  place('other-client', files.client.certificate);
  place('other-client-key', files.client.key);
  await until(() => JSON.stringify(lines).includes('other-client'));
  await sidecar.api.post(PATH).send(BODY).expect(200);
  const other = 'CN=other-client of the tests';
  expect(clients()).toEqual([client, client, other, other]);
});

it('an upstream is trusted by its own certificate, or by an authority below the root', async () => {
  const { authorities, client } = await placed('client');
  place('server', authorities);
  const { sidecar, clients } = await startTls({ authorities, client });
  await sidecar.api.post(PATH).send(BODY).expect(200);
  expect(clients()).toHaveLength(2);
});

it.each<[without: string, files: (all: Required<Files>) => Files | undefined, why: RegExp]>([
  [
    'its authority',
    ({ client }) => ({ client }),
    / can't be reached \(\w+\); its certificate is not trusted; name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA\. /,
  ],
  ['both', () => undefined, /; name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA\. /],
  [
    'a certificate',
    ({ authorities }) => ({ authorities }),
    /; the TLS handshake failed; if it wants a client certificate, set PACKAGERDRMAPI_UPSTREAMTLSCERT and PACKAGERDRMAPI_UPSTREAMTLSKEY\. /,
  ],
])(
  'such an upstream is not asked without %s, and the answer says what to set',
  async (_without, some, why) => {
    const { sidecar, clients } = await startTls(some(await placed('client')));
    const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
    expect(body.errors[0].description).toMatch(why);
    expect(clients()).toEqual([]);
  },
);

it('an upstream whose certificate OpenSSL takes as weak is not asked, and the answer says what is weak', async () => {
  const { authorities } = await placed('client');
  place('sha1-authority', authorities);
  const server = { ...shows('sha1'), ciphers: 'DEFAULT:@SECLEVEL=0' };
  const { sidecar, clients } = await startTls({ authorities }, server);
  const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
  expect(body.errors[0].description).toMatch(/; OpenSSL refuses its certificate, as one with a weak key /);
  expect(clients()).toEqual([]);
});
