import { X509Certificate } from 'node:crypto';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { createApp, type Shell } from '../../src/http/app';
import { ConfigError } from '../../src/http/config';
import { listen } from '../../src/http/server';
import { openTls, requireCertificate, type Tls } from '../../src/http/tls';
import { afterTest, folderOfEachTest } from '../support/after-test';
import { errorBody } from '../support/error-body';
import { rawExchange } from '../support/raw-http';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { pem, place, secureGet, shows } from '../support/tls';
import { until } from '../support/until';

const ENDS = Date.UTC(2126, 0, 1);
const DAY_MS = 24 * 60 * 60 * 1000;

const folder = folderOfEachTest();
const certificate = join(folder, 'tls.crt');
const key = join(folder, 'tls.key');
const clientAuthorities = join(folder, 'clients.crt');
let lines: LogLine[];

beforeEach(() => {
  place('server', certificate);
  place('server-key', key);
  place('authority', clientAuthorities);
});

function open({ asksClients = false, time = ENDS - 1000 * DAY_MS } = {}): Tls {
  const recorded = recordedLog();
  lines = recorded.lines;
  const files = { certificate, key, clientAuthorities: asksClients ? clientAuthorities : undefined };
  const options = { log: recorded.log, clock: () => new Date(time), intervalMs: 10 };
  const tls = openTls(files, 'MY_TLS', options);
  afterTest(tls.close);
  return tls;
}

const sayHello: RequestListener = (_request, response) => void response.end('"hello"');

/** Says hello to who shows a certificate. */
function certified(shell: Shell): RequestListener {
  return createApp(shell, (app) => {
    app.use((request, response) => {
      requireCertificate(request);
      sayHello(request, response);
    });
  });
}

async function serve(tls: Tls, handler = sayHello) {
  const server = await listen(handler, '127.0.0.1', 0, { tls });
  afterTest(() => server.stop(0));
  return server;
}

const KEPT = 'the TLS files cannot be used; the previous certificate stays in use';
const SERVER = 'CN=server of the tests';
const NEXT_SERVER = 'CN=next-server of the tests';

function certificateRead(subject: string): LogLine {
  const subjectAltName = 'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1';
  const fields = { certificate, subject, subjectAltName, validUntil: '2126-01-01T00:00:00.000Z' };
  return ['info', 'TLS certificate read', fields];
}

test('answers over TLS 1.2 and 1.3, and to nothing older', async () => {
  const { port, url } = await serve(open());
  expect(url).toBe(`https://127.0.0.1:${port}`);
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const answer = await secureGet(port, '/', { minVersion: version, maxVersion: version });
    expect(answer).toMatchObject({ status: 200, body: 'hello', server: SERVER });
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  await expect(secureGet(port, '/', old)).rejects.toThrow(/alert|version/);
  expect(lines).toEqual([certificateRead(SERVER)]);
});

test('answers with a replaced certificate, keeps open connections, and takes new ones without a break', async () => {
  const { port } = await serve(open());
  const kept = connectTls({ port, host: '127.0.0.1', ca: pem('authority') });
  afterTest(() => kept.destroy());
  let received = '';
  kept.on('data', (chunk) => {
    received += String(chunk);
  });
  kept.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => received.endsWith('"hello"'));
  // In between, the two don't fit together.
  place('next-server', certificate);
  expect((await secureGet(port, '/')).server).toBe(SERVER);
  place('next-server-key', key);
  await until(async () => (await secureGet(port, '/')).server === NEXT_SERVER);
  received = '';
  kept.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => received.endsWith('"hello"'));
  expect(lines.filter(([level]) => level === 'info')).toEqual([
    certificateRead(SERVER),
    certificateRead(NEXT_SERVER),
  ]);
});

const NO_CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

