import { randomBytes, randomUUID } from 'node:crypto';
import type { Engine, Lease } from '../../src/sidecar/fleet/engine/engine';
import { type EtcdCluster, startEtcdCluster } from '../support/etcd-cluster';
import { openEngine, watchAll } from '../support/etcd-gateway';
import { until } from '../support/until';

let single: EtcdCluster;

beforeAll(async () => {
  single = await startEtcdCluster({ kept: true, servers: 1 });
});

const one = () => openEngine(single.urls);
/** A prefix of keys that no other test has. */
const newPrefix = () => `${randomUUID()}/`;
const bytes = (text: string) => Buffer.from(text);

/** Sets a key without a condition, and returns the revision. */
async function put(engine: Engine, key: string, value: Buffer | undefined, lease?: Lease): Promise<number> {
  for (;;) {
    const expected = (await engine.read([key])).values[0]?.revision ?? 0;
    const done = await engine.change([{ key, expected, value, ...(lease && { lease }) }]);
    const [answer] = done ?? [];
    if (answer?.made) return answer.revision;
  }
}

test('keys of any bytes are read and listed as they are, in the order of their bytes', async () => {
  const engine = one();
  const prefix = newPrefix();
  const names = [`${prefix}\0`, `${prefix}\n"\\`, `${prefix}\x80`, `${prefix}\xff\xff`];
  for (const [index, name] of names.toReversed().entries()) await put(engine, name, Buffer.from([0, index]));
  const { at, values } = await engine.list({ prefix }, { limit: 2000 });
  expect(values.map(({ key, value }) => [key, value[1]])).toEqual(names.map((name, i) => [name, 3 - i]));
  expect(at).toEqual({
    revision: values[0]?.revision,
    cluster: expect.stringMatching(/^\d+$/),
    term: expect.any(Number),
  });
  const [, , third, fourth] = names;
  const after = await engine.list({ prefix, after: names[1] }, { limit: 9 });
  expect(after.values.map(({ key }) => key)).toEqual([third, fourth]);
  expect((await engine.read(['none', third ?? ''])).values).toEqual([undefined, values[2]]);
});

test('a range that was set by 64 changes of 2.5 KB at a time is listed as a whole, by pages, and as it was', async () => {
  const engine = one();
  const prefix = newPrefix();
  const names = Array.from({ length: 203 }, (_, index) => `${prefix}${String(index).padStart(5, '0')}`);
  for (let from = 0; from < names.length; from += 64)
    await engine.change(
      names.slice(from, from + 64).map((key) => ({ key, expected: 0, value: bytes(key.padEnd(2500)) })),
    );
  const before = await put(engine, `${prefix.slice(0, -1)}0`, bytes('behind the range'));
  await put(engine, `${prefix}00003`, undefined);

  const whole = await engine.list({ prefix }, { limit: 2000 });
  expect([whole.more, whole.count]).toEqual([false, 202]);
  expect(whole.values.map(({ key }) => key)).toEqual(names.filter((_, index) => index !== 3));
  expect(whole.values.every(({ key, value }) => value.toString() === key.padEnd(2500))).toBe(true);
  const page = await engine.list({ prefix, after: `${prefix}00001` }, { limit: 2 });
  expect([page.more, page.count]).toEqual([true, 200]);
  expect(page.values.map(({ key }) => key)).toEqual([`${prefix}00002`, `${prefix}00004`]);
  const former = await engine.list({ prefix }, { limit: 4, revision: before });
  expect(former.values.map(({ key }) => key)).toEqual(names.slice(0, 4));
});

test('changes are made where the key has the revision that is expected, all in one revision', async () => {
  const engine = one();
  const prefix = newPrefix();
  const [a = '', b = '', c = '', d = '', guard = ''] = ['a', 'b', 'c', 'd', 'guard'].map((x) => prefix + x);
  const first = await put(engine, a, bytes('a1'));
  const second = await put(engine, b, bytes('b1'));
  const changes = [
    { key: a, expected: first, value: bytes('a2') },
    { key: b, expected: first, value: bytes('b2') },
    { key: c, expected: 0, value: bytes('c1') },
    { key: d, expected: second, value: undefined },
  ];
  expect(await engine.change(changes, { key: guard, revision: 3 })).toBeUndefined();
  const revision = second + 1;
  expect(await engine.change(changes, { key: guard, revision: 0 })).toEqual([
    { made: true, revision },
    { made: false, present: { key: b, value: bytes('b1'), revision: second } },
    { made: true, revision },
    { made: false, present: undefined },
  ]);
  const { values } = await engine.read([a, b, c, d]);
  expect(values.map((each) => each && [each.value.toString(), each.revision])).toEqual([
    ['a2', revision],
    ['b1', second],
    ['c1', revision],
    undefined,
  ]);
});

test('of many changes of one key at once one is made', async () => {
  const engine = one();
  const key = newPrefix();
  let expected = 0;
  for (let round = 0; round < 25; round++) {
    const tries = Array.from({ length: 8 }, (_, index) =>
      engine.change([{ key, expected, value: bytes(`${round} ${index}`) }]),
    );
    const answers = (await Promise.all(tries)).flatMap((each) => each ?? []);
    expect(answers.filter(({ made }) => made)).toHaveLength(1);
    expected = (await engine.read([key])).values[0]?.revision ?? 0;
  }
});

