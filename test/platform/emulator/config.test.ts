import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../../src/http/server';
import { createEmulatorApp } from '../../../src/platform/emulator/app';
import { readEmulatorConfig } from '../../../src/platform/emulator/config';
import { openPlatformTls, ownCertificates } from '../../../src/platform/emulator/own-certificates';
import { temporaryFolder } from '../../support/after-test';
import { recordedLog } from '../../support/recorded-log';
import { startEmulator } from '../../support/start-emulator';
import { tableRows } from '../../support/table-rows';
import { secureGet } from '../../support/tls';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8080,
  controlHost: '127.0.0.1',
  controlPort: 8081,
  rtmpPort: 1935,
  siteIds: ['demosite'],
  apiSecret: 'demo-api-secret-0123456789',
  v1Secret: 'demo-api-secret-0123456789',
  rateLimit: false,
  allowHttpWebhooks: false,
  uploadsFolder: tmpdir(),
  uploadsMaxBytes: 2048 * 1024 * 1024,
  client: { name: 'demo', apiKey: 'demo-client-api-key', sharedSecret: 'demo-shared-secret-0123456789' },
  logLevel: 'info',
  unknownVariables: [],
};

test('starts without any variable, and takes an empty one as absent', () => {
  expect(readEmulatorConfig({})).toEqual(DEFAULTS);
  expect(readEmulatorConfig({ EMULATOR_PORT: '', EMULATOR_CLIENT_SHARED_SECRET: '', PATH: '/bin' })).toEqual(
    DEFAULTS,
  );
});

const differs = (env: Readonly<Record<string, string>>, fields: object) =>
  expect(readEmulatorConfig(env)).toEqual({ ...DEFAULTS, ...fields });

/** Variables, and what of the configuration they make other than by default, one a line. */
const TAKEN = `
EMULATOR_HOST=0.0.0.0 → {"host":"0.0.0.0"}
EMULATOR_PORT=65535 → {"port":65535}
EMULATOR_CONTROL_HOST=::1 → {"controlHost":"::1"}
EMULATOR_CONTROL_PORT=0 → {"controlPort":0}
EMULATOR_RTMP_PORT=1936 → {"rtmpPort":1936}
EMULATOR_SITE_ID=site0001, site0002 → {"siteIds":["site0001","site0002"]}
EMULATOR_API_SECRET=0123456789abcdef → {"apiSecret":"0123456789abcdef","v1Secret":"0123456789abcdef"}
EMULATOR_V1_SECRET=fedcba9876543210 → {"v1Secret":"fedcba9876543210"}
EMULATOR_RATELIMIT=on → {"rateLimit":true}
EMULATOR_ALLOW_HTTP_WEBHOOKS=true → {"allowHttpWebhooks":true}
EMULATOR_CHANNEL_ID=Stadium1&EMULATOR_CHANNEL_STREAM_KEY=key_0-0123456789 → {"channel":{"id":"Stadium1","streamKey":"key_0-0123456789"}}
EMULATOR_UPLOADSFOLDER=/var/uploads → {"uploadsFolder":"/var/uploads"}
EMULATOR_UPLOADSMAXMB=5 → {"uploadsMaxBytes":5242880}
EMULATOR_SEED=-42 → {"seed":-42}
EMULATOR_LOGLEVEL=silent → {"logLevel":"silent"}
EMULATOR_TLSCERT=tls.crt&EMULATOR_TLSKEY=tls.key → {"tls":{"certificate":"tls.crt","key":"tls.key"}}
EMULATOR_TLS=off → {}
EMULATOR_PROT=1 → {"unknownVariables":["EMULATOR_PROT (did you mean EMULATOR_PORT?)"]}
`;

test.each(tableRows(TAKEN))('takes %s', (env, fields = '') =>
  differs(Object.fromEntries(new URLSearchParams(env)), JSON.parse(fields)),
);

test('takes the client with its API key and its shared secret', () => {
  const client = { name: 'acme.tv', apiKey: 'k', sharedSecret: '0123456789abcdef' };
  const env = { EMULATOR_CLIENT: client.name, EMULATOR_CLIENT_API_KEY: client.apiKey };
  differs({ ...env, EMULATOR_CLIENT_SHARED_SECRET: client.sharedSecret }, { client });
});

