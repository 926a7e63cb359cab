import fc from 'fast-check';
import { EngineError } from '../../../../src/sidecar/fleet/engine/engine';
import { FakeCluster } from '../../../support/fake-engine';
import { fleetMember, NO_REPORT, PLACES } from '../../../support/fleet-member';

/** Three packagers, one of which runs and none of which does anything by itself. */
function threePackagers() {
  const cluster = new FakeCluster();
  for (const name of ['origin-3', 'origin-1', 'origin-2'])
    cluster.set(PLACES.packager(name), JSON.stringify({ id: name, streams: null, since: 5, version: '1' }));
  cluster.set(PLACES.live('origin-1'), '{"id":"origin-1","lease":"1"}');
  cluster.set(PLACES.report('origin-2'), JSON.stringify({ id: 'origin-2', applied: [3], at: 7 }));
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
  for (const name of names) cluster.set(PLACES.packager(name), '{}');
  const { membership } = fleetMember(cluster, 'central');
  expect((await membership.list()).map(({ name }) => name)).toEqual(names);
});

test('what another version or somebody else wrote of a packager hides none', async () => {
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
      cluster.set(PLACES.packager('odd'), registration);
      cluster.set(PLACES.live('odd'), life);
      cluster.set(PLACES.report('odd'), report);
      const [found] = await fleetMember(cluster, 'central').membership.list();
      expect(found).toMatchObject({ name: 'odd', live: true });
      expect(new Date(found?.since ?? Number.NaN).toISOString()).toMatch(/Z$/);
    }),
    { numRuns: 60 },
  );
});

test('of a report of a newer version what is known is taken', async () => {
  const { cluster, membership } = threePackagers();
  const newer = {
    id: 'origin-3',
    state: 'dreaming',
    applied: [2],
    lacks: [['a', 'bored']],
    lacking: 1,
    moods: 3,
  };
  cluster.set(PLACES.report('origin-3'), JSON.stringify({ ...newer, at: 9 }));
  expect((await membership.list())[2]?.report).toEqual({
    ...NO_REPORT,
    id: 'origin-3',
    state: 'joining',
    applied: [2],
    lacks: { a: 'failed' },
    lacking: 1,
    at: 9,
  });
});

test('a retired packager is gone with its report, in one change', async () => {
  const { cluster, membership } = threePackagers();
  const { revision } = cluster;
  await membership.retire('origin-2');
  expect(cluster.revision).toBe(revision + 1);
  expect(cluster.get(PLACES.report('origin-2'))).toBeUndefined();
  await membership.retire('origin-3');
  expect((await membership.list()).map(({ name }) => name)).toEqual(['origin-1']);
});

test('a packager that does not exist, that runs, or that comes to life meanwhile is not retired', async () => {
  const { cluster, engine, membership } = threePackagers();
  await expect(membership.retire('origin-9')).rejects.toMatchObject({
    status: 404,
    problems: [
      {
        code: 'packager_not_found',
        description: 'No packager of the fleet is called origin-9. GET /api/fleet lists them.',
      },
    ],
  });
  const isLive = { status: 409, problems: [{ code: 'packager_live' }] };
  await expect(membership.retire('origin-1')).rejects.toMatchObject(isLive);
  engine.before = ({ method }) => {
    if (method === 'change') cluster.set(PLACES.live('origin-2'), '{"id":"origin-2","lease":"2"}');
  };
  await expect(membership.retire('origin-2')).rejects.toMatchObject(isLive);
  expect(await membership.list()).toHaveLength(3);
});

test('a sidecar without the right to retire a packager says so', async () => {
  const { engine, membership } = threePackagers();
  engine.before = ({ method }) => {
    if (method === 'change') throw new EngineError('denied', 'permission denied');
  };
  await expect(membership.retire('origin-2')).rejects.toMatchObject({ name: 'EngineError', kind: 'denied' });
});
