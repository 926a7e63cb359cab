import { writeFile } from 'node:fs/promises';
import { type EtcdCluster, startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { type FleetPackager, startFleet, type TestFleet } from '../support/start-fleet';
import { until } from '../support/until';

const path = (stream: string) => `/api/keyfile/${stream}`;
const keyOf = (stream: string) => Buffer.from(`packagerdrmapi/keys/${stream}`).toString('base64');

let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startEtcdCluster({ kept: true, servers: 1 });
});

beforeEach(() => etcd.wipe());

async function post(through: FleetPackager, stream: string, body: object): Promise<void> {
  expect((await through.ask('POST', path(stream), body)).status).toBe(200);
}

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
  const answered = await one.ask('POST', `${path('news')}?wait=5`, PLAIN);
  expect([answered.status, answered.headers.get('warning')]).toEqual([200, null]);
  await until(async () => (await one.status()).ignored === 10);
  expect((await one.status()).packagers.map(({ name }) => name)).toEqual(['packager-1', 'packager-2']);
  await two.stop();
  const late = await one.ask('POST', `${path('news')}?wait=1`, CENC_ONLY);
  expect(late.status).toBe(202);
  expect(late.headers.get('warning')).toContain('not everything is at packager-2 after 1 second');
  expect((await one.ask('DELETE', `${path('news')}?wait=1`)).status).toBe(202);
});

test('a secret is rotated at three sidecars, and resealed, without a file changing', async () => {
  const fleet = await startFleet({ urls: etcd.urls });
  await fleet.level();
  const [one, two, three] = [fleet.packager(0), fleet.packager(1), fleet.packager(2)];
  for (const stream of ['news', 'sport']) await post(one, stream, CENC_ONLY);
  await post(one, 'gone', CENC_ONLY);
  expect((await two.ask('DELETE', path('gone'))).status).toBe(200);
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
