import fc from 'fast-check';
import { fleetAnswer } from '../../../../src/api/fleet-answers';
import { EngineError } from '../../../../src/sidecar/fleet/engine/engine';
import { replicationLag } from '../../../../src/sidecar/fleet/members/packagers';
import { FakeCluster } from '../../../support/fake-engine';
import { fleetMember, KEYS, NO_REPORT } from '../../../support/fleet-member';
import { until } from '../../../support/until';

/** A packager that has joined a fleet of its own. */
async function joined() {
  const cluster = new FakeCluster();
  const member = fleetMember(cluster, 'origin-1');
  await member.membership.join();
  return { cluster, ...member };
}

const NOON = Date.parse('2026-11-22T12:00:00Z');
const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const lifeOf = (cluster: FakeCluster, name: string) => cluster.json(KEYS.live(name));

test('a packager registers, and lives as long as its lease is kept alive', async () => {
  const cluster = new FakeCluster();
  const { membership, engine } = fleetMember(cluster, 'origin-1', { streams: ['sports/'] });
  expect(await membership.join()).toBe(true);
  const registered = { id: 'id-of-origin-1', streams: ['sports/'], since: NOON, version: '1.0.0' };
  expect(cluster.json('fleet/packagers/origin-1')).toEqual(registered);
  expect([...cluster.leases.values()]).toEqual([15]);
  await until(() => engine.count('keepAlive') > 2);
  await membership.close();
  expect(lifeOf(cluster, 'origin-1')).toBeUndefined();
  expect(cluster.get('fleet/packagers/origin-1')).toBeDefined();
});

test('an idle packager asks the engine for nothing but keep-alives, and a look and a report now and then', async () => {
  const { cluster, engine } = await joined();
  await until(() => cluster.get(KEYS.report('origin-1')) !== undefined);
  const before = engine.count();
  await until(() => engine.count('read') > 2);
  const calls = engine.calls.slice(before);
  expect(new Set(calls.map(({ method }) => method))).toEqual(new Set(['keepAlive', 'read', 'change']));
  const changed = calls.flatMap(({ method, keys }) => (method === 'change' ? keys : []));
  expect(new Set(changed)).toEqual(new Set([KEYS.report('origin-1')]));
});

test('a restarted sidecar of the same folder takes its name at once and keeps the day of its registration', async () => {
  const cluster = new FakeCluster();
  await fleetMember(cluster, 'origin-1').membership.join();
  const registered = cluster.get(KEYS.packager('origin-1'))?.revision;
  const later = { clock: () => new Date(NOON + 1000) };
  const again = fleetMember(cluster, 'origin-1', later);
  expect(await again.membership.join()).toBe(true);
  expect(cluster.get(KEYS.packager('origin-1'))?.revision).toBe(registered);
  const other = fleetMember(cluster, 'origin-1', { ...later, version: '2.0.0' });
  expect(await other.membership.join()).toBe(true);
  expect(cluster.json(KEYS.packager('origin-1'))).toMatchObject({ since: NOON, version: '2.0.0' });
});

test('a packager that takes other streams than before its restart has none of what it reported of those', async () => {
  const cluster = new FakeCluster();
  const before = fleetMember(cluster, 'origin-1', { streams: ['news/'] });
  before.report = { ...before.report, applied: [1] };
  await before.membership.join();
  await until(() => cluster.get(KEYS.report('origin-1')) !== undefined);
  await before.membership.close();
  const after = fleetMember(cluster, 'origin-1', { streams: ['sports/'] });
  after.engine.before = ({ method, keys }) => {
    if (method === 'change' && keys.length === 1) return new Promise(() => undefined);
    return undefined;
  };
  await after.membership.join();
  expect(await after.membership.list()).toMatchObject([{ streams: ['sports/'], report: undefined }]);
});

