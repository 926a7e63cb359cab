import { writeFile } from 'node:fs/promises';
import { type EtcdCluster, startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { type FleetPackager, pathOf, post, startFleet, type TestFleet } from '../support/start-fleet';
import { until } from '../support/until';

const keyOf = (stream: string) => Buffer.from(`packagerdrmapi/keys/${stream}`).toString('base64');

let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startEtcdCluster({ kept: true, servers: 1 });
});

beforeEach(() => etcd.wipe());

/** What stands in etcd, in base64. */
async function sealedOf(stream: string): Promise<string> {
  const { kvs } = (await etcd.post(0, '/v3/kv/range', { key: keyOf(stream) })) as {
    kvs: { value: string }[];
  };
  return kvs[0]?.value ?? '';
}

/** Resolves when all packagers have taken what was done in etcd so far: a change of another stream comes after it. */
async function settled(fleet: TestFleet, beside = fleet.packagers): Promise<void> {
  for (const [body, text] of [
    [PLAIN, PLAIN_FILE],
    [CENC_ONLY, CENC_ONLY_FILE],
  ] as const) {
    await post(fleet.packager(0), 'settled', body);
    await fleet.untilFile('settled', text, beside);
  }
}

/** Resolves when a metric of the fleet is the same everywhere, as expected. */
const untilFigures = (fleet: TestFleet, name: string, expected: number) =>
  until(async () => {
    const found = await Promise.all(fleet.packagers.map((each) => each.figure(`fleet_${name}`)));
    return found.every((value) => value === expected);
  });

async function remove(through: FleetPackager, stream: string): Promise<void> {
  expect((await through.ask('DELETE', pathOf(stream))).status).toBe(200);
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

test('keys that are removed from etcd with etcdctl remove no file, and an import brings them back', async () => {
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  await three.stop();
  for (const stream of ['news', 'sport']) await post(one, stream, CENC_ONLY);
  await etcd.control('del', '--prefix', 'packagerdrmapi/keys/');
  await settled(fleet, [one, two]);
  for (const each of [one, two]) {
    expect([await each.file('news'), await each.file('sport')]).toEqual([CENC_ONLY_FILE, CENC_ONLY_FILE]);
    await until(async () => (await each.status()).missing === 2);
  }
  const answer = await two.ask('POST', '/api/fleet/import');
  expect(await answer.json()).toMatchObject({ imported: 2, same: 1, refused: [] });
  await three.start();
  await fleet.untilFile('news', CENC_ONLY_FILE);
  await fleet.untilFile('sport', CENC_ONLY_FILE);
  await until(async () => (await one.status()).missing === 0);
});

test('names in etcd that break the rule are ignored and counted, and no answer to ?wait= takes them for a packager', async () => {
  const fleet = await startFleet({ urls: etcd.urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  await post(one, 'news', CENC_ONLY);
  await fleet.untilFile('news', CENC_ONLY_FILE);
  const put = (key: string, value: string) =>
    etcd.post(0, '/v3/kv/put', { key: Buffer.from(`packagerdrmapi/${key}`).toString('base64'), value });
  const stored = async (key: string) => {
    const range = { key: Buffer.from(`packagerdrmapi/${key}`).toString('base64') };
    return ((await etcd.post(0, '/v3/kv/range', range)) as { kvs: { value: string }[] }).kvs[0]?.value ?? '';
  };
  const registration = await stored('packagers/packager-1');
  for (const name of [
    'a\r\nset-cookie: x',
    '\u0000',
    'ü',
    'x/packager-2',
    'n'.repeat(20_000),
    '',
    '-',
    'a b',
  ])
    await put(`packagers/${name}`, registration);
  await put('live/x/packager-2', await stored('live/packager-1'));
  await put('reports/x/packager-2', await stored('reports/packager-1'));
  const answered = await one.ask('POST', `${pathOf('news')}?wait=5`, PLAIN);
  expect([answered.status, answered.headers.get('warning')]).toEqual([200, null]);
  await until(async () => (await one.status()).ignored === 10);
  expect((await one.status()).packagers.map(({ name }) => name)).toEqual(['packager-1', 'packager-2']);
  await two.stop();
  const late = await one.ask('POST', `${pathOf('news')}?wait=1`, CENC_ONLY);
  expect(late.status).toBe(202);
  expect(late.headers.get('warning')).toContain('not everything is at packager-2 after 1 second');
  expect((await one.ask('DELETE', `${pathOf('news')}?wait=1`)).status).toBe(202);
});

test('a secret is rotated at three sidecars, and resealed, without a file changing', async () => {
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  for (const stream of ['news', 'sport']) await post(one, stream, CENC_ONLY);
  await post(one, 'gone', CENC_ONLY);
  expect((await two.ask('DELETE', pathOf('gone'))).status).toBe(200);
  await fleet.untilFile('gone', undefined);
  const [old, next] = ['fleet-secret-of-the-tests-'.repeat(2), 'the-next-secret-of-the-tests-'.repeat(2)];
  const reads = (count: number) =>
    until(() =>
      fleet.packagers.every(
        (each) => each.log().filter(([, message]) => message.startsWith('fleet secret')).length >= count,
      ),
    );
  const before = await sealedOf('news');
  let count = 1;
  for (const secrets of [
    [old, next],
    [next, old],
  ]) {
    await writeFile(fleet.secretFile, `${secrets.join('\n')}\n`);
    count += 1;
    await reads(count);
  }
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
  await writeFile(fleet.secretFile, `${next}\n`);
  await reads(count + 1);
  await fleet.level();
  await post(three, 'news', PLAIN);
  await fleet.untilFile('news', PLAIN_FILE);
  for (const lack of ['older', 'unreadable', 'kept', 'failed']) await untilFigures(fleet, lack, 0);
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
  // What the lost engine counted is far beyond what the new one will.
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