test.each<[fault: RegExp, spoil: () => void]>([
  [/MY_TLSKEY: \S+ is not the key of the certificate/, () => place('next-server', certificate)],
  [/MY_TLSCERT: \S+ holds a certificate that cannot be read/, () => truncateSync(certificate, 300)],
  [/holds a certificate that cannot be read/, () => writeFileSync(certificate, NO_CERTIFICATE)],
  [
    /the server's certificate must come first/,
    () => writeFileSync(certificate, Buffer.concat([pem('authority'), pem('server')])),
  ],
  [/holds no private key in PEM form/, () => place('server', key)],
  [/locked with a passphrase/, () => place('encrypted-server-key', key)],
  [/tls\.crt: there is no such file/, () => rmSync(certificate)],
  [
    /MY_TLSCLIENTCA: \S+clients\.crt: holds a certificate that cannot be read/,
    () => writeFileSync(clientAuthorities, Buffer.concat([pem('authority'), pem('middle').subarray(0, 300)])),
  ],
  [
    /cannot be read; it may be cut, or not on lines of its own/,
    () => writeFileSync(clientAuthorities, `${String(pem('authority')).trim()}${pem('middle')}`),
  ],
  [/MY_TLSCLIENTCA: \S+clients\.crt: holds no certificate/, () => writeFileSync(clientAuthorities, 'x')],
])(
  'keeps the certificate when a file changes for the worse, says why once, and refuses to start with it: %s',
  async (fault, spoil) => {
    const { port } = await serve(open({ asksClients: true }));
    spoil();
    await until(() => lines.length > 1);
    expect((await secureGet(port, '/')).server).toBe(SERVER);
    expect(lines).toEqual([
      certificateRead(SERVER),
      ['error', KEPT, { faults: [expect.stringMatching(fault)] }],
    ]);
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY-----\\n');
    expect(() => open({ asksClients: true })).toThrow(ConfigError);
    expect(() => open({ asksClients: true })).toThrow(fault);
  },
);

test.each<[days: number, warning: string | undefined, daysLeft: number | undefined]>([
  [14, undefined, undefined],
  [13.5, 'the TLS certificate expires soon', 13],
  [0.5, 'the TLS certificate expires soon', 0],
  [0, 'the TLS certificate has expired', 0],
  [-1, 'the TLS certificate has expired', -1],
])('%d days before the certificates end, warns: %s', (days, warning, daysLeft) => {
  open({ asksClients: true, time: ENDS - days * DAY_MS });
  const expected = [certificate, clientAuthorities].map((file) => [
    'warn',
    warning,
    { certificate: file, daysLeft },
  ]);
  expect(lines).toEqual([certificateRead(SERVER), ...(warning === undefined ? [] : expected)]);
});

test('reports the end of the certificate in each file that ends first, and of replaced files', async () => {
  const endOf = (name: string) => new Date(new X509Certificate(pem(name)).validTo);
  expect(open().ends).toEqual({ server: endOf('server'), clientAuthorities: undefined });
  const tls = open({ asksClients: true });
  expect(tls.ends).toEqual({ server: endOf('server'), clientAuthorities: endOf('authority') });
  const early = endOf('expired-client');
  expect(early < endOf('server')).toBe(true);
  writeFileSync(certificate, Buffer.concat([pem('server'), pem('expired-client')]));
  writeFileSync(clientAuthorities, Buffer.concat([pem('authority'), pem('expired-client')]));
  await until(() => tls.ends.clientAuthorities?.getTime() === early.getTime());
  await until(() => tls.ends.server.getTime() === early.getTime());
});

test('answers plain HTTP on the TLS port with what to do', async () => {
  const { port } = await serve(open());
  const answer = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', /\}$/);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual({
    errors: [{ code: 'https_required', description: 'This port speaks HTTPS: call it with https://.' }],
  });
});

test('answers what is no HTTP over TLS as it does without TLS', async () => {
  const { port } = await serve(open());
  const socket = connectTls({ port, host: '127.0.0.1', ca: pem('authority') });
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  socket.write('NONSENSE\r\n\r\n');
  await new Promise((resolve) => socket.on('close', resolve));
  expect(received).toMatch(/^HTTP\/1\.1 400 .*"code":"bad_request"/s);
});

test('goes on, and logs nothing, when clients send no TLS or go in the middle of it', async () => {
  const { port } = await serve(open());
  for (const bytes of ['\x00\x01\x02', '\x16\x03\x01\x02\x00\x01', '']) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.end(bytes, 'latin1');
    await closed;
  }
  const distrusting = connectTls({ port, host: '127.0.0.1' });
  await new Promise((resolve) => distrusting.on('error', resolve));
  expect((await secureGet(port, '/')).status).toBe(200);
  expect(lines).toEqual([certificateRead(SERVER)]);
});

