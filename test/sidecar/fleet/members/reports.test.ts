import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { StreamId } from '../../../../src/api/stream-id';
import { EngineError } from '../../../../src/sidecar/fleet/engine/engine';
import {
  type Report,
  registrationValue,
  reportText,
  reportValue,
} from '../../../../src/sidecar/fleet/members/packagers';
import { FakeCluster } from '../../../support/fake-engine';
import { fleetMember, KEYS, type Member, NO_REPORT } from '../../../support/fleet-member';
import { until } from '../../../support/until';

const KEY = KEYS.report('origin-1');
/** A packager that has joined and reported what it has. */
async function joined(checkMs?: number) {
  const cluster = new FakeCluster();
  const member = fleetMember(cluster, 'origin-1', checkMs === undefined ? {} : { pace: { checkMs } });
  await member.membership.join();
  await until(() => cluster.get(KEY) !== undefined);
  return { cluster, member };
}

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const applied = (revision: number) => ({ ...NO_REPORT, applied: [revision] });
const reported = (cluster: FakeCluster) => (cluster.json(KEY) as { applied: readonly number[] }).applied[0];
const writes = ({ engine }: Member) =>
  engine.calls.filter(({ method, keys }) => method === 'change' && keys.includes(KEY)).length;

test('a report that a client waits for is written at once, and holds what a packager reports of itself', async () => {
  const cluster = new FakeCluster();
  const member = fleetMember(cluster, 'origin-1', { pace: { reportMs: 60_000 } });
  await member.membership.join();
  await until(() => cluster.get(KEY) !== undefined);
  const lacks = [
    ['constructor', 'kept'],
    ['__proto__', 'failed'],
  ] as const;
  const said = { state: 'level', applied: [2], lacking: 2, clockAhead: 1500, propagation: [3, 4] } as const;
  member.report = { ...said, lacks: Object.fromEntries(lacks) };
  member.membership.reportSoon();
  await until(() => reported(cluster) === 2);
  const own = { id: 'id-of-origin-1', at: Date.parse('2026-11-22T12:00:00Z') };
  expect(cluster.json(KEY)).toEqual({ ...own, ...said, lacks });
  const [listed] = await member.membership.list();
  expect(listed).toEqual({
    ...{ name: 'origin-1', id: own.id, streams: undefined, since: own.at, version: '1.0.0', live: true },
    report: { ...own, ...member.report },
  });
});

test('many changes that a client waits for make one report while one is under way, with the last state', async () => {
  const { cluster, member } = await joined();
  const before = writes(member);
  member.engine.before = () => rest(5);
  for (let revision = 1; revision <= 200; revision += 1) {
    cluster.revision += 1;
    member.report = applied(revision);
    member.membership.reportSoon();
    if (revision % 10 === 0) await rest(1);
  }
  await until(() => reported(cluster) === 200);
  expect(writes(member) - before).toBeLessThan(20);
});

test('a report that no client waits for is written once in a while', async () => {
  const { cluster, member } = await joined();
  const before = writes(member);
  cluster.revision = 50;
  member.report = applied(40);
  await until(() => reported(cluster) === 40);
  expect(writes(member) - before).toBe(1);
});

test('a report that says what the last one said is sent only when the name is checked', async () => {
  const { member } = await joined(60_000);
  const before = writes(member);
  member.membership.reportSoon();
  await rest(160);
  expect(writes(member)).toBe(before);
  const checked = await joined();
  checked.cluster.set(KEY, undefined);
  await until(() => checked.cluster.get(KEY) !== undefined);
});

test.each([
  ['while the engine is away', 'unavailable'],
  ['while the engine is full', 'full'],
] as const)('a report that fails %s is made when it can be', async (_, kind) => {
  const { cluster, member } = await joined();
  cluster.revision = 50;
  member.report = applied(40);
  member.engine.before = ({ method, keys }) => {
    if (method === 'change' && keys.includes(KEY)) throw new EngineError(kind, 'not now');
  };
  const before = writes(member);
  member.membership.reportSoon();
  await until(() => writes(member) - before > 2);
  member.engine.before = () => undefined;
  await until(() => reported(cluster) === 40);
  expect(member.lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'the report to the fleet failed'],
  ]);
});

