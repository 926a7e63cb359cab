import fc from 'fast-check';
import { takes } from '../../../../src/api/fleet';
import type { StreamId } from '../../../../src/api/stream-id';
import type { Report } from '../../../../src/sidecar/fleet/packagers/packagers';
import { registrationValue, reportText, reportValue } from '../../../../src/sidecar/fleet/packagers/roll';
import { followed } from '../../../../src/sidecar/fleet/places';
import { FakeCluster } from '../../../support/fake-engine';
import { fleetMember, type Member, NO_REPORT, PLACES } from '../../../support/fleet-member';
import { processorMs } from '../../../support/processor-time';
import { until } from '../../../support/until';

const members: Member[] = [];

/** A sidecar that waits for others. */
function sidecar(cluster: FakeCluster): Member {
  const member = fleetMember(cluster, 'central');
  members.push(member);
  return member;
}

afterEach(async () => {
  await Promise.all(members.splice(0).map(({ membership }) => membership.close()));
});

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const register = (cluster: FakeCluster, name: string, streams?: readonly string[]) =>
  cluster.set(
    PLACES.packager(name),
    registrationValue({ id: `id-of-${name}`, streams, since: 0, version: '1.0.0' }),
  );

function report(cluster: FakeCluster, name: string, said: Partial<Report>, id = `id-of-${name}`) {
  const lacking = Object.keys(said.lacks ?? {}).length;
  const text = reportText(id, { ...NO_REPORT, lacking, ...said });
  // What it has is older than what it says.
  cluster.revision = Math.max(cluster.revision, ...(said.applied ?? []));
  return cluster.set(PLACES.report(name), reportValue(text, new Date(0)));
}

const change = (streamId: string, revision: number) => ({ streamId: streamId as StreamId, revision });

test('a wait ends at once when every packager that takes the stream has it', async () => {
  const cluster = new FakeCluster();
  register(cluster, 'news', ['news/']);
  register(cluster, 'sports', ['sports/']);
  report(cluster, 'news', { applied: [10] });
  const { membership } = sidecar(cluster);
  expect(await membership.waitFor([change('news/1', 10)], 5)).toEqual([]);
  expect(await membership.waitFor([change('else', 10)], 5)).toEqual([]);
  expect(await membership.waitFor([], 5)).toEqual([]);
});

test('a wait ends when the last packager reports, and names those that have not at its deadline', async () => {
  const cluster = new FakeCluster();
  for (const name of ['p3', 'p1', 'p2']) register(cluster, name);
  const { membership } = sidecar(cluster);
  const waits = [membership.waitFor([change('a', 10)], 5), membership.waitFor([change('a', 20)], 0.2)];
  await rest(20);
  report(cluster, 'p1', { applied: [10] });
  report(cluster, 'p2', { applied: [30] });
  await rest(20);
  report(cluster, 'p3', { applied: [12] });
  expect(await waits[0]).toEqual([]);
  expect(await waits[1]).toEqual(['p1', 'p3']);
});

test('all who wait share one watch, and it ends a while after the last of them', async () => {
  const cluster = new FakeCluster();
  register(cluster, 'p1');
  const { membership, engine } = sidecar(cluster);
  const waits = Array.from({ length: 20 }, (_, index) => membership.waitFor([change('a', 10 + index)], 5));
  await until(() => engine.watches === 2);
  report(cluster, 'p1', { applied: [40] });
  await Promise.all(waits);
  expect(await membership.waitFor([change('b', 40)], 5)).toEqual([]);
  expect([engine.count('watch'), engine.count('list')]).toEqual([2, 2]);
  await until(() => engine.watches === 0);
  expect(await membership.waitFor([change('b', 41)], 0.05)).toEqual(['p1']);
});

test.each([
  ['the stream itself', { a: 'kept' }, 1],
  ['streams that it does not all name', { b: 'kept' }, 2],
] as const)('a packager that lacks %s has not got it', async (_, lacks, lacking) => {
  const cluster = new FakeCluster();
  register(cluster, 'p1');
  report(cluster, 'p1', { applied: [20], lacks, lacking });
  const { membership } = sidecar(cluster);
  const wait = membership.waitFor([change('a', 10)], 5);
  await expect(membership.waitFor([change('a', 10)], 0.05)).resolves.toEqual(['p1']);
  report(cluster, 'p1', { applied: [20], lacks: { b: 'kept' } });
  expect(await wait).toEqual([]);
});

test('what another folder reported under the name, or of an engine that was restored, does not count', async () => {
  const cluster = new FakeCluster();
  for (const name of ['p1', 'p2']) register(cluster, name);
  cluster.set(
    PLACES.report('p2'),
    reportValue(reportText('id-of-p2', { ...NO_REPORT, applied: [500] }), new Date(0)),
  );
  report(cluster, 'p1', { applied: [20] }, 'folder-before');
  const { membership } = sidecar(cluster);
  expect(await membership.waitFor([change('a', 5)], 0.05)).toEqual(['p1', 'p2']);
});

