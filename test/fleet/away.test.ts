import { readdir } from 'node:fs/promises';
import { startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import { type FleetPackager, pathOf, startBuiltFleet } from '../support/start-fleet';
import { until } from '../support/until';

const STREAMS = 500;
const named = Array.from({ length: STREAMS }, (_, index) => `live/stream-${index}`);

/** How many key files a packager has below `live`. */
const countAt = async ({ folder }: FleetPackager) =>
  (await readdir(`${folder}/live`).catch(() => [])).filter((name) => name.endsWith('.key')).length;

/** The faults that its sidecar reports. */
async function wrongAt(at: FleetPackager): Promise<Record<string, number | undefined>> {
  const names = ['kept', 'unreadable', 'failed', 'older'];
  const found = await Promise.all(
    names.map(async (name) => [name, await at.figure(`fleet_${name}`)] as const),
  );
  return Object.fromEntries(found.filter(([, value]) => value !== 0));
}

test('a sidecar that is killed again and again while it catches up has all files in the end, and none is foreign to it', async () => {
  const { urls } = await startEtcdCluster({ servers: 1 });
  const fleet = await startBuiltFleet({ urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  const batch = async (body: object) => {
    const answer = await one.ask('POST', '/api/keyfiles', { groups: [{ members: named, ...body }] });
    expect(await answer.json()).toMatchObject({ summary: { failed: 0 } });
  };
  await two.stop();
  await batch(CENC_ONLY);
  for (const part of [0.1, 0.4, 0.7]) {
    await two.start();
    await until(async () => (await countAt(two)) >= part * STREAMS);
    await two.stop();
  }
  // The last level started again while the former one was half made: its files are changed once more.
  await batch(PLAIN);
  await two.start();
  await until(async () => (await two.file(named[250] ?? '')) !== CENC_ONLY_FILE);
  await two.stop();
  await two.start();
  await fleet.level();
  const files = await Promise.all(named.map(two.file));
  expect(files.filter((file) => file !== PLAIN_FILE)).toEqual([]);
  expect(await wrongAt(two)).toEqual({});
  expect(await two.status()).toMatchObject({ state: 'level', streams: STREAMS, missing: 0 });
  await Promise.all(named.slice(0, 50).map((stream) => one.ask('DELETE', pathOf(stream))));
  await until(async () => (await countAt(two)) === STREAMS - 50);
});

test('changes that a sidecar acknowledged before it was killed are at all packagers, its own as well when it starts again', async () => {
  const { urls } = await startEtcdCluster({ servers: 1 });
  const fleet = await startBuiltFleet({ urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  const acknowledged: string[] = [];
  for (let round = 0; round < 3; round += 1) {
    const asked = Array.from({ length: 200 }, async (_, index) => {
      const stream = `round-${round}/${index}`;
      const answer = await two.ask('POST', pathOf(stream), CENC_ONLY).catch(() => undefined);
      if (answer?.status === 200) acknowledged.push(stream);
    });
    const former = acknowledged.length;
    await until(() => acknowledged.length > former + 20 * round);
    await two.stop();
    await Promise.all(asked);
    await two.start();
    await fleet.level();
  }
  for (const each of [one, two]) {
    const isThere = async () =>
      (await Promise.all(acknowledged.map(each.file))).every((file) => file === CENC_ONLY_FILE);
    await until(isThere);
    expect(await wrongAt(each)).toEqual({});
  }
  // Also what was accepted without the client having heard of it is the same everywhere.
  await until(async () => {
    const [first, second] = await Promise.all([one, two].map(async (each) => (await each.status()).streams));
    return first === second;
  });
});