test('a report whose answer was lost is not taken for that of another sidecar', async () => {
  const { cluster, member } = await joined();
  cluster.revision = 50;
  member.report = applied(40);
  member.engine.after = ({ method, keys }) => {
    if (method === 'change' && keys.includes(KEY)) throw new EngineError('unknown', 'no answer');
  };
  member.membership.reportSoon();
  await until(() => reported(cluster) === 40);
  member.engine.after = () => undefined;
  await rest(60);
  member.report = applied(45);
  member.membership.reportSoon();
  await until(() => reported(cluster) === 45);
});

test('a packager whose name another sidecar has taken meanwhile does not report under it', async () => {
  const { cluster, member } = await joined();
  // Until its next keep-alive it does not know.
  member.engine.before = ({ method }) => (method === 'keepAlive' ? new Promise(() => undefined) : undefined);
  await until(() => member.engine.calls.at(-1)?.method === 'keepAlive');
  cluster.expire();
  cluster.set(KEYS.live('origin-1'), '{"id":"else","lease":"l"}');
  const stood = cluster.get(KEY)?.revision;
  cluster.revision = 50;
  member.report = applied(40);
  member.membership.reportSoon();
  await rest(60);
  expect(cluster.get(KEY)?.revision).toBe(stood);
});

/** A sidecar that waits for packagers, which are registered. */
function sidecar(...names: string[]) {
  const cluster = new FakeCluster();
  for (const name of names) register(cluster, name);
  return { cluster, ...fleetMember(cluster, 'central') };
}

const register = (cluster: FakeCluster, name: string, streams?: readonly string[]) =>
  cluster.set(
    KEYS.packager(name),
    registrationValue({ id: `id-of-${name}`, streams, since: 0, version: '1.0.0' }),
  );

function report(cluster: FakeCluster, name: string, said: Partial<Report>, id = `id-of-${name}`) {
  const lacking = Object.keys(said.lacks ?? {}).length;
  const text = reportText(id, { ...NO_REPORT, lacking, ...said });
  // Its files are older than its report.
  cluster.revision = Math.max(cluster.revision, ...(said.applied ?? []));
  return cluster.set(KEYS.report(name), reportValue(text, new Date(0)));
}

const change = (streamId: string, revision: number) => ({ streamId: streamId as StreamId, revision });

test('a wait ends at once when every packager that takes the stream has it', async () => {
  const { cluster, membership } = sidecar();
  register(cluster, 'news', ['news/']);
  register(cluster, 'sports', ['sports/']);
  report(cluster, 'news', { applied: [10] });
  expect(await membership.waitFor([change('news/1', 10)], 5)).toEqual([]);
  expect(await membership.waitFor([change('else', 10)], 5)).toEqual([]);
  expect(await membership.waitFor([], 5)).toEqual([]);
});

test('a wait ends when the last packager reports, and names those that have not at its deadline', async () => {
  const { cluster, membership } = sidecar('p3', 'p1', 'p2');
  const waits = [membership.waitFor([change('a', 10)], 5), membership.waitFor([change('a', 20)], 0.2)];
  await rest(20);
  report(cluster, 'p1', { applied: [10] });
  report(cluster, 'p2', { applied: [30] });
  await rest(20);
  report(cluster, 'p3', { applied: [12] });
  expect(await waits[0]).toEqual([]);
  expect(await waits[1]).toEqual(['p1', 'p3']);
});