test('a lease takes its keys with it', async () => {
  const engine = one();
  const key = newPrefix();
  const lease = await engine.grant(30);
  await put(engine, key, bytes('x'), lease);
  expect(await engine.keepAlive(lease)).toBe(true);
  await engine.revoke(lease);
  expect((await engine.read([key])).values).toEqual([undefined]);
  expect(await engine.keepAlive(lease)).toBe(false);
  await expect(put(engine, key, bytes('x'), lease)).rejects.toMatchObject({ kind: 'refused' });
});

test('a revision is remembered until it is compacted; then lists and watches from it end', async () => {
  const engine = one();
  const prefix = newPrefix();
  const first = await put(engine, prefix, bytes('1'));
  const second = await put(engine, prefix, bytes('2'));
  expect(await engine.hasRevision(first)).toBe(true);
  await single.compact();
  expect([await engine.hasRevision(first), await engine.hasRevision(second)]).toEqual([false, true]);
  await expect(engine.list({ prefix }, { revision: first, limit: 1 })).rejects.toMatchObject({
    kind: 'compacted',
  });
  const watched = await watchAll(engine, prefix, { from: first });
  await until(() => watched.ends.length > 0);
  expect(watched).toMatchObject({ ends: ['compacted'], events: [], losses: [] });
});

test('a watch reports each change of the range from a revision on, in order and all of a revision at once', async () => {
  const engine = one();
  const prefix = newPrefix();
  const large = randomBytes(100_000);
  await put(engine, `${prefix}old`, bytes('before'));
  const from = await put(engine, `${prefix}a`, bytes('1'));
  await put(engine, `${prefix}a`, undefined);
  await put(engine, `${prefix.slice(0, -1)}0`, bytes('behind the range'));
  const watched = await watchAll(engine, prefix, { from });
  await until(() => watched.events.length === 2);
  const two = ['b', 'c'].map((name) => ({ key: `${prefix}${name}`, expected: 0, value: large }));
  const [made] = (await engine.change(two)) ?? [];
  const revision = made?.made && made.revision;
  await until(() => watched.events.length === 4);
  expect(watched.events).toEqual([
    { key: `${prefix}a`, value: bytes('1'), revision: from },
    { key: `${prefix}a`, value: undefined, revision: from + 1 },
    { key: `${prefix}b`, value: large, revision },
    { key: `${prefix}c`, value: large, revision },
  ]);
  expect(watched.batches.at(-1)).toHaveLength(2);
  expect([watched.losses, watched.ends, watched.heartbeats.length > 0]).toEqual([[], [], true]);
});

describe('of three servers', () => {
  let etcd: EtcdCluster;

  beforeAll(async () => {
    etcd = await startEtcdCluster({ kept: true });
  });

  test.each<[loss: string, lose: () => unknown, mend: () => unknown]>([
    ['is killed', () => etcd.kill(0), () => etcd.restart(0)],
    ['takes connections and says nothing', () => etcd.pause(0), () => etcd.resume(0)],
  ])(
    'one that %s is passed over by calls and watches, and nothing is lost or reported twice',
    async (...row) => {
      const [, lose, mend] = row;
      const engine = openEngine(etcd.urls);
      const key = newPrefix();
      const from = (await engine.read([key])).at.revision + 1;
      const watched = await watchAll(engine, key, { from });
      await until(() => watched.heartbeats.length > 0);
      let expected = 0;
      const write = async (text: string) => {
        const done = await engine.change([{ key, expected, value: bytes(text) }]);
        const [answer] = done ?? [];
        // One whose answer was lost is known by its value.
        expect(answer?.made || answer?.present?.value.toString() === text).toBe(true);
        expected = (answer?.made ? answer.revision : answer?.present?.revision) ?? 0;
      };
      for (let index = 0; index < 5; index++) await write(`${index}`);
      await lose();
      for (let index = 5; index < 10; index++) await write(`${index}`);
      await until(() => watched.events.length >= 10);
      await mend();
      expect(watched.events.map(({ value }) => value?.toString()).join('')).toBe('0123456789');
      expect(watched.losses).toEqual(['unavailable']);
    },
  );

  test('a watch continues after the majority was away, and changes are refused meanwhile', async () => {
    const engine = openEngine(etcd.urls, { timeoutMs: 1000 });
    const key = newPrefix();
    const from = (await engine.read([key])).at.revision + 1;
    const watched = await watchAll(engine, key, { from });
    await until(() => watched.heartbeats.length > 0);
    await Promise.all([etcd.kill(1), etcd.kill(2)]);
    await until(() => watched.losses.length > 0);
    await expect(engine.read([key])).rejects.toMatchObject({ kind: 'unavailable' });
    await etcd.startAll();
    await put(engine, key, bytes('x'));
    await until(() => watched.events.length > 0);
    expect([watched.losses, watched.ends]).toEqual([['unavailable'], []]);
  });
});
