import { writeFile } from 'node:fs/promises';
import { type EtcdCluster, startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import type { LogLine } from '../support/recorded-log';
import { type FleetPackager, pathOf, post, remove, startFleet } from '../support/start-fleet';
import { until } from '../support/until';

const MEBIBYTE = 1024 * 1024;

const keyOf = (stream: string) => Buffer.from(`packagerdrmapi/keys/${stream}`).toString('base64');

let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startEtcdCluster({ kept: true, servers: 1 });
});

beforeEach(() => etcd.wipe());

/** The sealed entry in etcd, in base64. */
async function sealedOf(stream: string): Promise<string> {
  const { kvs } = (await etcd.post(0, '/v3/kv/range', { key: keyOf(stream) })) as {
    kvs: { value: string }[];
  };
  return kvs[0]?.value ?? '';
}

async function imported(at: FleetPackager, query = ''): Promise<unknown> {
  const answer = await at.ask('POST', `/api/fleet/import${query}`);
  expect(answer.status).toBe(200);
  return answer.json();
}

const files = (at: FleetPackager, streams: readonly string[]) => Promise.all(streams.map(at.file));

/** Resolves when a packager reports that no packager has missing files, and the engine has no missing entries. */
const untilClean = (at: FleetPackager) =>
  until(async () => {
    const { state, missing, packagers } = await at.status();
    const isClean = ({ state: its, behind, lacking }: (typeof packagers)[number]) =>
      its === 'level' && behind + lacking === 0;
    return state === 'level' && missing === 0 && packagers.every(isClean);
  });

test('a secret is rotated at three sidecars, and resealed, without a file changing', async () => {
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  for (const stream of ['news', 'sport']) await post(one, stream, CENC_ONLY);
  await post(one, 'gone', CENC_ONLY);
  await remove(two, 'gone');
  await fleet.untilFile('gone', undefined);
  const [old, next] = ['fleet-secret-of-the-tests-'.repeat(2), 'the-next-secret-of-the-tests-'.repeat(2)];
  /** Replaces the secrets; resolves when all have read them. */
  const write = async (...secrets: readonly string[]) => {
    const isRead = ([, message]: LogLine) => message.startsWith('fleet secret');
    const reads = fleet.packagers.map((each) => each.log().filter(isRead).length);
    await writeFile(fleet.secretFile, `${secrets.join('\n')}\n`);
    const hasRead = (each: FleetPackager, index: number) =>
      each.log().filter(isRead).length > (reads[index] ?? 0);
    await until(() => fleet.packagers.every(hasRead));
  };
  const before = await sealedOf('news');
  await write(old, next);
  await write(next, old);
  await fleet.level();
  expect(await (await three.ask('POST', '/api/fleet/reseal?limit=2')).json()).toMatchObject({ resealed: 2 });
  expect(await (await two.ask('POST', '/api/fleet/reseal')).json()).toEqual({
    resealed: 1,
    current: 2,
    unreadable: [],
    next: null,
    total: 3,
  });
  expect(await sealedOf('news')).not.toBe(before);
  await write(next);
  await fleet.level();
  await post(three, 'news', PLAIN);
  await fleet.untilFile('news', PLAIN_FILE);
  await untilClean(one);
  expect([await one.file('sport'), await one.file('gone')]).toEqual([CENC_ONLY_FILE, undefined]);
});

test('an older backup of the engine rolls nothing back and removes no file, and an import brings back what is missing', async () => {
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  for (const stream of ['same', 'changed', 'gone']) await post(one, stream, CENC_ONLY);
  await fleet.untilFile('gone', CENC_ONLY_FILE);
  const backup = await etcd.snapshot();
  await post(two, 'changed', PLAIN);
  await post(two, 'later', CENC_ONLY);
  await remove(two, 'gone');
  await fleet.untilFile('gone', undefined);
  const streams = ['same', 'changed', 'gone', 'later'];
  const right = [CENC_ONLY_FILE, PLAIN_FILE, undefined, CENC_ONLY_FILE];
  await three.stop();
  await etcd.restore(backup);
  for (const each of [one, two]) await until(async () => (await each.figure('fleet_older')) === 2);
  for (const each of [one, two]) expect(await files(each, streams)).toEqual(right);
  expect(await imported(one)).toMatchObject({ imported: 2, same: 1, refused: [] });
  await remove(one, 'gone');
  await three.start();
  await fleet.level();
  await untilClean(two);
  for (const each of fleet.packagers) expect(await files(each, streams)).toEqual(right);
});

test('a lost engine removes no file, and its fleet, founded again and imported, is level', async () => {
  const fleet = await startFleet({
    urls: etcd.urls,
    packagers: 2,
    streams: { 'packager-2': ['both/', 'own/'] },
  });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  for (const stream of ['both/a', 'both/b', 'both/gone', 'other']) await post(one, stream, CENC_ONLY);
  // The counter of the lost engine is far beyond that of the new one.
  const key = Buffer.from('elsewhere').toString('base64');
  await Promise.all(Array.from({ length: 300 }, () => etcd.post(0, '/v3/kv/put', { key })));
  await remove(one, 'both/gone');
  await until(async () => (await two.file('both/b')) === CENC_ONLY_FILE);
  await etcd.wipe();
  for (const each of fleet.packagers)
    await until(async () => (await each.figure('fleet_state{state="lost_fleet"}')) === 1);
  const refused = await two.ask('POST', pathOf('new'), CENC_ONLY);
  expect([refused.status, await refused.json()]).toMatchObject([503, { errors: [{ code: 'fleet_lost' }] }]);
  expect(await files(two, ['both/a', 'both/b', 'both/gone', 'other'])).toEqual([
    ...[CENC_ONLY_FILE, CENC_ONLY_FILE, undefined, undefined],
  ]);
  expect(await imported(one, '?found=true')).toMatchObject({ imported: 3, refused: [] });
  await fleet.level();
  expect(await imported(two)).toMatchObject({ imported: 0, same: 2, refused: [] });
  for (const each of fleet.packagers) await untilClean(each);
  await post(two, 'both/a', PLAIN);
  await until(async () => (await one.file('both/a')) === PLAIN_FILE);
  await remove(one, 'both/b');
  await until(async () => (await two.file('both/b')) === undefined);
  expect(await files(one, ['both/b', 'both/gone', 'other'])).toEqual([undefined, undefined, CENC_ONLY_FILE]);
});

test('an engine whose quota is used up refuses changes as 507 fleet_full, reads go on, and after a compaction all goes on', async () => {
  const small = await startEtcdCluster({ servers: 1, flags: [`--quota-backend-bytes=${8 * MEBIBYTE}`] });
  const fleet = await startFleet({ urls: small.urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  await post(one, 'news', CENC_ONLY);
  await fleet.untilFile('news', CENC_ONLY_FILE);
  const key = Buffer.from('elsewhere').toString('base64');
  const value = Buffer.alloc(MEBIBYTE).toString('base64');
  // The same key again and again: it is the history that fills the quota.
  await until(() =>
    small.post(0, '/v3/kv/put', { key, value }).then(
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
    await until(async () => (await each.status()).engine.some(({ alarms }) => alarms?.join() === 'NOSPACE'));
  }
  await small.compact();
  await small.control('defrag');
  await small.control('alarm', 'disarm');
  await post(two, 'news', PLAIN);
  await fleet.untilFile('news', PLAIN_FILE);
  await fleet.level();
});
