import { EngineError } from '../../../../src/sidecar/fleet/engine/engine';
import { FakeCluster } from '../../../support/fake-engine';
import { fleetMember, type Member, NO_REPORT, PLACES } from '../../../support/fleet-member';
import { until } from '../../../support/until';

const KEY = PLACES.report('origin-1');
const members: Member[] = [];

/** A packager that has joined and told what it has. */
async function joined(cluster: FakeCluster): Promise<Member> {
  const member = fleetMember(cluster, 'origin-1');
  members.push(member);
  await member.membership.join();
  await until(() => cluster.get(KEY) !== undefined);
  return member;
}

afterEach(async () => {
  await Promise.all(members.splice(0).map(({ membership }) => membership.close()));
});

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const applied = (revision: number) => ({ ...NO_REPORT, applied: [revision] });
const reported = (cluster: FakeCluster) => (cluster.json(KEY) as { applied: readonly number[] }).applied[0];
const writes = ({ engine }: Member) =>
  engine.calls.filter(({ method, keys }) => method === 'change' && keys.includes(KEY)).length;

test('a report that somebody waits for is made at once, and holds what a packager says of itself', async () => {
  const cluster = new FakeCluster();
  const member = fleetMember(cluster, 'origin-1', { pace: { periodMs: 60_000 } });
  members.push(member);
  await member.membership.join();
  await until(() => cluster.get(KEY) !== undefined);
  member.report = {
    state: 'level',
    applied: [2],
    lacks: Object.fromEntries([
      ['constructor', 'kept'],
      ['__proto__', 'failed'],
    ] as const),
    lacking: 2,
    clockAhead: 1.5,
    propagation: [3, 4],
  };
  member.membership.changed(true);
  await until(() => reported(cluster) === 2);
  expect(cluster.json(KEY)).toEqual({
    id: 'id-of-origin-1',
    state: 'level',
    applied: [2],
    lacks: [
      ['constructor', 'kept'],
      ['__proto__', 'failed'],
    ],
    lacking: 2,
    clockAhead: 1.5,
    propagation: [3, 4],
    at: Date.parse('2026-11-22T12:00:00Z'),
  });
  const [listed] = await member.membership.list();
  expect(listed).toEqual({
    name: 'origin-1',
    id: 'id-of-origin-1',
    streams: undefined,
    since: Date.parse('2026-11-22T12:00:00Z'),
    version: '1.0.0',
    live: true,
    report: { ...member.report, id: 'id-of-origin-1', at: Date.parse('2026-11-22T12:00:00Z') },
  });
});

test('many changes that somebody waits for make one report while one is under way, and the last state is told', async () => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  const before = writes(member);
  member.engine.before = () => rest(5);
  for (let revision = 1; revision <= 200; revision += 1) {
    cluster.revision += 1;
    member.report = applied(revision);
    member.membership.changed(true);
    if (revision % 10 === 0) await rest(1);
  }
  await until(() => reported(cluster) === 200);
  expect(writes(member) - before).toBeLessThan(20);
});

test('reports that nobody waits for are made once in a while', async () => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  const before = writes(member);
  const began = performance.now();
  for (let revision = 1; revision <= 60; revision += 1) {
    cluster.revision += 1;
    member.report = applied(revision);
    member.membership.changed(false);
    await rest(5);
  }
  await until(() => reported(cluster) === 60);
  const periods = Math.floor((performance.now() - began) / 150);
  expect(writes(member) - before).toBeLessThanOrEqual(periods + 1);
});

test('nothing is sent when the report says what the last one said', async () => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  const before = writes(member);
  for (const isAwaited of [true, false, true]) {
    member.membership.changed(isAwaited);
    await rest(40);
  }
  await rest(150);
  expect(writes(member)).toBe(before);
});

test.each([
  ['while the engine is away', 'unavailable'],
  ['while the engine is full', 'full'],
] as const)('a report that fails %s is made when it can be', async (_, kind) => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  cluster.revision = 50;
  member.report = applied(40);
  member.engine.before = ({ method, keys }) => {
    if (method === 'change' && keys.includes(KEY)) throw new EngineError(kind, 'not now');
  };
  const before = writes(member);
  member.membership.changed(true);
  await until(() => writes(member) - before > 2);
  member.engine.before = () => undefined;
  await until(() => reported(cluster) === 40);
  expect(member.lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'the report to the fleet failed'],
  ]);
});

test('a report whose answer was lost is not taken for that of somebody else', async () => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  cluster.revision = 50;
  member.report = applied(40);
  member.engine.after = ({ method, keys }) => {
    if (method === 'change' && keys.includes(KEY)) throw new EngineError('unknown', 'no answer');
  };
  member.membership.changed(true);
  await until(() => reported(cluster) === 40);
  member.engine.after = () => undefined;
  await rest(60);
  member.report = applied(45);
  member.membership.changed(true);
  await until(() => reported(cluster) === 45);
});

test('a packager whose name somebody else has taken meanwhile does not report under it', async () => {
  const cluster = new FakeCluster();
  const member = await joined(cluster);
  // Until its next keep-alive it does not know.
  member.engine.before = ({ method }) => (method === 'keepAlive' ? new Promise(() => undefined) : undefined);
  await until(() => member.engine.calls.at(-1)?.method === 'keepAlive');
  cluster.expire();
  cluster.set(PLACES.live('origin-1'), '{"id":"else","lease":"l"}');
  const stood = cluster.get(KEY)?.revision;
  cluster.revision = 50;
  member.report = applied(40);
  member.membership.changed(true);
  await rest(60);
  expect(cluster.get(KEY)?.revision).toBe(stood);
});
