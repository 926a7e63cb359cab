import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../../../src/http/server';
import { createEmulatorApp } from '../../../src/platform/emulator/app';
import { openPlatformTls, ownCertificates } from '../../../src/platform/emulator/own-certificates';
import { temporaryFolder } from '../../support/after-test';
import { recordedLog } from '../../support/recorded-log';
import { startEmulator } from '../../support/start-emulator';
import { secureGet } from '../../support/tls';

const DAY_MS = 24 * 60 * 60 * 1000;
const NAMES = ['localhost', '127.0.0.1'];

test('makes a server certificate for every name, that an authority has signed and that belongs to the key', async () => {
  const folder = await temporaryFolder();
  const names = ['localhost', 'a.test', '127.0.0.1', '::1', 'fd00::12:3', '2001:db8:0:1:2:3:4:5'];
  await ownCertificates({ folder, names }, new Date('2049-06-01T00:00:00Z'));
  const read = (name: string) => readFileSync(join(folder, name));
  const [authority, server] = [new X509Certificate(read('ca.pem')), new X509Certificate(read('server.pem'))];
  expect([authority.ca, server.ca]).toEqual([true, false]);
  expect([authority.verify(authority.publicKey), server.verify(authority.publicKey)]).toEqual([true, true]);
  expect(server.checkIssued(authority)).toBe(true);
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

test('writes the authority, the certificate and the key, the key for its owner alone', async () => {
  const folder = join(await temporaryFolder(), 'tls');
  const { authority, files, sha256, areNew } = await ownCertificates({ folder, names: NAMES }, new Date());
  expect(readdirSync(folder).sort()).toEqual(['ca.pem', 'server-key.pem', 'server.pem']);
  expect([authority, files]).toEqual([
    join(folder, 'ca.pem'),
    {
      certificate: join(folder, 'server.pem'),
      key: join(folder, 'server-key.pem'),
      clientAuthorities: undefined,
    },
  ]);
  expect(statSync(files.key).mode & 0o777).toBe(0o600);
  expect(sha256).toMatch(/^(?:[0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  expect(areNew).toBe(true);
});

test('keeps them, so that clients trust them once', async () => {
  const own = { folder: await temporaryFolder(), names: NAMES };
  const now = new Date();
  const { authority, sha256 } = await ownCertificates(own, now);
  const pem = readFileSync(authority, 'utf8');
  expect(await ownCertificates(own, new Date(now.getTime() + 300 * DAY_MS))).toMatchObject({
    sha256,
    areNew: false,
  });
  expect(readFileSync(authority, 'utf8')).toBe(pem);
});

test.each([
  ['end soon', NAMES, 380, () => undefined],
  ['lack a name', [...NAMES, 'api.test'], 0, () => undefined],
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

test('names the variable when the folder can’t be written', async () => {
  const parent = await temporaryFolder();
  writeFileSync(join(parent, 'file'), '');
  await expect(
    ownCertificates({ folder: join(parent, 'file', 'tls'), names: NAMES }, new Date()),
  ).rejects.toEqual(
    expect.objectContaining({
      name: 'ConfigError',
      faults: [
        'EMULATOR_TLSFOLDER: the certificates can’t be written there (ENOTDIR); name a folder that this user may write',
      ],
    }),
  );
});

test('says in the log what clients must trust, with its fingerprint, and nothing of the key', async () => {
  const folder = await temporaryFolder();
  const { log, lines } = recordedLog();
  (await openPlatformTls({ folder, names: NAMES }, { log, clock: () => new Date() })).close();
  (await openPlatformTls({ folder, names: NAMES }, { log, clock: () => new Date() })).close();
  const authority = join(folder, 'ca.pem');
  const told = {
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
    ['info', 'made a certificate; clients must trust its authority', told],
    ['info', 'TLS certificate read', expect.anything()],
    ['info', 'kept a certificate; clients must trust its authority', told],
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
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    const ca = readFileSync(join(folder, 'ca.pem'));
    const get = (path: string, options = {}) => secureGet(server.port, path, { ca, ...options });
    expect(await get('/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } });
    expect(await get('/healthz', { host: 'localhost' })).toMatchObject({
      status: 200,
      server: 'CN=localhost',
    });
    const eventId = await connect(await createChannel());
    const file = `https://127.0.0.1:${server.port}/live/events/${eventId}.m3u8`;
    expect(await get(`/v2/media/${eventId}`)).toMatchObject({
      body: { playlist: [{ sources: [{ file }] }] },
    });
    await expect(secureGet(server.port, '/healthz')).rejects.toMatchObject({
      code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    });
  } finally {
    await server.stop(0);
  }
});