test('another folder waits for a name until its owner has gone, and is a new packager then', async () => {
  const cluster = new FakeCluster();
  const owner = fleetMember(cluster, 'origin-1');
  await owner.membership.join();
  const other = fleetMember(cluster, 'origin-1', { id: () => 'else', clock: () => new Date(NOON + 5000) });
  expect(await other.membership.join()).toBe(false);
  expect(other.taken).toEqual([true]);
  other.membership.reportSoon();
  await rest(60);
  expect(cluster.json(KEYS.report('origin-1'))).toMatchObject({ id: 'id-of-origin-1' });
  await owner.membership.close();
  await until(() => other.taken.length === 2);
  expect(other.taken).toEqual([true, false]);
  expect(cluster.json(KEYS.packager('origin-1'))).toMatchObject({ id: 'else', since: NOON + 5000 });
  await until(() => (cluster.json(KEYS.report('origin-1')) as { id: string }).id === 'else');
  expect(other.lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'another sidecar runs under the name of this packager'],
    ['info', 'the name of this packager is free again'],
  ]);
});

test('of many that want one name at the same moment one gets it', async () => {
  const cluster = new FakeCluster();
  const many = Array.from({ length: 8 }, (_, index) =>
    fleetMember(cluster, 'origin-1', { id: () => `id-${index}` }),
  );
  const joined = await Promise.all(many.map(({ membership }) => membership.join()));
  expect(joined.filter(Boolean)).toHaveLength(1);
  const winner = `id-${joined.indexOf(true)}`;
  expect(lifeOf(cluster, 'origin-1')).toMatchObject({ id: winner });
  expect(cluster.json(KEYS.packager('origin-1'))).toMatchObject({ id: winner });
});

test('two sidecars on copies of one folder differ from a restart: the first reports that its name is taken', async () => {
  const cluster = new FakeCluster();
  const first = fleetMember(cluster, 'origin-1');
  await first.membership.join();
  const copy = fleetMember(cluster, 'origin-1');
  expect(await copy.membership.join()).toBe(true);
  await until(() => first.taken.length === 1);
  await rest(150);
  expect(copy.taken).toEqual([]);
  expect(first.lines[0]?.[2]).toEqual({
    name: 'origin-1',
    why: 'its key-file folder is a copy of the one here',
  });
  await copy.membership.close();
  await until(() => first.taken.length === 2);
});

test('a packager whose lease has ended takes a new one by itself, and reports again what it has', async () => {
  const { cluster, taken } = await joined();
  await until(() => cluster.get(KEYS.report('origin-1')) !== undefined);
  const reported = cluster.get(KEYS.report('origin-1'))?.revision ?? 0;
  cluster.expire();
  expect(lifeOf(cluster, 'origin-1')).toBeUndefined();
  await until(() => lifeOf(cluster, 'origin-1') !== undefined);
  await until(() => (cluster.get(KEYS.report('origin-1'))?.revision ?? 0) > reported);
  expect(taken).toEqual([]);
});

test('a packager registers again in an engine that was emptied or restored, and after its records were removed', async () => {
  const { cluster, taken } = await joined();
  const backup = cluster.backup();
  cluster.restore();
  await until(() => lifeOf(cluster, 'origin-1') !== undefined);
  expect(cluster.get(KEYS.packager('origin-1'))).toBeDefined();
  cluster.restore(backup);
  cluster.expire();
  await until(() => lifeOf(cluster, 'origin-1') !== undefined);
  cluster.set(KEYS.packager('origin-1'), undefined);
  cluster.set(KEYS.live('origin-1'), undefined);
  await until(() => cluster.get(KEYS.packager('origin-1')) !== undefined);
  expect(lifeOf(cluster, 'origin-1')).toMatchObject({ id: 'id-of-origin-1' });
  expect(taken).toEqual([]);
});

