import type { ServerResponse } from 'node:http';
import * as fc from 'fast-check';
import {
  type Answer,
  base64,
  eventOf,
  type Gateway,
  header,
  openEngine,
  refusal,
  startGateway,
  watchAll,
} from '../../../support/etcd-gateway';
import { until } from '../../../support/until';

const PACE = { attemptMs: 100, heartbeatMs: 40, deniedMs: 20 };
const AT = { cluster: '5', revision: 100, term: 2 };
const line = (result: object) => `${JSON.stringify({ result: { header, ...result } })}\n`;
const begins = (gateway: Gateway) => gateway.watches.map(({ start_revision }) => start_revision);
const NO_LEADER = refusal('etcdserver: no leader', 14, 503);

/** A watch of `a` from revision 101 at one server. */
async function startWatch(answer?: Gateway['answer'], take?: () => Promise<void>) {
  const gateway = await startGateway(answer);
  const engine = openEngine([gateway.url], { pace: PACE });
  const watched = await watchAll(engine, 'a', { from: 101, since: AT, ...(take && { take }) });
  return { gateway, engine, watched };
}

test('asks for a range from a revision on, with fragments and progress, and reports what comes', async () => {
  const { gateway, watched } = await startWatch();
  await until(() => watched.heartbeats.length > 0);
  const range = { key: base64('a'), range_end: base64('b'), start_revision: '101' };
  expect(gateway.watches).toEqual([{ ...range, progress_notify: true, fragment: true }]);
  gateway.send({ events: [eventOf('a', 101, 'x'), eventOf('ab', 101, undefined)] });
  await until(() => watched.events.length === 2);
  expect(watched).toMatchObject({
    events: [
      { key: 'a', value: Buffer.from('x'), revision: 101 },
      { key: 'ab', value: undefined, revision: 101 },
    ],
    heartbeats: expect.arrayContaining([AT]),
    losses: [],
    ends: [],
  });
  watched.close();
  gateway.send({ events: [eventOf('a', 102, 'y')] });
  gateway.cut();
  await new Promise((resolve) => setImmediate(resolve));
  expect([watched.events.length, watched.losses, gateway.watches.length]).toEqual([2, [], 1]);
});

describe('bytes', () => {
  const values = [Buffer.from('one'), Buffer.alloc(20_000, 7), Buffer.from([0, 10, 13, 255])] as const;
  const stream = Buffer.from(
    [
      line({ created: true }),
      line({ events: [eventOf('a/1', 101, 'one')] }),
      line({ events: [eventOf('a/2', 102, values[1].toString()), eventOf('a/3', 102, 'three')] }),
      line({ events: [eventOf('a/1', 103, undefined)] }),
    ].join(''),
  );
  const expected = [
    { key: 'a/1', value: Buffer.from('one'), revision: 101 },
    { key: 'a/2', value: Buffer.alloc(20_000, 7), revision: 102 },
    { key: 'a/3', value: Buffer.from('three'), revision: 102 },
    { key: 'a/1', value: undefined, revision: 103 },
  ];

  test('in any parts are reported alike, all of a revision at once', async () => {
    const gateway = await startGateway();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(stream.length), { maxLength: 12 }), async (cuts) => {
        const ends = [...cuts, 0, stream.length].sort((one, other) => one - other);
        gateway.onWatch = async (response) => {
          for (const [index, end] of ends.slice(1).entries()) {
            response.write(stream.subarray(ends[index], end));
            await new Promise((resolve) => setImmediate(resolve));
          }
        };
        const engine = openEngine([gateway.url]);
        const watched = await watchAll(engine, 'a/', { from: 101, since: AT });
        await until(() => watched.events.length === 4);
        watched.close();
        expect(watched.events).toEqual(expected);
        for (const batch of watched.batches)
          expect(batch.filter(({ revision }) => revision === 102)).not.toHaveLength(1);
      }),
      { numRuns: 15 },
    );
  });

  test('that are cut in the middle of a line continue after the last revision that was reported', async () => {
    const gateway = await startGateway();
    const half = stream.indexOf('\n', stream.indexOf('\n') + 1) + 5000;
    gateway.onWatch = (response, count) => response.write(count > 1 ? stream : stream.subarray(0, half));
    const watched = await watchAll(openEngine([gateway.url]), 'a/', { from: 101, since: AT });
    await until(() => watched.events.length === 1);
    gateway.cut();
    await until(() => watched.events.at(-1)?.revision === 103);
    expect([begins(gateway), watched.losses]).toEqual([['101', '102'], ['unavailable']]);
  });

  test('of a revision in several messages are reported at once', async () => {
    const { gateway, watched } = await startWatch();
    await until(() => watched.heartbeats.length > 0);
    gateway.send({ fragment: true, events: [eventOf('a/1', 101, '1'), eventOf('a/2', 102, '2')] });
    await until(() => watched.events.length === 1);
    gateway.send({ fragment: true, events: [eventOf('a/3', 102, '3')] });
    gateway.send({ events: [eventOf('a/4', 102, '4'), eventOf('a/5', 103, '5')] });
    await until(() => watched.events.length === 5);
    expect(watched.batches.flat().map(({ key }) => key)).toEqual(['a/1', 'a/2', 'a/3', 'a/4', 'a/5']);
    for (const batch of watched.batches)
      expect([0, 3]).toContain(batch.filter(({ revision }) => revision === 102).length);
  });
});