test('serves HTTPS with its own certificate, for its names and others', () => {
  const own = { EMULATOR_TLS: 'self-signed', EMULATOR_HOST: '0.0.0.0' };
  const names = ['localhost', 'emulator', '127.0.0.1', '::1'];
  differs(own, { host: '0.0.0.0', tls: { folder: './emulator-tls', names } });
  const others = { EMULATOR_TLSFOLDER: '/tls', EMULATOR_TLSNAMES: 'api.test, 192.0.2.1, localhost' };
  expect(readEmulatorConfig({ ...own, ...others, EMULATOR_HOST: 'box.internal' }).tls).toEqual({
    folder: '/tls',
    names: [...names, 'box.internal', 'api.test', '192.0.2.1'],
  });
});

test.each([
  [{}, 'rtmp://127.0.0.1:1935/live'],
  [{ EMULATOR_HOST: '0.0.0.0', EMULATOR_RTMP_PORT: '1936' }, 'rtmp://127.0.0.1:1936/live'],
  [{ EMULATOR_HOST: '::' }, 'rtmp://127.0.0.1:1935/live'],
  [{ EMULATOR_HOST: '192.0.2.1' }, 'rtmp://192.0.2.1:1935/live'],
  [{ EMULATOR_HOST: '::1' }, 'rtmp://[::1]:1935/live'],
  [{ EMULATOR_RTMP_PORT: 'off' }, undefined],
  [{ EMULATOR_PACKAGERRTMPURL: 'rtmp://emulator:1935/live/' }, 'rtmp://emulator:1935/live'],
  [
    { EMULATOR_RTMP_PORT: 'off', EMULATOR_PACKAGERRTMPURL: 'rtmps://relay.test/app' },
    'rtmps://relay.test/app',
  ],
])('gives the packager with %j the address of live streams', (env, rtmpUrl) => {
  const { packager } = readEmulatorConfig({ EMULATOR_PACKAGERURL: 'http://packager:8082/', ...env });
  expect(packager).toEqual({ url: 'http://packager:8082', apiKey: undefined, rtmpUrl });
});

/** Variables and what is wrong with them together, one a line. */
const FAULTS = `
EMULATOR_TLSCERT=tls.crt → EMULATOR_TLSCERT and EMULATOR_TLSKEY: HTTPS needs both
EMULATOR_TLS=self-signed&EMULATOR_TLSCERT=c&EMULATOR_TLSKEY=k → EMULATOR_TLS: self-signed makes a certificate; leave out EMULATOR_TLSCERT and EMULATOR_TLSKEY
EMULATOR_PACKAGERAPIKEY=key → EMULATOR_PACKAGERAPIKEY: is used only with EMULATOR_PACKAGERURL
EMULATOR_PACKAGERRTMPURL=rtmp://emulator:1935/live → EMULATOR_PACKAGERRTMPURL: is used only with EMULATOR_PACKAGERURL
EMULATOR_TLS=on → EMULATOR_TLS: must be off or self-signed
EMULATOR_TLSNAMES=a.test → EMULATOR_TLSNAMES: is used only with EMULATOR_TLS=self-signed
EMULATOR_TLS=self-signed&EMULATOR_TLSNAMES=https://a.test → EMULATOR_TLSNAMES: must be a host name or an address, or several with commas between them
EMULATOR_CHANNEL_ID=Stadium1 → EMULATOR_CHANNEL_ID and EMULATOR_CHANNEL_STREAM_KEY: a channel at the start needs both
EMULATOR_CHANNEL_ID=Stadium1&EMULATOR_CHANNEL_STREAM_KEY=a key with blanks → EMULATOR_CHANNEL_STREAM_KEY: must be 16 to 200 letters, digits, _ and -
EMULATOR_CHANNEL_ID=stadium&EMULATOR_CHANNEL_STREAM_KEY=stream-key_012345 → EMULATOR_CHANNEL_ID: must be 8 letters and digits
`;

test.each(tableRows(FAULTS))('refuses %s', (env, fault) => {
  expect(() => readEmulatorConfig(Object.fromEntries(new URLSearchParams(env)))).toThrow(
    expect.objectContaining({ name: 'ConfigError', faults: [fault] }),
  );
});

test.each(['off', '0'])('takes no encoders over RTMP with EMULATOR_RTMP_PORT=%s', (value) => {
  differs({ EMULATOR_RTMP_PORT: value }, { rtmpPort: undefined });
});

const PACKAGER_URL = 'must be an http:// or https:// address without a password or a query';
const RTMP_URL = 'must be an rtmp:// address such as rtmp://emulator:1935/live';