test('all waits share one reading of the reports, and without a wait none is read', async () => {
  const { cluster, membership, engine } = sidecar('p1');
  const waits = Array.from({ length: 20 }, (_, index) => membership.waitFor([change('a', 10 + index)], 5));
  await until(() => engine.count('list') > 3);
  report(cluster, 'p1', { applied: [40] });
  await Promise.all(waits);
  // Three ranges in a reading, at most one reading at a time, 2 to 10 ms between.
  const read = engine.count('list');
  expect(read).toBeLessThan(100);
  await rest(50);
  expect(engine.count('list')).toBe(read);
});

test.each([
  ['the stream itself', { a: 'kept' }, 1],
  ['streams that it does not all name', { b: 'kept' }, 2],
] as const)('a packager with %s missing has not got it', async (_, lacks, lacking) => {
  const { cluster, membership } = sidecar('p1');
  report(cluster, 'p1', { applied: [20], lacks, lacking });
  const wait = membership.waitFor([change('a', 10)], 5);
  await expect(membership.waitFor([change('a', 10)], 0.25)).resolves.toEqual(['p1']);
  report(cluster, 'p1', { applied: [20], lacks: { b: 'kept' } });
  expect(await wait).toEqual([]);
});

test('a report of another folder under the name, or of an engine that was restored, does not count', async () => {
  const { cluster, membership } = sidecar('p1', 'p2');
  cluster.set(
    KEYS.report('p2'),
    reportValue(reportText('id-of-p2', { ...NO_REPORT, applied: [500] }), new Date(0)),
  );
  report(cluster, 'p1', { applied: [20] }, 'folder-before');
  expect(await membership.waitFor([change('a', 5)], 0.25)).toEqual(['p1', 'p2']);
});

test('a packager that is retired is no longer waited for, and one that registers meanwhile is', async () => {
  const { cluster, membership } = sidecar('p1', 'gone');
  const waits = [membership.waitFor([change('a', 10)], 5), membership.waitFor([change('a', 10)], 0.8)];
  await rest(20);
  register(cluster, 'p2');
  await membership.retire('gone');
  report(cluster, 'p1', { applied: [10] });
  expect(await waits[1]).toEqual(['p2']);
  report(cluster, 'p2', { applied: [10] });
  expect(await waits[0]).toEqual([]);
});

test('a wait survives that the engine is away, and that it is restored', async () => {
  const { cluster, membership, engine } = sidecar('p1');
  engine.isAway = true;
  const wait = membership.waitFor([change('a', 10)], 5);
  await rest(30);
  const named = membership.waitFor([change('a', 10)], 0.25);
  cluster.restore(cluster.backup());
  report(cluster, 'p1', { applied: [30] });
  await expect(named).rejects.toMatchObject({ name: 'EngineError', kind: 'unavailable' });
  engine.isAway = false;
  expect(await wait).toEqual([]);
});

test('while the engine is away, those are named that were not known to have it', async () => {
  const { cluster, membership, engine } = sidecar('p1', 'p2', 'p3');
  const wait = membership.waitFor([change('a', 10)], 0.2);
  await until(() => engine.count('list') >= 6);
  report(cluster, 'p2', { applied: [10] });
  await rest(30);
  engine.isAway = true;
  report(cluster, 'p1', { applied: [10] });
  expect(await wait).toEqual(['p1', 'p3']);
});

test('the end of a sidecar ends its waits', async () => {
  const { membership, engine } = sidecar('p1');
  const wait = membership.waitFor([change('a', 10)], 30);
  await until(() => engine.count('list') >= 6);
  await membership.close();
  expect(await wait).toEqual(['p1']);
});

test('a wait ends in time although memory is collected meanwhile', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { membership, engine } = fleetMember(new FakeCluster(), 'origin-1');
  await membership.join();
  const waited = membership.waitFor([{ streamId: 'news' as StreamId, revision: 1_000_000 }], 1);
  // The second list begins when the first one is read. On a busy machine, a list and to collect take long.
  const lists = engine.count('list');
  await until(() => engine.count('list') >= lists + 2);
  collect();
  expect(await waited).toEqual(['origin-1']);
});