test('a packager that can not reach the engine says so once, and joins by itself when it can', async () => {
  const cluster = new FakeCluster();
  const { membership, engine, lines } = fleetMember(cluster, 'origin-1');
  engine.isAway = true;
  await expect(membership.join()).rejects.toMatchObject({ kind: 'unavailable' });
  await until(() => engine.count('read') > 3);
  engine.isAway = false;
  await until(() => cluster.get(KEYS.packager('origin-1')) !== undefined);
  await until(() => lines.length === 2);
  expect(lines.map(([level, message]) => [level, message])).toEqual([
    ['warn', 'failed to renew the membership lease in etcd'],
    ['info', 'renewed the membership lease in etcd again'],
  ]);
});

test('a packager without the right to its name takes one lease, however often it tries', async () => {
  const cluster = new FakeCluster();
  const { membership, engine } = fleetMember(cluster, 'origin-1');
  engine.before = ({ method }) => {
    if (method === 'change') throw new EngineError('denied', 'permission denied');
  };
  await expect(membership.join()).rejects.toMatchObject({ kind: 'denied' });
  await until(() => engine.count('change') > 3);
  expect(engine.count('grant')).toBe(1);
  engine.before = () => undefined;
  await until(() => lifeOf(cluster, 'origin-1') !== undefined);
});

test('a lost answer to the registration is no other sidecar', async () => {
  const cluster = new FakeCluster();
  const { membership, engine, taken } = fleetMember(cluster, 'origin-1');
  engine.after = ({ method }) => {
    if (method === 'change') engine.isAway = true;
  };
  await expect(membership.join()).rejects.toMatchObject({ kind: 'unknown' });
  engine.after = () => undefined;
  engine.isAway = false;
  expect(await membership.join()).toBe(true);
  await rest(150);
  expect(taken).toEqual([]);
});

test('the end does not wait for an engine that does not answer', async () => {
  const { membership, engine } = await joined();
  engine.before = () => new Promise(() => undefined);
  expect(await membership.close()).toBeUndefined();
});
/** Three packagers, one of which runs and none of which does anything by itself. */
function threePackagers() {
  const cluster = new FakeCluster();
  for (const name of ['origin-3', 'origin-1', 'origin-2'])
    cluster.set(KEYS.packager(name), JSON.stringify({ id: name, streams: null, since: 5, version: '1' }));
  cluster.set(KEYS.live('origin-1'), '{"id":"origin-1","lease":"1"}');
  cluster.set(KEYS.report('origin-2'), JSON.stringify({ id: 'origin-2', applied: [3], at: 7 }));
  return { cluster, ...fleetMember(cluster, 'central') };
}

const REST = { streams: undefined, since: 5, version: '1' };

test('packagers are listed by name, each with whether it lives and what it reported last', async () => {
  const { membership } = threePackagers();
  expect(await membership.list()).toEqual([
    { name: 'origin-1', id: 'origin-1', ...REST, live: true, report: undefined },
    {
      name: 'origin-2',
      id: 'origin-2',
      ...REST,
      live: false,
      report: { ...NO_REPORT, state: 'joining', id: 'origin-2', applied: [3], at: 7 },
    },
    { name: 'origin-3', id: 'origin-3', ...REST, live: false, report: undefined },
  ]);
});

test('more packagers than one answer of the engine has are all listed', async () => {
  const cluster = new FakeCluster();
  const names = Array.from({ length: 450 }, (_, index) => `p${1000 + index}`);
  for (const name of names) cluster.set(KEYS.packager(name), '{}');
  const { membership } = fleetMember(cluster, 'central');
  expect((await membership.list()).map(({ name }) => name)).toEqual(names);
});

test('an entry of another version or another tool about a packager hides none', async () => {
  const anyJson = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .record({ id: fc.constant('i'), streams: fc.jsonValue(), since: fc.jsonValue(), lacks: fc.jsonValue() })
      .map((value) => JSON.stringify(value)),
  );
  await fc.assert(
    fc.asyncProperty(anyJson, anyJson, anyJson, async (registration, life, report) => {
      const cluster = new FakeCluster();
      cluster.set(KEYS.packager('odd'), registration);
      cluster.set(KEYS.live('odd'), life);
      cluster.set(KEYS.report('odd'), report);
      const [found] = await fleetMember(cluster, 'central').membership.list();
      expect(found).toMatchObject({ name: 'odd', live: true });
      expect(new Date(found?.since ?? Number.NaN).toISOString()).toMatch(/Z$/);
    }),
    { numRuns: 60 },
  );
});