const SEED = 'must be a whole number such as 42; leave it out for other ids in each run';

test.each([
  ['EMULATOR_PACKAGERURL', 'packager:8082', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'http://user:password@packager', PACKAGER_URL],
  ['EMULATOR_PACKAGERURL', 'http://packager?x=1', PACKAGER_URL],
  ['EMULATOR_PACKAGERRTMPURL', 'http://emulator:1935/live', RTMP_URL],
  ['EMULATOR_PACKAGERRTMPURL', 'rtmp:///live', RTMP_URL],
  ['EMULATOR_PORT', '80a', 'must be a port number'],
  ['EMULATOR_RTMP_PORT', 'on', 'must be off or a port number'],
  ['EMULATOR_SITE_ID', 'site', 'must be 8 letters and digits, or several such ids with commas between them'],
  ['EMULATOR_API_SECRET', 'short', 'must have at least 16 characters'],
  ['EMULATOR_RATELIMIT', 'yes', 'must be on or off'],
  ['EMULATOR_ALLOW_HTTP_WEBHOOKS', '1', 'must be true or false'],
  ['EMULATOR_SEED', '4.5', SEED],
  ['EMULATOR_SEED', '99999999999999999', SEED],
  ['EMULATOR_UPLOADSMAXMB', '0', 'must be a whole number of megabytes, from 1 to 99999999'],
  ['EMULATOR_CLIENT', '../..', 'must be 1 to 200 letters, digits, _, - and ., and not . or ..'],
  [
    'EMULATOR_CLIENT_API_KEY',
    'two words',
    'must be printable ASCII without spaces, as it is sent in a header',
  ],
  ['EMULATOR_CLIENT_SHARED_SECRET', '0123456789abcde', 'must have at least 16 bytes'],
  ['EMULATOR_LOGLEVEL', 'loud', 'must be one of error, warn, info, debug, silent'],
])('refuses %s=%s, and does not repeat it', (name, value, fault) => {
  const env = { EMULATOR_PACKAGERURL: 'http://packager', [name]: value };
  expect(() => readEmulatorConfig(env)).toThrow(
    expect.objectContaining({ name: 'ConfigError', faults: [`${name}: ${fault}`] }),
  );
});

