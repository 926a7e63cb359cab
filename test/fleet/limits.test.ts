import { execFile } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fs from 'fs-extra';
import { startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { pathOf, startFleet } from '../support/start-fleet';
import { until } from '../support/until';

const run = promisify(execFile);
const MEBIBYTE = 1024 * 1024;

test('an engine whose quota is used up refuses changes as 507 fleet_full, reads go on, and after a compaction all goes on', async () => {
  const etcd = await startEtcdCluster({ servers: 3, flags: [`--quota-backend-bytes=${8 * MEBIBYTE}`] });
  const fleet = await startFleet({ urls: etcd.urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  expect((await one.ask('POST', pathOf('news'), CENC_ONLY)).status).toBe(200);
  await fleet.untilFile('news', CENC_ONLY_FILE);
  const key = Buffer.from('elsewhere').toString('base64');
  const value = Buffer.alloc(MEBIBYTE).toString('base64');
  // The same key again and again: it is the history that fills the quota.
  await until(() =>
    etcd.post(0, '/v3/kv/put', { key, value }).then(
      () => false,
      (error) => String(error).includes('exceeded'),
    ),
  );
  const refused = await one.ask('POST', pathOf('news'), PLAIN);
  expect([refused.status, await refused.json()]).toMatchObject([507, { errors: [{ code: 'fleet_full' }] }]);
  const deletion = await two.ask('DELETE', pathOf('news'));
  expect([deletion.status, await deletion.text()]).toEqual([507, expect.stringContaining('fleet_full')]);
  for (const each of fleet.packagers) {
    expect(await (await each.ask('GET', pathOf('news'))).text()).toBe(CENC_ONLY_FILE);
    expect(await each.file('news')).toBe(CENC_ONLY_FILE);
    // A server raises the alarm when its own database is full, and none takes changes then.
    await until(async () => (await each.status()).engine.some(({ alarms }) => alarms?.join() === 'NOSPACE'));
  }
  const { revision = 0 } = (await etcd.status(0)) ?? {};
  await etcd.control('compact', String(revision));
  await etcd.control('defrag');
  await etcd.control('alarm', 'disarm');
  expect((await two.ask('POST', pathOf('news'), PLAIN)).status).toBe(200);
  await fleet.untilFile('news', PLAIN_FILE);
  await fleet.level();
});

const mount = async (folder: string) =>
  run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).then(
    () => true,
    () => false,
  );

test('a follower whose disk is full reports it, refuses no request, and has the file once there is room', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'packager-drm-full-'));
  if (!(await mount(folder))) {
    process.stdout.write('a full disk was not tried: only root can mount one\n');
    return;
  }
  try {
    const { urls } = await startEtcdCluster({ servers: 1 });
    const fleet = await startFleet({ urls, packagers: 2, own: [{}, { folder }] });
    await fleet.level();
    const [one, full] = [fleet.packager(0), fleet.packager(1)];
    expect((await one.ask('POST', pathOf('news'), CENC_ONLY)).status).toBe(200);
    await fleet.untilFile('news', CENC_ONLY_FILE);
    const ballast = join(folder, 'ballast');
    await writeFile(ballast, Buffer.alloc(2 * MEBIBYTE)).catch(() => undefined);
    expect((await one.ask('POST', pathOf('news'), PLAIN)).status).toBe(200);
    await until(async () => (await full.figure('fleet_failed')) === 1);
    expect(await full.file('news')).toBe(CENC_ONLY_FILE);
    const waited = await one.ask('POST', `${pathOf('sport')}?wait=1`, CENC_ONLY);
    expect([waited.status, waited.headers.get('warning')]).toEqual([
      202,
      expect.stringContaining('packager-2'),
    ]);
    const beside = await full.ask('POST', pathOf('own'), CENC_ONLY);
    expect(beside.status).toBe(202);
    await fleet.untilFile('own', CENC_ONLY_FILE, [one]);
    await fs.remove(ballast);
    await fleet.untilFile('news', PLAIN_FILE);
    for (const stream of ['sport', 'own']) await fleet.untilFile(stream, CENC_ONLY_FILE);
    await until(async () => (await full.figure('fleet_failed')) === 0);
    for (const each of fleet.packagers) await each.stop();
  } finally {
    await run('umount', ['-l', folder]);
    await fs.remove(folder);
  }
});
