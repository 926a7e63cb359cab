import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fs from 'fs-extra';
import type { StreamId } from '../../../src/api/stream-id';
import type { WatchedEvent } from '../../../src/sidecar/fleet/engine/engine';
import { temporaryFolder } from '../../support/after-test';
import { FakeCluster, type FakeEngine } from '../../support/fake-engine';
import {
  FLEET_SECRET,
  lacksOf,
  type Member,
  startLevel,
  startMember,
  startOne,
  startTwo,
} from '../../support/start-member';
import { gate, until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const NEW_SECRET = 'the-next-secret-of-the-tests-0123456789-abc';
const KEYS = 'packagerdrmapi/keys/';

const NO_LACKS = { kept: 0, unreadable: 0, failed: 0, older: 0 };

/** Holds all changes of key files until they are let through. */
function holdEvents(engine: FakeEngine): () => void {
  const { opened: released, open: release } = gate();
  const { watch } = engine;
  engine.watch = (range, options) => {
    if (range.prefix !== KEYS) return watch.call(engine, range, options);
    let held: WatchedEvent[] | undefined;
    const onEvents: typeof options.onEvents = async (events, at) => {
      if (held) {
        held.push(...events);
        return;
      }
      held = [...events];
      released.then(async () => {
        const all = held ?? [];
        held = undefined;
        await options.onEvents(all, at);
      });
    };
    return watch.call(engine, range, { ...options, onEvents });
  };
  return release;
}

/** Two packagers, of which the second takes no change until it is released. */
async function startHeld() {
  const { cluster, one } = await startOne();
  const engine = cluster.connect();
  const release = holdEvents(engine);
  const two = await startLevel(engine, { name: 'two' });
  return { cluster, one, two, release };
}

test.each<[what: string, before: (cluster: FakeCluster, one: Member) => unknown]>([
  ['a change before its own', (_cluster, one) => one.put('news', A)],
  ['garbage that its own change mended', (cluster) => cluster.set(`${KEYS}news`, 'garbage')],
])('a packager misses nothing when %s comes late', async (_what, before) => {
  const { cluster, one, two, release } = await startHeld();
  await before(cluster, one);
  await two.put('news', B);
  await one.put('later', A);
  release();
  await until(() => two.file('later') === A);
  await until(() => isDeepStrictEqual(lacksOf(two), NO_LACKS));
  expect(two.file('news')).toBe(B);
});

test('a packager misses what it cannot open, also when a former change comes at the same time', async () => {
  const { one, two, release } = await startHeld();
  await one.put('news', A);
  one.reseal(NEW_SECRET, FLEET_SECRET);
  await one.put('news', B);
  one.reseal(FLEET_SECRET, NEW_SECRET);
  await one.put('later', A);
  release();
  await until(() => two.file('later') === A && two.file('news') === A);
  await until(() => lacksOf(two).unreadable === 1);
});

test('an entry that can no longer be opened is not missing any more when it is gone from the engine', async () => {
  const { cluster, one, two } = await startTwo();
  cluster.set(`${KEYS}news`, 'garbage');
  await until(() => lacksOf(one).unreadable === 1 && lacksOf(two).unreadable === 1);
  cluster.set(`${KEYS}news`, undefined);
  await until(() => lacksOf(one).unreadable === 0 && lacksOf(two).unreadable === 0);
});

test('a file made by hand that could not be read at the join stays when it can be', async () => {
  const { cluster, one } = await startOne();
  await one.put('news', A);
  await one.put('sport', A);
  const folder = await temporaryFolder();
  fs.writeFileSync(join(folder, 'news.key'), 'hand: 1\n');
  let isBroken = true;
  const two = await startMember(cluster.connect(), {
    name: 'two',
    folder,
    around: (local) => ({
      ...local,
      read(streamId) {
        if (isBroken) throw Object.assign(new Error('broken'), { code: 'EIO' });
        return local.read(streamId);
      },
    }),
  });
  await two.level();
  expect(lacksOf(two)).toEqual({ ...NO_LACKS, failed: 2 });
  isBroken = false;
  await until(() => lacksOf(two).failed === 0);
  expect(['news', 'sport'].map(two.file)).toEqual(['hand: 1\n', A]);
  expect(lacksOf(two)).toEqual({ ...NO_LACKS, kept: 1 });
  await one.put('news', B);
  await until(() => two.file('news') === B);
});

test('a file that is here already goes to the fleet that has none, also from a change that leaves it as it is', async () => {
  const { one, two } = await startTwo();
  one.byHand('news', A);
  const write = () => one.fleet.store.write('news' as StreamId, Buffer.from(A), { skipUnchanged: true });
  const { former, fleet } = await write();
  expect(former?.toString()).toBe(A);
  expect(fleet?.revision).toBe((await one.fleet.streamStatus('news' as StreamId)).revision);
  await until(() => two.file('news') === A);
  expect((await write()).fleet).toEqual(fleet);
});

test('an entry that another sidecar seals with the former secret, while the fleet is resealed, is resealed, too', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startLevel(engine, { name: 'one', secrets: [NEW_SECRET, FLEET_SECRET] });
  const two = await startLevel(cluster.connect(), { name: 'two', secrets: [FLEET_SECRET, NEW_SECRET] });
  await two.put('news', A);
  await two.put('sport', A);
  let isFirst = true;
  engine.before = async ({ method, keys }) => {
    if (method !== 'change' || !keys.includes(`${KEYS}news`) || !isFirst) return;
    isFirst = false;
    await two.put('news', B);
    // The fleet's description, too, as another reseal does.
    const fleet = cluster.get('packagerdrmapi/fleet');
    cluster.set('packagerdrmapi/fleet', fleet?.value);
  };
  const resealed = await one.fleet.resealStep({ after: undefined, limit: 10 });
  expect(resealed).toMatchObject({ resealed: 2, unreadable: [] });
  const three = await startLevel(cluster.connect(), { name: 'three', secrets: [NEW_SECRET] });
  expect([three.file('news'), three.file('sport'), lacksOf(three)]).toEqual([B, A, NO_LACKS]);
});