describe('certificates of its own', () => {
  const DAY_MS = 24 * 60 * 60 * 1000;
  const NAMES = ['localhost', '127.0.0.1'];

  test('makes a server certificate for every name, that an authority has signed and that belongs to the key', async () => {
    const folder = await temporaryFolder();
    const names = ['localhost', 'a.test', '127.0.0.1', '::1', 'fd00::12:3', '2001:db8:0:1:2:3:4:5'];
    await ownCertificates({ folder, names }, new Date('2049-06-01T00:00:00Z'));
    const read = (name: string) => readFileSync(join(folder, name));
    const authority = new X509Certificate(read('ca.pem'));
    const server = new X509Certificate(read('server.pem'));
    expect([authority.ca, server.ca, server.checkIssued(authority)]).toEqual([true, false, true]);
    expect([authority.verify(authority.publicKey), server.verify(authority.publicKey)]).toEqual([true, true]);
    expect(server.checkPrivateKey(createPrivateKey(read('server-key.pem')))).toBe(true);
    expect(server.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(server.subjectAltName).toBe(
      'DNS:localhost, DNS:a.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, ' +
        'IP Address:FD00:0:0:0:0:0:12:3, IP Address:2001:DB8:0:1:2:3:4:5',
    );
    // Strict clients want the identifiers of both keys (RFC 5280, 4.2.1.1 and 4.2.1.2).
    const [subjectKey, authorityKey] = [Buffer.from('0603551d0e', 'hex'), Buffer.from('0603551d23', 'hex')];
    expect([authority, server].map(({ raw }) => raw.includes(subjectKey))).toEqual([true, true]);
    expect(server.raw.includes(authorityKey)).toBe(true);
    for (const { validFrom, validTo } of [authority, server])
      expect([validFrom, validTo]).toEqual(['May 31 00:00:00 2049 GMT', 'Jul  2 00:00:00 2050 GMT']);
  });

  test('writes the authority, the certificate and the key, the key for its owner alone, and keeps them', async () => {
    const folder = join(await temporaryFolder(), 'tls');
    const [own, now] = [{ folder, names: NAMES }, new Date()];
    const { authority, files, sha256, areNew } = await ownCertificates(own, now);
    expect(readdirSync(folder).sort()).toEqual(['ca.pem', 'server-key.pem', 'server.pem']);
    const [certificate, key] = [join(folder, 'server.pem'), join(folder, 'server-key.pem')];
    expect([authority, files]).toEqual([
      join(folder, 'ca.pem'),
      { certificate, key, clientAuthorities: undefined },
    ]);
    expect(statSync(files.key).mode & 0o777).toBe(0o600);
    expect(sha256).toMatch(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/);
    expect(areNew).toBe(true);
    // They are kept, so that clients trust them once.
    const pem = readFileSync(authority, 'utf8');
    const later = await ownCertificates(own, new Date(now.getTime() + 300 * DAY_MS));
    expect([later.sha256, later.areNew]).toEqual([sha256, false]);
    expect(readFileSync(authority, 'utf8')).toBe(pem);
  });

  test.each([
    ['end soon', NAMES, 380, () => undefined],
    ['miss a name', [...NAMES, 'api.test'], 0, () => undefined],
    ['are broken', NAMES, 0, (folder: string) => writeFileSync(join(folder, 'server.pem'), 'nothing')],
    [
      'do not belong together',
      NAMES,
      0,
      async (folder: string) => {
        const other = await ownCertificates({ folder: join(folder, 'other'), names: NAMES }, new Date());
        writeFileSync(join(folder, 'ca.pem'), readFileSync(other.authority));
      },
    ],
  ])('makes new ones when those that are there %s', async (_why, names, days, change) => {
    const folder = await temporaryFolder();
    const now = new Date();
    const before = await ownCertificates({ folder, names: NAMES }, now);
    await change(folder);
    const after = await ownCertificates({ folder, names }, new Date(now.getTime() + days * DAY_MS));
    expect(after.areNew).toBe(true);
    expect(after.sha256).not.toBe(before.sha256);
  });

  test("names the variable when the folder can't be written", async () => {
    const parent = await temporaryFolder();
    writeFileSync(join(parent, 'file'), '');
    const fault =
      "EMULATOR_TLSFOLDER: the certificates can't be written there (ENOTDIR); name a folder that this user may write";
    await expect(
      ownCertificates({ folder: join(parent, 'file', 'tls'), names: NAMES }, new Date()),
    ).rejects.toEqual(expect.objectContaining({ name: 'ConfigError', faults: [fault] }));
  });

  test('says in the log what clients must trust, with its fingerprint, and nothing of the key', async () => {
    const folder = await temporaryFolder();
    const { log, lines } = recordedLog();
    (await openPlatformTls({ folder, names: NAMES }, { log, clock: () => new Date() })).close();
    (await openPlatformTls({ folder, names: NAMES }, { log, clock: () => new Date() })).close();
    const authority = join(folder, 'ca.pem');
    const certificate = {
      authority,
      sha256: new X509Certificate(readFileSync(authority)).fingerprint256,
      trust: [
        `NODE_EXTRA_CA_CERTS=${authority}`,
        `curl --cacert ${authority}`,
        `REQUESTS_CA_BUNDLE=${authority}`,
        `SSL_CERT_FILE=${authority}`,
      ],
    };
    expect(lines).toEqual([
      ['info', 'TLS certificate read', expect.anything()],
      ['info', 'made a certificate; clients must trust its authority', certificate],
      ['info', 'TLS certificate read', expect.anything()],
      ['info', 'kept a certificate; clients must trust its authority', certificate],
    ]);
    expect(JSON.stringify(lines)).not.toContain('PRIVATE KEY');
  });

  test('serves the platform to a client that trusts the authority, with addresses that say https', async () => {
    const { context, createChannel, connect } = await startEmulator();
    const folder = await temporaryFolder();
    const { log } = recordedLog();
    const tls = await openPlatformTls({ folder, names: NAMES }, { log, clock: () => new Date() });
    const server = await listen(createEmulatorApp(context), '127.0.0.1', 0, { tls });
    try {
      const ca = readFileSync(join(folder, 'ca.pem'));
      const eventId = await connect(await createChannel());
      const file = `${server.url}/live/events/${eventId}.m3u8`;
      expect(file).toMatch(/^https:/);
      expect(await secureGet(server.port, `/v2/media/${eventId}`, { ca })).toMatchObject({
        status: 200,
        body: { playlist: [{ sources: [{ file }] }] },
      });
      const code = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
      await expect(secureGet(server.port, '/healthz')).rejects.toMatchObject({ code });
    } finally {
      await server.stop(0);
    }
  });
});
