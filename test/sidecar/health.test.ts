import { chmodSync } from 'node:fs';
import { chmod, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSidecarConfig } from '../../src/sidecar/config';
import { refuseCacheFolder, warningOfShortKey, warningsOfFileSystem } from '../../src/sidecar/start-up';
import { temporaryFolder } from '../support/after-test';
import { faultsOf } from '../support/faults-of';
import * as faulty from '../support/faulty-fs';
import { API_KEY, errorBody, startSidecar, startUnswept } from '../support/start-sidecar';

const { chmodSync: realChmod } = jest.requireActual<typeof import('node:fs')>('node:fs');

jest.mock('node:fs', () => {
  const { faultyFs } = jest.requireActual('../support/faulty-fs');
  return { ...faultyFs, chmodSync: jest.fn(faultyFs.chmodSync) };
});

const newFiles = () =>
  faulty
    .recorded()
    .filter(({ call, moment, more }) => call === 'open' && moment === 'start' && more[0] === 'wx');

test.each([
  ['/healthz', { status: 'ok' }],
  ['/readyz', { status: 'ready' }],
])('answers 200 to %s without a key', async (path, expected) => {
  const { unauthenticated, files } = await startSidecar();
  const { status, body } = await unauthenticated.get(path);
  expect({ status, body }).toEqual({ status: 200, body: expected });
  await unauthenticated.post(path).expect(405).expect('allow', 'GET, HEAD');
  expect(await files()).toEqual({});
});

test('is not ready before the clean-up at the start is done, and then at once', async () => {
  const { unauthenticated, sweep } = await startUnswept();
  await unauthenticated.get('/readyz').expect(503, errorBody('starting', 'Left-over files are being swept.'));
  await unauthenticated.get('/healthz').expect(200);
  await sweep();
  await unauthenticated.get('/readyz').expect(200);
});

test('identifies the folder, by device and inode, to holders of an API key alone', async () => {
  const { api, unauthenticated, folder } = await startSidecar();
  const { dev, ino } = await stat(folder, { bigint: true });
  const { status, body } = await api.get('/readyz');
  expect({ status, body }).toEqual({
    status: 200,
    body: { status: 'ready', folder: { device: String(dev), inode: String(ino) } },
  });
  for (const key of ['', 'wrong-key'])
    expect((await unauthenticated.get('/readyz').set('x-api-key', key)).body).toEqual({ status: 'ready' });
  // Within the second of the last probe.
  await rm(folder, { recursive: true });
  const { body: gone } = await api.get('/readyz').expect(503);
  expect(gone.errors[0].code).toBe('key_files_not_readable');
});

test('shows the warnings of the start to holders of an API key, and to others none', async () => {
  const warnings = [{ code: 'key_folder_made', description: 'The folder was made.' }];
  const { api, unauthenticated } = await startSidecar({}, undefined, { warnings });
  expect((await api.get('/readyz')).body.warnings).toEqual(warnings);
  expect((await unauthenticated.get('/readyz')).body).toEqual({ status: 'ready' });
});

test('probes the folder by a file that is written and synced, for a /readyz and no /healthz', async () => {
  const { unauthenticated } = await startSidecar();
  faulty.reset();
  await unauthenticated.get('/healthz');
  expect(faulty.recorded()).toEqual([]);
  await unauthenticated.get('/readyz');
  expect(newFiles()).toHaveLength(1);
});

test.each([
  ['that can be written', 200],
  ['that cannot', 503],
])('probes a folder %s once a second at most, however often it is asked', async (_which, status) => {
  const { unauthenticated, advance } = await startSidecar();
  faulty.reset();
  if (status === 503) for (let nth = 1; nth <= 2; nth += 1) faulty.fail('fdatasync', nth, 'EIO');
  const ask = async () => (await unauthenticated.get('/readyz')).status;
  const asked = [await ask(), await ask()];
  advance(999);
  asked.push(await ask());
  expect([asked, newFiles().length]).toEqual([[status, status, status], 1]);
  advance(1);
  expect([await ask(), await ask(), newFiles().length]).toEqual([status, status, 2]);
});