describe('stop', () => {
  it('lets a request under way be answered, and ends at once what asks nothing', async () => {
    const asked: (() => void)[] = [];
    const server = await serve(open(), (_request, response) => {
      asked.push(() => response.end('"late"'));
    });
    const { port } = server;
    const idle = connectTls({ port, host: '127.0.0.1', ca: pem('authority') });
    const silent = connect(port, '127.0.0.1');
    const shaking = connect(port, '127.0.0.1', () => shaking.write('\x16\x03\x01\x02\x00', 'latin1'));
    const ended = [idle, silent, shaking].map(
      (socket) => new Promise((resolve) => socket.on('close', resolve)),
    );
    await new Promise((resolve) => idle.on('secureConnect', resolve));
    const answering = secureGet(port, '/');
    await until(() => asked.length === 1);
    const stopping = server.stop(60_000);
    await Promise.all(ended);
    asked[0]?.();
    expect((await answering).body).toBe('late');
    await stopping;
  });

  it('cuts what is still busy after the grace', async () => {
    let asked = false;
    const server = await serve(open(), () => {
      asked = true;
    });
    const failed = expect(secureGet(server.port, '/')).rejects.toThrow(/hang up|ECONNRESET/);
    await until(() => asked);
    await server.stop(10);
    await failed;
  });

  it('reads the files no more', async () => {
    const tls = open();
    const close = jest.spyOn(tls, 'close');
    const server = await serve(tls);
    expect(close).not.toHaveBeenCalled();
    await server.stop(0);
    expect(close).toHaveBeenCalledTimes(1);
  });
});

describe('client certificates', () => {
  const REQUIRED = {
    status: 401,
    body: errorBody(
      'client_certificate_required',
      'Send a client certificate that an authority of this service has signed.',
    ),
  };
  const refused = (why: string) => ({
    status: 403,
    body: errorBody('client_certificate_refused', `The client certificate is refused: ${why}.`),
  });

  async function serveCertified() {
    writeFileSync(clientAuthorities, Buffer.concat(['authority', 'middle', 'sha1-authority'].map(pem)));
    const tls = open({ asksClients: true });
    const recorded = recordedLog();
    const shell = { log: recorded.log, newId: () => 'id', now: () => 0 };
    const server = await serve(tls, certified(shell));
    return { port: server.port, requests: recorded.lines };
  }

  it.each<[what: string, client: object, answer: object]>([
    ['none', {}, REQUIRED],
    ['one of the authority', shows('client'), { status: 200, body: 'hello' }],
    [
      'one of another authority',
      shows('other-client'),
      refused('none of the authorities of this service has signed it'),
    ],
    ['an expired one', shows('expired-client'), refused('it has expired, or its authority')],
    [
      'one of an authority whose own is missing',
      shows('middle-client'),
      refused(
        'the service has the authority that signed it, but not the one above; its file needs all of them, up to the root',
      ),
    ],
    ["a server's", shows('server'), refused('it is not one for clients (extended key usage clientAuth)')],
    [
      'one with a weak signature',
      { ...shows('sha1'), ciphers: 'DEFAULT:@SECLEVEL=0' },
      refused('OpenSSL refuses it, as one with a weak key or signature (RSA under 2048 bits, SHA-1)'),
    ],
  ])('a client that shows %s', async (_what, client, expected) => {
    const { port } = await serveCertified();
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { ...client, minVersion: version, maxVersion: version };
      const first = await secureGet(port, '/api/x', options);
      expect(first).toMatchObject(expected);
      // Resuming a session must not bypass a refusal.
      const resumed = await secureGet(port, '/api/x', { ...options, session: first.session });
      expect(resumed).toMatchObject(expected);
    }
  });

  it('are not outlived by a session when another authority takes over', async () => {
    const { port } = await serveCertified();
    const { session, status } = await secureGet(port, '/', shows('client'));
    expect([status, session]).toEqual([200, expect.any(Buffer)]);
    place('other-authority', clientAuthorities);
    await until(() => lines.length === 2);
    const resumed = await secureGet(port, '/', { ...shows('client'), session });
    expect(resumed.status).toBe(403);
    expect(await secureGet(port, '/', shows('other-client'))).toMatchObject({ status: 200 });
  });

  it('that are refused are answered and logged like any error, and the connection ends', async () => {
    const { port, requests } = await serveCertified();
    const answer = await secureGet(port, '/api/x?y', shows('other-client'));
    expect(answer.headers).toMatchObject({
      connection: 'close',
      'x-request-id': 'id',
      'x-content-type-options': 'nosniff',
    });
    await until(() => requests.length > 0);
    const fields = { requestId: 'id', method: 'GET', route: 'unmatched', status: 403, ms: 0 };
    expect(requests).toEqual([['info', 'request', fields]]);
  });

  it('are missing on every connection without TLS', async () => {
    const shell = { log: recordedLog().log, newId: () => 'id', now: () => 0 };
    const server = await listen(certified(shell), '127.0.0.1', 0);
    afterTest(() => server.stop(0));
    expect((await fetch(server.url)).status).toBe(401);
  });
});
