import type { WatchOptions } from '../../../../src/sidecar/fleet/engine/engine';
import { FakeCluster } from '../../../support/fake-engine';
import { until } from '../../../support/until';

/** Keeps what a watch tells. */
function recorded(from: number) {
  const told: unknown[] = [];
  const options: WatchOptions = {
    from,
    onEvents: async (events) => {
      told.push(events.map(({ key, value, revision }) => [key, value?.toString(), revision]));
    },
    onPulse: ({ revision }) => told.push(revision),
    onLost: ({ kind }) => told.push(kind),
    onEnd: ({ kind }) => told.push(kind),
  };
  return { told, options };
}

const text = (value: string) => Buffer.from(value);

test('a watch of the fake engine goes on where it was, and ends when the servers were restored', async () => {
  const cluster = new FakeCluster();
  const [one, other] = [cluster.connect(), cluster.connect()];
  const { told, options } = recorded(2);
  one.watch({ prefix: 'k/' }, options);
  const lease = await other.grant(5);
  expect(
    await other.change([
      { key: 'k/a', expected: 0, value: text('1'), lease },
      { key: 'k/b', expected: 4, value: text('1') },
    ]),
  ).toEqual({
    at: { revision: 2, cluster: 'cluster-1', term: 2 },
    answers: [
      { made: true, revision: 2 },
      { made: false, present: undefined },
    ],
  });
  await until(() => told.length === 1);
  one.isAway = true;
  await other.put('k/c', text('2'));
  await other.put('else', text('2'));
  cluster.expire(lease);
  one.isAway = false;
  await until(() => told.length === 4);
  const backup = cluster.backup();
  await other.put('k/c', text('3'));
  cluster.restore(backup);
  await until(() => one.watches === 0);
  expect(told).toEqual([
    [['k/a', '1', 2]],
    'unavailable',
    [
      ['k/c', '2', 3],
      ['k/a', undefined, 5],
    ],
    5,
    [['k/c', '3', 6]],
    'restored',
  ]);
});

test('the fake engine forgets what is compacted, and refuses what its guard forbids', async () => {
  const cluster = new FakeCluster();
  const engine = cluster.connect();
  for (const value of ['1', '2', '3']) await engine.put('k/a', text(value));
  expect((await engine.list({ prefix: 'k/' }, { revision: 3 })).values).toEqual([
    { key: 'k/a', value: text('2'), revision: 3 },
  ]);
  cluster.compact();
  await expect(engine.list({ prefix: 'k/' }, { revision: 3 })).rejects.toMatchObject({ kind: 'compacted' });
  const { told, options } = recorded(2);
  engine.watch({ prefix: 'k/' }, options);
  await until(() => engine.watches === 0);
  expect(told).toEqual(['compacted']);
  const remove = [{ key: 'k/a', expected: 4, value: undefined }];
  expect(await engine.change(remove, { key: 'k/b', revision: 1 })).toBeUndefined();
  expect(await engine.change(remove, { key: 'k/b', revision: 0 })).toMatchObject({
    answers: [{ made: true, revision: 5 }],
  });
  expect(cluster.get('k/a')).toBeUndefined();
});