test('of a report of a newer version what is known is taken', async () => {
  const { cluster, membership } = threePackagers();
  const known = { id: 'origin-3', applied: [2], lacking: 1, at: 9 };
  const newer = { ...known, state: 'dreaming', lacks: [['a', 'bored']], moods: 3 };
  cluster.set(KEYS.report('origin-3'), JSON.stringify(newer));
  const read = { ...NO_REPORT, ...known, state: 'joining', lacks: { a: 'failed' } };
  expect((await membership.list())[2]?.report).toEqual(read);
});

test('what no packager writes about itself is read as nothing, and breaks no list', async () => {
  const { cluster, membership } = threePackagers();
  const streams = Array.from({ length: 101 }, (_, index) => `site-${index}/`);
  const [at, many] = [8.64e15, Array.from({ length: 200_000 }, () => 1)];
  cluster.set(KEYS.packager('origin-3'), JSON.stringify({ id: 'origin-3', streams, since: at }));
  const report = {
    id: 'origin-3',
    applied: many,
    lacking: 2 ** 53 - 1,
    clockAhead: 1e300,
    propagation: many,
    at,
  };
  cluster.set(KEYS.report('origin-3'), JSON.stringify(report));
  const lag = replicationLag(await membership.list(), [], 0);
  expect(fleetAnswer.shape.packagers.parse(lag)[2]).toMatchObject({
    ...{ streams: null, since: '1970-01-01T00:00:00.000Z', reported: '1970-01-01T00:00:00.000Z' },
    ...{ applied: null, lacking: 0, clock_ahead_ms: null, propagation_ms: [] },
  });
});

test('a retired packager is gone with its report, in one change', async () => {
  const { cluster, membership } = threePackagers();
  const { revision } = cluster;
  await membership.retire('origin-2');
  expect(cluster.revision).toBe(revision + 1);
  expect(cluster.get(KEYS.report('origin-2'))).toBeUndefined();
  await membership.retire('origin-3');
  expect((await membership.list()).map(({ name }) => name)).toEqual(['origin-1']);
});

test('a packager that does not exist, that runs, or that comes to life meanwhile is not retired', async () => {
  const { cluster, engine, membership } = threePackagers();
  const isUnknown = { status: 404, problems: [{ code: 'packager_not_found' }] };
  for (const name of ['origin-9', 'orígin-€'])
    await expect(membership.retire(name)).rejects.toMatchObject(isUnknown);
  const isLive = { status: 409, problems: [{ code: 'packager_live' }] };
  await expect(membership.retire('origin-1')).rejects.toMatchObject(isLive);
  engine.before = ({ method }) => {
    if (method === 'change') cluster.set(KEYS.live('origin-2'), '{"id":"origin-2","lease":"2"}');
  };
  await expect(membership.retire('origin-2')).rejects.toMatchObject(isLive);
  expect(await membership.list()).toHaveLength(3);
});

test('an invalid packager name is ignored, and logged once', async () => {
  const { cluster, membership, lines } = await joined();
  const registration = cluster.get(KEYS.packager('origin-1'))?.value;
  const report = Buffer.from(JSON.stringify({ id: 'id-of-origin-1', applied: [1] }));
  for (const name of ['a\u0000b', 'x/origin-1', 'n'.repeat(65), '-a', ''])
    for (const range of [KEYS.packagers, KEYS.reports])
      cluster.set(`${range.prefix}${name}`, range === KEYS.packagers ? registration : report);
  for (let round = 0; round < 2; round += 1)
    expect((await membership.list()).map(({ name }) => name)).toEqual(['origin-1']);
  expect(lines.filter(([, message]) => message === 'ignored an invalid name of a packager')).toHaveLength(1);
  expect(membership.ignored).toBe(10);
});