test('a packager that is retired is no longer waited for, and one that registers meanwhile is', async () => {
  const cluster = new FakeCluster();
  for (const name of ['p1', 'gone']) register(cluster, name);
  const { membership } = sidecar(cluster);
  const waits = [membership.waitFor([change('a', 10)], 5), membership.waitFor([change('a', 10)], 0.3)];
  await rest(20);
  register(cluster, 'p2');
  await membership.retire('gone');
  report(cluster, 'p1', { applied: [10] });
  expect(await waits[1]).toEqual(['p2']);
  report(cluster, 'p2', { applied: [10] });
  expect(await waits[0]).toEqual([]);
});

test('a wait survives that the engine is away, and that its watch ends', async () => {
  const cluster = new FakeCluster();
  register(cluster, 'p1');
  const { membership, engine } = sidecar(cluster);
  engine.isAway = true;
  const wait = membership.waitFor([change('a', 10)], 5);
  await rest(30);
  engine.isAway = false;
  await until(() => engine.watches === 2);
  engine.isAway = true;
  const named = membership.waitFor([change('a', 10)], 0.05);
  cluster.restore(cluster.backup());
  report(cluster, 'p1', { applied: [30] });
  await expect(named).rejects.toMatchObject({ name: 'EngineError', kind: 'unavailable' });
  engine.isAway = false;
  expect(await wait).toEqual([]);
});

test('while the engine is away, those are named that were not known to have it', async () => {
  const cluster = new FakeCluster();
  for (const name of ['p1', 'p2', 'p3']) register(cluster, name);
  const { membership, engine } = sidecar(cluster);
  const wait = membership.waitFor([change('a', 10)], 0.2);
  await until(() => engine.watches === 2);
  report(cluster, 'p2', { applied: [10] });
  await rest(30);
  engine.isAway = true;
  report(cluster, 'p1', { applied: [10] });
  expect(await wait).toEqual(['p1', 'p3']);
});

test('the end of a sidecar ends its waits', async () => {
  const cluster = new FakeCluster();
  register(cluster, 'p1');
  const { membership, engine } = sidecar(cluster);
  const wait = membership.waitFor([change('a', 10)], 30);
  await until(() => engine.watches === 2);
  await membership.close();
  expect(await wait).toEqual(['p1']);
  expect(engine.watches).toBe(0);
});

test('3,000 changes are awaited from 500 packagers at little cost', async () => {
  const cluster = new FakeCluster();
  const site = (index: number) => (index % 2 ? [`site-${index}/`, 'all/'] : undefined);
  for (let index = 0; index < 500; index += 1) register(cluster, `p${index}`, site(index));
  const changes = Array.from({ length: 3000 }, (_, index) =>
    change(`site-${index % 500}/${index}`, 10 + index),
  );
  const { membership, engine } = sidecar(cluster);
  const wait = membership.waitFor(changes, 20);
  await until(() => engine.watches === 2);
  const spent = await processorMs(async () => {
    for (let index = 0; index < 500; index += 1) report(cluster, `p${index}`, { applied: [4000, 4000] });
    await wait;
  });
  expect(await wait).toEqual([]);
  // A look at every change for every packager would take seconds.
  expect(spent).toBeLessThan(1000);
});

const ids = ['a', 'a/1', 'a/2', 'b', 'b/1', 'constructor', '__proto__'];
const anyStreams = fc.option(fc.array(fc.constantFrom('', 'a', 'a/', 'b/1', '_'), { maxLength: 2 }), {
  nil: undefined,
});
const anyReport = fc.record({
  applied: fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
  lacked: fc.uniqueArray(fc.constantFrom(...ids), { maxLength: 2 }),
  unnamed: fc.constantFrom(0, 0, 1),
});
const appliedOf = (streams: readonly string[] | undefined, revision: number | undefined) =>
  revision === undefined ? [] : followed(streams).map(() => revision);
const anyChanges = fc.array(fc.tuple(fc.constantFrom(...ids), fc.integer({ min: 1, max: 30 })), {
  minLength: 1,
  maxLength: 6,
});

test('a wait names those packagers that a look at each of the changes finds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(anyStreams, fc.option(anyReport)), { minLength: 1, maxLength: 4 }),
      anyChanges,
      async (packagers, changes) => {
        const cluster = new FakeCluster();
        cluster.revision = 100;
        const expected = packagers.flatMap(([streams, said], index) => {
          const name = `p${index}`;
          register(cluster, name, streams);
          if (said) {
            const lacks = Object.fromEntries(said.lacked.map((streamId) => [streamId, 'kept' as const]));
            const lacking = said.lacked.length + said.unnamed;
            report(cluster, name, { applied: appliedOf(streams, said.applied), lacks, lacking });
          }
          const isMissing = changes.some(
            ([streamId, revision]) =>
              takes(streams, streamId) &&
              (said?.applied === undefined ||
                said.applied < revision ||
                said.unnamed > 0 ||
                said.lacked.includes(streamId)),
          );
          return isMissing ? [name] : [];
        });
        const { membership } = fleetMember(cluster, 'central');
        const named = await membership.waitFor(
          changes.map(([streamId, revision]) => change(streamId, revision)),
          0.2,
        );
        await membership.close();
        expect(named).toEqual(expected);
      },
    ),
    { numRuns: 15 },
  );
});