test.each<[what: string, begin: (response: ServerResponse) => unknown, kind?: string]>([
  ['never begins', (response) => response.flushHeaders()],
  ['answers garbage', (response) => response.write('hello\n'), 'refused'],
  ['answers an error', (response) => response.write('{"error":{"grpc_code":14,"message":"stopped"}}\n')],
  ['cancels it', (response) => response.write(line({ canceled: true, cancel_reason: 'stopped' }))],
  ['refuses it', (response) => response.writeHead(503).end('{"code":14,"message":"etcdserver: no leader"}')],
  ['ends it', (response) => response.end(line({ created: true }))],
])('goes to the next server from one that %s', async (_what, begin, kind = 'unavailable') => {
  const [odd, other] = [await startGateway(), await startGateway()];
  odd.onWatch = begin;
  const engine = openEngine([odd.url, other.url], { pace: PACE });
  const watched = await watchAll(engine, 'a', { from: 101, since: AT });
  await until(() => watched.heartbeats.length > 1);
  other.send({ events: [eventOf('a', 101, 'x')] });
  await until(() => watched.events.length === 1);
  expect([watched.losses, odd.watches.length]).toEqual([[kind], 1]);
});

test.each<[what: string, now: Partial<typeof header>]>([
  ['another cluster', { cluster_id: '50' }],
  ['an earlier term', { raft_term: '1' }],
  ['an earlier revision', { revision: '99' }],
])('ends where the servers have %s than before', async (_what, now) => {
  const { gateway, engine, watched } = await startWatch();
  await until(() => watched.heartbeats.length > 0);
  gateway.header = { ...header, ...now };
  await until(() => watched.ends.length === 1);
  expect(watched.ends).toEqual(['restored']);
  const again = await watchAll(engine, 'a', { from: 100 });
  await until(() => again.heartbeats.length > 0);
  expect([again.ends, watched.losses]).toEqual([[], []]);
});

test('ends where the servers are not as far as what was reported', async () => {
  const { gateway, watched } = await startWatch();
  gateway.header = { ...header, revision: '105' };
  await until(() => watched.heartbeats.some(({ revision }) => revision === 105));
  gateway.send({ events: [eventOf('a', 110, 'x')] });
  await until(() => watched.ends.length === 1);
  expect(watched.ends).toEqual(['restored']);
});

test('ends where what should follow is compacted', async () => {
  const gateway = await startGateway();
  gateway.onWatch = (response) => response.write(line({ canceled: true, compact_revision: '200' }));
  const watched = await watchAll(openEngine([gateway.url]), 'a', { from: 101, since: AT });
  await until(() => watched.ends.length === 1);
  expect(watched).toMatchObject({ ends: ['compacted'], losses: [], events: [] });
});

test('continues after the revision up to which nothing happened', async () => {
  const { gateway, watched } = await startWatch();
  await until(() => watched.heartbeats.length > 0);
  gateway.header = { ...header, revision: '150' };
  gateway.send({});
  await until(() => watched.heartbeats.at(-1)?.revision === 150);
  gateway.cut();
  await until(() => gateway.watches.length === 2);
  expect(begins(gateway)).toEqual(['101', '151']);
});

