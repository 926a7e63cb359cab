import type { WatchedEvent } from '../../../src/sidecar/fleet/engine';
import { FakeCluster, type FakeEngine } from '../../support/fake-engine';
import { FLEET_SECRET, type Member, startMember } from '../../support/start-member';
import { until } from '../../support/until';

const A = 'a: 1\n';
const B = 'b: 2\n';
const NEW_SECRET = 'the-next-secret-of-the-tests-0123456789-abc';
const KEYS = 'packagerdrmapi/keys/';

const lacksOf = (member: Member) => member.fleet.figures().lacks;
const NO_LACKS = { kept: 0, unreadable: 0, failed: 0, older: 0 };

/** Has the changes of key files wait, all that come together, until they are let through. */
function holdEvents(engine: FakeEngine): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
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

async function startTwo(cluster: FakeCluster, engine: FakeEngine) {
  const one = await startMember(cluster.connect(), { name: 'one' });
  const two = await startMember(engine, { name: 'two' });
  await Promise.all([one.level(), two.level()]);
  return [one, two] as const;
}

test('a packager lacks nothing when it hears late of a change before its own', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const release = holdEvents(engine);
  const [one, two] = await startTwo(cluster, engine);
  await one.put('news', A);
  await two.put('news', B);
  await one.put('later', A);
  release();
  await until(() => two.file('later') === A);
  expect([two.file('news'), lacksOf(two)]).toEqual([B, NO_LACKS]);
});

test('a packager lacks nothing when it hears late of garbage that its own change mended', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const release = holdEvents(engine);
  const [one, two] = await startTwo(cluster, engine);
  cluster.set(`${KEYS}news`, 'garbage');
  await two.put('news', B);
  await one.put('later', A);
  release();
  await until(() => two.file('later') === A);
  expect([two.file('news'), lacksOf(two)]).toEqual([B, NO_LACKS]);
});

test('a packager lacks what it cannot open, also when it hears of a former change at the same time', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  const release = holdEvents(engine);
  const [one, two] = await startTwo(cluster, engine);
  await one.put('news', A);
  one.reseal(NEW_SECRET, FLEET_SECRET);
  await one.put('news', B);
  one.reseal(FLEET_SECRET, NEW_SECRET);
  await one.put('later', A);
  release();
  await until(() => two.file('later') === A);
  expect(lacksOf(two)).toEqual({ ...NO_LACKS, unreadable: 1 });
});

test('what can no longer be opened is lacked no longer when it is gone from the engine', async () => {
  const cluster = new FakeCluster();
  const [one, two] = await startTwo(cluster, cluster.connect());
  cluster.set(`${KEYS}news`, 'garbage');
  await until(() => lacksOf(one).unreadable === 1 && lacksOf(two).unreadable === 1);
  cluster.set(`${KEYS}news`, undefined);
  await until(() => lacksOf(one).unreadable === 0 && lacksOf(two).unreadable === 0);
});
