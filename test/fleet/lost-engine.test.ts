import { startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { type FleetPackager, startFleet } from '../support/start-fleet';
import { until } from '../support/until';

const path = (stream: string) => `/api/keyfile/${stream}`;

async function post(through: FleetPackager, stream: string, body: object): Promise<void> {
  expect((await through.ask('POST', path(stream), body)).status).toBe(200);
}

async function remove(through: FleetPackager, stream: string): Promise<void> {
  expect((await through.ask('DELETE', path(stream))).status).toBe(200);
}

async function imported(at: FleetPackager, query = ''): Promise<unknown> {
  const answer = await at.ask('POST', `/api/fleet/import${query}`);
  expect(answer.status).toBe(200);
  return answer.json();
}

const files = (at: FleetPackager, streams: readonly string[]) => Promise.all(streams.map(at.file));

/** Resolves when no packager lacks anything, and nothing is missing in the engine, as a packager tells. */
async function untilClean(at: FleetPackager): Promise<void> {
  let last: unknown;
  const isClean = async () => {
    const { state, missing, packagers } = await at.status();
    last = [state, missing, ...packagers.map(({ lacks, behind }) => [behind, lacks])];
    const isLevel = packagers.every(
      ({ state: its, behind, lacking }) => its === 'level' && behind + lacking === 0,
    );
    return state === 'level' && missing === 0 && isLevel;
  };
  const limit = performance.now() + 40_000;
  await until(async () => {
    if (performance.now() > limit) throw new Error(`not clean: ${JSON.stringify(last)}`);
    return isClean();
  });
}

test('an older backup of the engine rolls nothing back and removes no file, and an import brings back what is missing', async () => {
  const etcd = await startEtcdCluster({ servers: 1 });
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
  const etcd = await startEtcdCluster({ servers: 1 });
  const fleet = await startFleet({
    urls: etcd.urls,
    packagers: 2,
    streams: { 'packager-2': ['both/', 'own/'] },
  });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  for (const stream of ['both/a', 'both/b', 'both/gone', 'other'])
    await post(one, encodeURIComponent(stream), CENC_ONLY);
  // What the lost engine counted is far beyond what the new one will.
  const key = Buffer.from('elsewhere').toString('base64');
  await Promise.all(Array.from({ length: 300 }, () => etcd.post(0, '/v3/kv/put', { key })));
  await remove(one, 'both%2Fgone');
  await until(async () => (await two.file('both/b')) === CENC_ONLY_FILE);
  await etcd.wipe();
  for (const each of fleet.packagers)
    await until(async () => (await each.figure('fleet_state{state="lost_fleet"}')) === 1);
  const refused = await two.ask('POST', path('new'), CENC_ONLY);
  expect([refused.status, await refused.json()]).toMatchObject([503, { errors: [{ code: 'fleet_lost' }] }]);
  expect(await files(two, ['both/a', 'both/b', 'both/gone', 'other'])).toEqual([
    ...[CENC_ONLY_FILE, CENC_ONLY_FILE, undefined, undefined],
  ]);
  expect(await imported(one, '?found=true')).toMatchObject({ imported: 3, refused: [] });
  await fleet.level();
  expect(await imported(two)).toMatchObject({ imported: 0, same: 2, refused: [] });
  for (const each of fleet.packagers) await untilClean(each);
  await post(two, 'both%2Fa', PLAIN);
  await until(async () => (await one.file('both/a')) === PLAIN_FILE);
  await remove(one, 'both%2Fb');
  await until(async () => (await two.file('both/b')) === undefined);
  expect(await files(one, ['both/b', 'both/gone', 'other'])).toEqual([undefined, undefined, CENC_ONLY_FILE]);
});
