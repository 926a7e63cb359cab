import { readdir } from 'node:fs/promises';
import fs from 'fs-extra';
import { startEtcdCluster } from '../support/etcd-cluster';
import { CENC_ONLY, CENC_ONLY_FILE, PLAIN, PLAIN_FILE } from '../support/post-manual';
import {
  type FleetPackager,
  pathOf,
  post,
  remove,
  startBuiltFleet,
  startFleet,
} from '../support/start-fleet';
import { until } from '../support/until';

const STREAMS = 500;
const named = Array.from({ length: STREAMS }, (_, index) => `live/stream-${index}`);

/** How many key files a packager has below `live`. */
const countAt = async ({ folder }: FleetPackager) =>
  (await readdir(`${folder}/live`).catch(() => [])).filter((name) => name.endsWith('.key')).length;

/** What its sidecar says that is not as it should be. */
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
  // The last level began anew while the former one was half made: what stands there is changed once more.
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

test('what a sidecar acknowledged before it was killed is at all packagers, its own as well when it starts again', async () => {
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

test('a folder that is put back as it was some time ago is level again, and foreign files in it stay', async () => {
  const { urls } = await startEtcdCluster({ servers: 1 });
  const fleet = await startFleet({ urls, packagers: 2 });
  await fleet.level();
  const [one, two] = [fleet.packager(0), fleet.packager(1)];
  for (const stream of ['kept', 'changed', 'gone']) await post(one, stream, CENC_ONLY);
  await fleet.untilFile('gone', CENC_ONLY_FILE);
  await two.stop();
  const image = `${two.folder}-image`;
  await fs.copy(two.folder, image);
  await two.start();
  await post(one, 'changed', PLAIN);
  await post(one, 'new', PLAIN);
  await remove(one, 'gone');
  await fleet.untilFile('gone', undefined);
  await two.stop();
  await fs.move(image, two.folder, { overwrite: true });
  await fs.writeFile(`${two.folder}/mine.key`, 'made by hand');
  await fs.writeFile(`${two.folder}/notes.txt`, 'made by hand');
  await fs.outputFile(`${two.folder}/folder.key/inside`, 'made by hand');
  await post(one, 'folder', PLAIN);
  await two.start();
  await fleet.untilFile('changed', PLAIN_FILE);
  await fleet.untilFile('new', PLAIN_FILE);
  await fleet.untilFile('gone', undefined);
  expect([await two.file('kept'), await two.file('mine')]).toEqual([CENC_ONLY_FILE, 'made by hand']);
  expect(await fs.readFile(`${two.folder}/folder.key/inside`, 'utf8')).toBe('made by hand');
  await until(async () => {
    const { packagers } = await one.status();
    return JSON.stringify(packagers[1]?.lacks) === '[{"streamid":"folder","why":"failed"}]';
  });
  await fs.remove(`${two.folder}/folder.key`);
  await fleet.untilFile('folder', PLAIN_FILE);
  await fleet.level();
});