test('waits until changes are taken, and reports those again that were not', async () => {
  const taken: (() => void)[] = [];
  let fails = true;
  const { gateway, watched } = await startWatch(undefined, async () => {
    if (fails) throw new Error('disk full');
    await new Promise<void>((resolve) => taken.push(resolve));
  });
  gateway.onWatch = (response) =>
    response.write(line({ created: true }) + line({ events: [eventOf('a', 101, 'x')] }));
  gateway.send({ events: [eventOf('a', 101, 'x')] });
  await until(() => watched.losses.length > 0);
  fails = false;
  await until(() => taken.length === 1);
  const before = watched.batches.length;
  for (const revision of [102, 103]) gateway.send({ events: [eventOf('a', revision, 'y')] });
  const heartbeats = watched.heartbeats.length;
  await until(() => watched.heartbeats.length > heartbeats + 1);
  expect(watched.batches).toHaveLength(before);
  await until(() => {
    for (const done of taken) done();
    return watched.events.at(-1)?.revision === 103;
  });
  const revisions = watched.batches.slice(before - 1).flat();
  expect(revisions.map(({ revision }) => revision)).toEqual([101, 102, 103]);
});

test('many share a heartbeat, and it goes to one server while that has a majority', async () => {
  const gateway = await startGateway();
  const engine = openEngine([gateway.url], { pace: { heartbeatMs: 200 } });
  const all = await Promise.all(
    Array.from({ length: 30 }, (_, index) => watchAll(engine, `${index}/`, { from: 101, since: AT })),
  );
  await until(() => all.every(({ heartbeats }) => heartbeats.length > 0));
  const opened = gateway.asked.length;
  await until(() => all.every(({ heartbeats }) => heartbeats.length > 3));
  // Each asked once when it opened; since then they share one in 100 ms.
  expect(gateway.asked.length - opened).toBeLessThan(30);
});

test('stays while its server waits for an election, and is lost when that takes too long', async () => {
  let leaderless = 0;
  const answer = (): Answer | undefined => {
    if (leaderless === 0) return undefined;
    leaderless -= 1;
    return NO_LEADER;
  };
  const { gateway, watched } = await startWatch(answer);
  await until(() => watched.heartbeats.length > 0);
  leaderless = 6;
  await until(() => leaderless === 0);
  const heartbeats = watched.heartbeats.length;
  await until(() => watched.heartbeats.length > heartbeats);
  expect([watched.losses, gateway.watches.length]).toEqual([[], 1]);
  leaderless = 7;
  await until(() => gateway.watches.length === 2);
  expect(watched.losses).toEqual(['unavailable']);
});

test('is denied without the right, also after a loss, and begins when that is given', async () => {
  const gateway = await startGateway();
  const denied = { canceled: true, cancel_reason: 'etcdserver: permission denied' };
  gateway.onWatch = (response, count) =>
    count === 1 ? response.end() : response.write(line(count < 4 ? denied : { created: true }));
  const engine = openEngine([gateway.url], { pace: PACE });
  const watched = await watchAll(engine, 'a', { from: 101, since: AT });
  await until(() => watched.heartbeats.length > 0);
  expect([watched.losses, watched.ends, gateway.watches.length]).toEqual([['unavailable', 'denied'], [], 4]);
});

test('signs in again when its token is refused, and is not lost by that', async () => {
  let signIns = 0;
  const gateway = await startGateway(({ path }) => {
    if (path !== '/v3/auth/authenticate') return undefined;
    signIns += 1;
    return { token: `token-${signIns}` };
  });
  const refused = { canceled: true, cancel_reason: 'etcdserver: invalid auth token' };
  gateway.onWatch = (response, count) => response.write(line(count < 2 ? refused : { created: true }));
  const user = () => ({ name: 'site', password: 'a password' });
  // A busy machine needs more than a tenth of a second now and then, which would be a loss.
  const engine = openEngine([gateway.url], { pace: { ...PACE, attemptMs: 5000 }, user });
  const watched = await watchAll(engine, 'a', { from: 101, since: AT });
  await until(() => watched.heartbeats.length > 0);
  expect([watched.losses, signIns]).toEqual([[], 2]);
});
