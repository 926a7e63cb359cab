import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:net';
import { join } from 'node:path';
import { createServer, type TlsOptions } from 'node:tls';
import { ConfigError } from '../../../../src/http/config';
import { groupCalls } from '../../../../src/sidecar/fleet/engine/grouped';
import { openEngineAccess } from '../../../../src/sidecar/fleet/join';
import { afterTest, folderOfEachTest } from '../../../support/after-test';
import { openEngine, startGateway, startSilent } from '../../../support/etcd-gateway';
import { FakeCluster } from '../../../support/fake-engine';
import { listening } from '../../../support/listening';
import { type LogLine, recordedLog } from '../../../support/recorded-log';
import { pem, place, shows } from '../../../support/tls';
import { until } from '../../../support/until';

describe('TLS', () => {
  const ca = pem('authority');
  const BODY = '{"header":{"cluster_id":"5"}}';

  /** A server of etcd behind TLS. */
  async function startSecure(options: TlsOptions): Promise<string> {
    const server = createServer(options, (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`),
      );
    });
    server.on('tlsClientError', () => undefined);
    return `https://127.0.0.1:${await listening(server)}`;
  }

  test('presents the certificate in force at each new connection', async () => {
    const url = await startSecure({ ...shows('server'), ca, requestCert: true, rejectUnauthorized: true });
    let presented: object = { ca };
    const engine = openEngine([url], { timeoutMs: 1000, tls: () => presented });
    await expect(engine.read(['a'])).rejects.toMatchObject({
      kind: expect.stringMatching(/^(?:denied|unavailable)$/),
    });
    expect(await engine.servers()).toEqual([{ url, fault: expect.any(String) }]);
    presented = { ca, ...shows('client') };
    expect((await engine.read(['a'])).values).toEqual([undefined]);
  });

  test('an alert of TLS 1.2 is a fault of the certificates, not of the protocol', async () => {
    const alerting = createPlainServer((socket) => socket.end(Buffer.from('15030300020228', 'hex')));
    const url = `https://127.0.0.1:${await listening(alerting)}`;
    expect(await openEngine([url], { timeoutMs: 1000 }).servers()).toEqual([
      {
        url,
        fault: expect.stringMatching(/check the certificates \(ERR_SSL_\w+_ALERT_HANDSHAKE_FAILURE\)$/),
      },
    ]);
  });

  test.each<[what: string, name: string, authority: string, why: string]>([
    [
      ...(['is of another authority', 'server', 'other-authority'] as const),
      'its certificate is not trusted; name the authority that signed it with PACKAGERDRMAPI_FLEET_TLSCA',
    ],
    [
      ...(['is for clients', 'client', 'authority'] as const),
      'its certificate is not one for servers (extended key usage serverAuth)',
    ],
  ])('a certificate that %s is named as the fault', async (_what, name, authority, why) => {
    const [url, trusted] = [await startSecure(shows(name)), { ca: pem(authority) }];
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
});

// Node doubles the time limit of a socket while something waits to be written.
test('nothing is given to write before TLS is there', async () => {
  const given: unknown[] = [];
  const hear = (message: unknown) => void given.push(message);
  subscribe('http.client.request.start', hear);
  afterTest(() => unsubscribe('http.client.request.start', hear));
  const silent = (await startSilent()).replace('http:', 'https:');
  const asked = openEngine([silent], { timeoutMs: 200 }).read(['a']);
  await expect(asked).rejects.toMatchObject({ kind: 'unavailable' });
  expect(given).toEqual([]);
});

describe('access to an engine', () => {
  const folder = folderOfEachTest();
  const authorities = join(folder, 'tls');
  const certificate = join(folder, 'tls.crt');
  const key = join(folder, 'tls.crt.key');
  const passwordFile = join(folder, 'password');
  let lines: LogLine[];

  const write = (path: string, text: string, mode = 0o600) => {
    writeFileSync(path, text);
    chmodSync(path, mode);
  };

  beforeEach(() => {
    place('authority', authorities);
    place('client', certificate);
    place('client-key', key);
    chmodSync(key, 0o600);
    write(passwordFile, 'pass word\nnot this\n');
  });

  type Access = Parameters<typeof openEngineAccess>[0];

  const trusted = (name: string) => ({ ca: pem(name), allowPartialTrustChain: true });
  const withUser = (): Access => ({ user: { name: 'site-a', passwordFile }, tls: {} });
  const withTls = (): Access => ({ tls: { authorities, client: { certificate, key } } });

  function open(access: Access, time = Date.UTC(2100, 0)) {
    const recorded = recordedLog();
    lines = recorded.lines;
    const opened = openEngineAccess(access, {
      log: recorded.log,
      clock: () => new Date(time),
      intervalMs: 10,
    });
    afterTest(opened.close);
    return opened;
  }

  const KEPT = 'files for the engine of the fleet cannot be used; the previous ones stay in use';
  const PASSWORD_READ = (): LogLine => ['info', "password of the engine's user read", { file: passwordFile }];
  const validUntil = '2126-01-01T00:00:00.000Z';
  const AUTHORITY_READ = (name = 'authority'): LogLine => [
    'info',
    "certificate of the engine's authority read",
    { file: authorities, subject: `CN=${name} of the tests`, validUntil },
  ];
  const CLIENT_READ = (name = 'client', end = validUntil): LogLine => [
    'info',
    'client certificate for the engine read',
    { file: certificate, subject: `CN=${name} of the tests`, validUntil: end },
  ];

  test('is nothing where the engine is open to everybody', () => {
    const access = open({ tls: {} });
    expect([access.tls(), access.password(), lines]).toEqual([{}, undefined, []]);
  });

  test('is the first line of the password file, and its next one when that changes', async () => {
    const access = open(withUser());
    expect(access.password()).toBe('pass word');
    write(passwordFile, '\ufeffnext\r\n');
    await until(() => access.password() === 'next');
    expect(lines).toEqual([PASSWORD_READ(), PASSWORD_READ()]);
    expect(JSON.stringify(lines)).not.toMatch(/pass word|next|not this/);
  });

  test('is what the PEM files hold, all three of one moment, and the same object until then', async () => {
    const access = open(withTls());
    const first = access.tls();
    expect(first).toEqual({ ...trusted('authority'), cert: pem('client'), key: pem('client-key') });
    expect(access.tls()).toBe(first);
    place('other-client', certificate);
    place('other-client-key', key);
    place('other-authority', authorities);
    await until(() => access.tls().cert?.equals(pem('other-client')) === true);
    await until(() => access.tls().ca?.equals(pem('other-authority')) === true);
    expect(access.tls()).toEqual({
      ...trusted('other-authority'),
      cert: pem('other-client'),
      key: pem('other-client-key'),
    });
    const read = lines.filter(([level]) => level === 'info');
    expect(read.slice(0, 2)).toEqual([AUTHORITY_READ(), CLIENT_READ()]);
    expect(read.slice(-2)).toEqual([AUTHORITY_READ('other-authority'), CLIENT_READ('other-client')]);
    expect(lines.filter(([level]) => level === 'error')).toEqual([]);
  });

  test('is an authority alone, or a client certificate alone', () => {
    expect(open({ tls: { authorities } }).tls()).toEqual(trusted('authority'));
    expect(open({ tls: { client: { certificate, key } } }).tls()).toEqual({
      cert: pem('client'),
      key: pem('client-key'),
    });
  });

  const P = 'PACKAGERDRMAPI_FLEET_';

  test.each<[fault: string, access: () => Access, variable: string, spoil: () => void]>([
    ['has no password in its first line', withUser, 'PASSWORD_FILE', () => write(passwordFile, '\nsecond\n')],
    [
      'the password must have at most 1000 characters',
      withUser,
      'PASSWORD_FILE',
      () => write(passwordFile, 'x'.repeat(1001)),
    ],
    [
      'holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)',
      withTls,
      'TLSCA',
      () => write(authorities, 'hello'),
    ],
    ['there is no such file', withTls, 'TLSCERT', () => rmSync(certificate)],
    [
      'is not the key of the certificate in CERTIFICATE',
      withTls,
      'TLSKEY',
      () => place('other-client-key', key),
    ],
    [
      'OpenSSL refuses it (ERR_SSL_EE_KEY_TOO_SMALL)',
      withTls,
      'TLSCERT',
      () => {
        place('weak', certificate);
        place('weak-key', key);
      },
    ],
  ])('a fault refuses the start, and what is in use stays when it comes later: %s', async (...row) => {
    const [said, how, variable, spoil] = row;
    const files: Record<string, string> = {
      ...{ PASSWORD_FILE: passwordFile, TLSCA: authorities, TLSCERT: certificate, TLSKEY: key },
    };
    const fault = `${P}${variable}: ${files[variable]}: ${said.replace('in CERTIFICATE', `in ${certificate}`)}`;
    const access = open(how());
    const before = [access.tls(), access.password()];
    const known = lines.length;
    spoil();
    await until(() => lines.length > known);
    expect(lines.slice(known)).toEqual([['error', KEPT, { faults: [fault] }]]);
    expect([access.tls(), access.password()]).toEqual(before);
    expect(() => open(how())).toThrow(new ConfigError([fault]));
  });

  test('names the variable of a file in whose place there is a folder', () => {
    rmSync(passwordFile);
    const folder = { user: { name: 'x', passwordFile: join(passwordFile, '..') }, tls: {} };
    expect(() => open(folder)).toThrow(/PACKAGERDRMAPI_FLEET_PASSWORD_FILE: .* is a folder\./);
  });

  const OPEN = 'every user of this machine can read this secret';

  test('warns of what every user of the machine can read, of a certificate that has ended, and of a name that etcd refuses', () => {
    place('expired-client', certificate);
    place('expired-client-key', key);
    chmodSync(key, 0o644);
    chmodSync(passwordFile, 0o644);
    open({ ...withUser(), tls: { client: { certificate, key } } });
    expect(lines).toEqual([
      CLIENT_READ('expired-client', '2021-01-01T00:00:00.000Z'),
      ['warn', 'a certificate for the engine has expired', { file: certificate }],
      [
        'warn',
        'etcd refuses requests with a client certificate that has a common name (CN) while its users are on; make one without',
        { file: certificate, subject: 'CN=expired-client of the tests' },
      ],
      ['warn', OPEN, { variable: 'PACKAGERDRMAPI_FLEET_TLSKEY', file: key }],
      PASSWORD_READ(),
      ['warn', OPEN, { variable: 'PACKAGERDRMAPI_FLEET_PASSWORD_FILE', file: passwordFile }],
    ]);
  });
});

test('two changes of one key at a time are decided one after the other, and hold up no others', async () => {
  const cluster = new FakeCluster();
  const guard = { key: 'fleet', revision: cluster.set('fleet', 'it') };
  const grouped = groupCalls(cluster.connect());
  const change = (key: string, text: string) =>
    grouped.change({ key, expected: 0, value: Buffer.from(text) }, guard);
  const answers = await Promise.all([change('a', '1'), change('a', '2'), change('b', '3')]);
  expect(answers.map((answer) => answer?.made)).toEqual([true, false, true]);
  expect(['a', 'b'].map((key) => cluster.get(key)?.value.toString())).toEqual(['1', '3']);
});

test('reads of one key at a time are one call', async () => {
  const engine = new FakeCluster().connect();
  const read = jest.spyOn(engine, 'read');
  const grouped = groupCalls(engine);
  await Promise.all(['a', 'a', 'b', 'a'].map((key) => grouped.read(key)));
  expect(read.mock.calls).toEqual([[['a', 'a', 'b', 'a']]]);
});