test('a deletion of a file made by hand is one in the whole fleet when the fleet gets the file meanwhile', async () => {
  const { cluster, one } = await startOne();
  let meanwhile: (() => Promise<void>) | undefined;
  const two = await startLevel(cluster.connect(), {
    name: 'two',
    around: (local) => ({
      ...local,
      async remove(...asked) {
        const first = meanwhile;
        meanwhile = undefined;
        await first?.();
        return local.remove(...asked);
      },
    }),
  });
  two.byHand('news', 'hand: 1\n');
  meanwhile = async () => {
    await one.put('news', A);
    await until(() => two.file('news') === A);
  };
  // Decided again, it is a deletion in the whole fleet.
  await two.remove('news');
  await until(() => one.file('news') === undefined && two.file('news') === undefined);
});

test('files that can never be written keep no others from being written', async () => {
  const cluster = new FakeCluster();
  const one = await startMember(cluster.connect(), { name: 'one' });
  let isFull = true;
  const two = await startMember(cluster.connect(), {
    name: 'two',
    // Else the look at the folder would find them.
    folderMs: 600_000,
    around: (local) => ({
      ...local,
      write(...asked) {
        if (isFull || asked[0].startsWith('never'))
          return Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }));
        return local.write(...asked);
      },
    }),
  });
  await Promise.all([one.level(), two.level()]);
  for (let count = 0; count < 64; count += 1) await one.put(`never-${count}`, A);
  await one.put('news', A);
  await until(() => lacksOf(two).failed === 65);
  isFull = false;
  await until(() => two.file('news') === A && lacksOf(two).failed === 64);
});

test('a watch that ends at once again and again is not begun at full speed', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const { watch } = engine;
  let ends = 0;
  engine.watch = (range, options) => {
    if (range.prefix === KEYS)
      setImmediate(() => {
        ends += 1;
        options.onEnd('restored');
      });
    return watch.call(engine, range, options);
  };
  await startMember(engine, { name: 'one' });
  await until(() => ends > 0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(ends).toBeLessThan(3);
});

test('a change does not go to another fleet that the engine has all at once', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const { watch } = engine;
  // As between two looks at the engine.
  engine.watch = (range, options) => watch.call(engine, range, { ...options, onEnd: () => undefined });
  const one = await startLevel(engine, { name: 'one' });
  const other = new FakeCluster();
  const founder = await startLevel(other.connect(), { name: 'two' });
  await founder.stop();
  cluster.restore(other.backup());
  await expect(one.put('news', A)).rejects.toMatchObject({ problems: [{ code: 'fleet_other' }] });
  expect([cluster.get(`${KEYS}news`), one.file('news')]).toEqual([undefined, undefined]);
});

const by = { key: 'tests', address: '127.0.0.1', requestId: 'request-3' };
const ALL = { after: undefined, limit: 10 };

test('an engine that was emptied removes no file, and is not written to', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const one = await startLevel(engine, { heartbeatMs: 20 });
  await one.put('news', A);
  cluster.restore();
  const before = engine.calls.length;
  await until(() => one.fleet.figures().state === 'lost_fleet');
  expect(one.file('news')).toBe(A);
  // Its name is looked for, and not taken.
  await until(() => engine.calls.slice(before).some(({ keys }) => keys[0]?.includes('/live/')));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(cluster.range(() => true)).toEqual([]);
  await expect(one.put('news', B)).rejects.toMatchObject({ status: 503, problems: [{ code: 'fleet_lost' }] });
  expect(one.file('news')).toBe(A);
  await one.fleet.found();
  await one.level();
  expect(await one.fleet.importStep(ALL, by)).toMatchObject({ imported: 1, refused: [] });
  const two = await startLevel(cluster.connect(), { name: 'two' });
  expect(two.file('news')).toBe(A);
});

test('an import that is repeated at once takes the files that were added meanwhile', async () => {
  const { one } = await startOne();
  one.byHand('first', A);
  expect(await one.fleet.importStep(ALL, by)).toMatchObject({ imported: 1, total: 1 });
  one.byHand('second', B);
  expect(await one.fleet.importStep(ALL, by)).toMatchObject({ imported: 1, same: 1, total: 2 });
});