test('logs probes at debug, and those that fail where they are seen', async () => {
  const sidecar = await startSidecar();
  await sidecar.unauthenticated.get('/readyz');
  sidecar.advance(1000);
  faulty.reset();
  faulty.fail('fdatasync', 1, 'EIO');
  await sidecar.unauthenticated.get('/readyz');
  const levels = (await sidecar.logEntries()).map(({ level, message, status }) => [level, message, status]);
  expect(levels).toEqual([
    ['debug', 'request', 200],
    ['warn', 'not available', 503],
    ['info', 'request', 503],
  ]);
});

describe('warns of a file system', () => {
  const warningsIn = (folder: string) => warningsOfFileSystem(folder, 0o640, () => 'abc');
  const codesIn = (folder: string) => warningsIn(folder).map(({ code }) => code);

  it('that takes capitals and small letters for the same', async () => {
    const folder = await temporaryFolder();
    expect(codesIn(folder)).toEqual([]);
    await writeFile(join(folder, '.PACKAGERDRMAPI-ABC.TMP'), '');
    expect(codesIn(folder)).toEqual(['case_not_kept']);
    expect(await readdir(folder)).toEqual(['.PACKAGERDRMAPI-ABC.TMP']);
  });

  it('that keeps no modes, with one for key files that the configuration takes', async () => {
    const folder = await temporaryFolder();
    jest.mocked(chmodSync).mockImplementationOnce((path) => realChmod(path, 0o755));
    const [warning] = warningsIn(folder);
    expect(warning?.code).toBe('mode_not_kept');
    const [, mode] = /0755 in place of 0640.* set PACKAGERDRMAPI_KEYFILEMODE=(\d+)\.$/.exec(
      warning?.description ?? '',
    ) as string[];
    const env = { PACKAGERDRMAPI_APIKEY: API_KEY, PACKAGERDRMAPI_KEYFILEMODE: mode };
    expect(readSidecarConfig(env, () => '').keyFileMode).toBe(0o644);
    jest.mocked(chmodSync).mockImplementationOnce((path) => realChmod(path, 0o750));
    expect(codesIn(folder)).toEqual([]);
  });
});

describe('refuses to start with a folder for the provider cache', () => {
  const faultOf = (folder: string, keyFilesPath = '/srv/keys') =>
    faultsOf(() => refuseCacheFolder(folder, keyFilesPath));
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];

  it('that is missing, or a file', async () => {
    const folder = await temporaryFolder();
    const [absent, file] = [join(folder, 'absent'), join(folder, 'file')];
    await writeFile(file, '');
    expect([...faultOf(absent), ...faultOf(file), ...faultOf(`${file}/below`)]).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: the folder ${absent} is missing. Mount it, or make it as root: chown ${uid}:${gid} and chmod 0700.`,
      `PACKAGERDRMAPI_PROVIDERCACHE: ${file} is not a folder. Give the path of one.`,
      `PACKAGERDRMAPI_PROVIDERCACHE: ${file}/below is not a folder. Give the path of one.`,
    ]);
  });

  it('among the key files', async () => {
    const folder = await temporaryFolder();
    const why = 'is in the key-file folder, which the packager reads. Give it a folder of its own.';
    expect(faultOf(folder, folder)).toEqual([`PACKAGERDRMAPI_PROVIDERCACHE: ${folder} ${why}`]);
    expect(faultOf(join(folder, 'cache'), folder)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: ${join(folder, 'cache')} ${why}`,
    ]);
    expect(faultOf(folder, join(folder, 'keys'))).toEqual([]);
  });

  // To root every folder is open.
  (uid === 0 ? it.skip : it)('that it may not write to', async () => {
    const folder = await temporaryFolder();
    await chmod(folder, 0o500);
    expect(faultOf(folder)).toEqual([
      `PACKAGERDRMAPI_PROVIDERCACHE: this service runs as user ${uid}, group ${gid}, and may not write to the folder ${folder} (EACCES). As root: chown ${uid}:${gid} and chmod 0700.`,
    ]);
  });
});

test.each([
  ['0.0.0.0', 'fifteen-letters', 'short_api_key'],
  ['0.0.0.0', 'sixteen-letters.', undefined],
  ['127.0.0.1', 'short', undefined],
  ['LocalHost', 'short', undefined],
  ['::1', 'short', undefined],
  ['[::1]', 'short', undefined],
  ['127.example.com', 'short', 'short_api_key'],
  ['0.0.0.0', undefined, undefined],
])('warns on %s of the API key %s: %s', (host, apiKey, code) => {
  expect(warningOfShortKey({ apiKey, host })?.code).toBe(code);
});
