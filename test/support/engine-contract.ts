import { randomBytes, randomUUID } from 'node:crypto';
import type {
  Engine,
  Lease,
  Moment,
  StoredValue,
  WatchEnd,
  WatchedEvent,
} from '../../src/sidecar/fleet/engine/engine';
import { createEtcd, type EtcdOptions } from '../../src/sidecar/fleet/engine/etcd';
import { recordedLog } from './recorded-log';
import { until } from './until';

/** Servers of etcd, or what stands in for them. */
export interface EngineServers {
  readonly urls: readonly string[];
  /** Ends a server without warning, and starts it again under its address. */
  stop(index: number): Promise<void> | void;
  start(index: number): Promise<void> | void;
  /** Has a server take connections and say nothing. */
  hang(index: number): Promise<void> | void;
  resume(index: number): Promise<void> | void;
  /** Forgets the revisions before one. */
  compact(revision: number): Promise<void> | void;
}

const engines = new Set<Engine>();

afterEach(() => {
  for (const engine of engines) engine.close();
  engines.clear();
});

/** Opens an engine, which is closed after the test. */
export function openEngine(urls: readonly string[], options: Partial<EtcdOptions> = {}): Engine {
  const engine = createEtcd({
    urls,
    timeoutMs: 5000,
    log: recordedLog().log,
    now: () => performance.now(),
    clock: () => new Date(),
    ...options,
  });
  engines.add(engine);
  return engine;
}

/** Sets a key whatever it holds, and answers the revision. */
export async function put(
  engine: Engine,
  key: string,
  value: Buffer | string | undefined,
  lease?: Lease,
): Promise<number> {
  for (;;) {
    const expected = (await engine.read([key])).values[0]?.revision ?? 0;
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    const done = await engine.change([{ key, expected, value: bytes, ...(lease && { lease }) }]);
    const [answer] = done?.answers ?? [];
    if (answer?.made) return answer.revision;
  }
}

/** A beginning of keys that no other test has. */
export const newPrefix = () => `${randomUUID()}/`;

/** What a watch told. */
export interface Told {
  readonly events: WatchedEvent[];
  readonly batches: (readonly WatchedEvent[])[];
  readonly heartbeats: Moment[];
  readonly losses: string[];
  readonly ends: WatchEnd[];
}

/** Watches all keys with a beginning, and keeps what is told. */
export async function watchAll(
  engine: Engine,
  prefix: string,
  { from, since, take }: { from: number; since?: Moment; take?: () => Promise<void> },
): Promise<Told & { close(): void }> {
  const told: Told = { events: [], batches: [], heartbeats: [], losses: [], ends: [] };
  const watch = engine.watch(
    { prefix },
    {
      from,
      since: since ?? (await engine.read([prefix])).at,
      onEvents: async (events) => {
        told.batches.push(events);
        told.events.push(...events);
        await take?.();
      },
      onHeartbeat: (at) => told.heartbeats.push(at),
      onLost: ({ kind }) => told.losses.push(kind),
      onEnd: (end) => told.ends.push(end),
    },
  );
  return { ...told, close: () => watch.close() };
}

const textOf = (value: Buffer | undefined) => value?.toString();
const plain = (events: readonly WatchedEvent[]) => events.map(({ key, value }) => [key, textOf(value)]);
const entries = (values: readonly (StoredValue | undefined)[]) =>
  values.map((each) => each && [each.key, each.value.toString(), each.revision]);

/** What the fleet relies on, whatever the servers are. */
export function engineContract(startServers: (count: number) => Promise<EngineServers>): void {
  const one = async () => openEngine((await startServers(1)).urls);

  describe('keys', () => {
    test('reads what keys hold in the order that they were asked in, undefined for those that are absent', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const names = Array.from({ length: 150 }, (_, index) => `${prefix}${index}`);
      const odd = await put(engine, `${prefix}7`, Buffer.from([0, 255, 10, 128]));
      const even = await put(engine, `${prefix}140`, Buffer.alloc(0));
      const { at, values } = await engine.read(names);
      expect(at).toEqual({
        revision: even,
        cluster: expect.stringMatching(/^\d+$/),
        term: expect.any(Number),
      });
      expect(values).toHaveLength(150);
      expect(values.filter((value) => value !== undefined)).toEqual([
        { key: `${prefix}7`, value: Buffer.from([0, 255, 10, 128]), revision: odd },
        { key: `${prefix}140`, value: Buffer.alloc(0), revision: even },
      ]);
      expect(values[7]?.revision).toBe(odd);
    });

    test('lists a range as a whole, by pages, as it was, and without the values', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const names = Array.from({ length: 1203 }, (_, index) => `${prefix}${String(index).padStart(5, '0')}`);
      for (let from = 0; from < names.length; from += 64) {
        const changes = names
          .slice(from, from + 64)
          .map((key) => ({ key, expected: 0, value: Buffer.from(key) }));
        await engine.change(changes);
      }
      await put(engine, `${prefix.slice(0, -1)}0`, Buffer.from('behind the range'));
      const before = (await engine.read([])).at.revision;
      await put(engine, `${prefix}00003`, undefined);

      const whole = await engine.list({ prefix }, { limit: 2000 });
      expect([whole.more, whole.count]).toEqual([false, 1202]);
      expect(whole.values.map(({ key }) => key)).toEqual(names.filter((_, index) => index !== 3));
      expect(whole.values.every(({ key, value }) => value.toString() === key)).toBe(true);

      const page = await engine.list({ prefix, after: `${prefix}00001` }, { limit: 2 });
      expect([page.more, page.count]).toEqual([true, 1200]);
      expect(page.values.map(({ key }) => key)).toEqual([`${prefix}00002`, `${prefix}00004`]);

      const former = await engine.list({ prefix }, { limit: 4, revision: before, keysOnly: true });
      expect(former.values.map(({ key, value }) => [key, value.length])).toEqual(
        names.slice(0, 4).map((key) => [key, 0]),
      );

      const last = await engine.list({ prefix, after: names.at(-1) }, { limit: 9 });
      expect([last.values, last.more, last.count]).toEqual([[], false, 0]);
    });

    test('keys of any bytes come back as they are, in the order of their bytes', async () => {
      const engine = await one();
      const prefix = `${newPrefix()}\xff`;
      const names = [`${prefix}\0`, `${prefix}\n"\\`, `${prefix}\x80`, `${prefix}\xff\xff`];
      for (const name of names.toReversed()) await put(engine, name, Buffer.from('x'));
      const { values } = await engine.list({ prefix }, { limit: 2000 });
      expect(values.map(({ key }) => key)).toEqual(names);
      expect(
        (await engine.list({ prefix, after: names[1] }, { limit: 9 })).values.map(({ key }) => key),
      ).toEqual(names.slice(2));
      await expect(engine.read(['€'])).rejects.toThrow(RangeError);
    });
  });

  describe('changes', () => {
    test('are made where the key has the revision that is expected, all in one revision, and tell what stands elsewhere', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => `${prefix}${name}`) as [
        string,
        string,
        string,
        string,
      ];
      const first = await put(engine, a, Buffer.from('a1'));
      const second = await put(engine, b, Buffer.from('b1'));
      const done = await engine.change([
        { key: a, expected: first, value: Buffer.from('a2') },
        { key: b, expected: first, value: Buffer.from('b2') },
        { key: c, expected: 0, value: Buffer.from('c1') },
        { key: d, expected: second, value: undefined },
      ]);
      const revision = second + 1;
      expect(done).toEqual({
        at: expect.objectContaining({ revision }),
        answers: [
          { made: true, revision },
          { made: false, present: { key: b, value: Buffer.from('b1'), revision: second } },
          { made: true, revision },
          { made: false, present: undefined },
        ],
      });
      expect(await engine.change([{ key: b, expected: second, value: undefined }])).toMatchObject({
        answers: [{ made: true, revision: revision + 1 }],
      });
      expect(entries((await engine.read([a, b, c, d])).values)).toEqual([
        [a, 'a2', revision],
        undefined,
        [c, 'c1', revision],
        undefined,
      ]);
    });

    test('are not made at all when the guard has another revision', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const guard = `${prefix}guard`;
      const change = [{ key: `${prefix}a`, expected: 0, value: Buffer.from('x') }];
      expect(await engine.change(change, { key: guard, revision: 3 })).toBeUndefined();
      const revision = await put(engine, guard, Buffer.from('g'));
      expect(await engine.change(change, { key: guard, revision: 0 })).toBeUndefined();
      expect((await engine.read([`${prefix}a`])).values).toEqual([undefined]);
      expect(await engine.change(change, { key: guard, revision })).toMatchObject({
        answers: [{ made: true }],
      });
    });

    test('of many at once have one winner each', async () => {
      const engine = await one();
      const key = newPrefix();
      let expected = 0;
      for (let round = 0; round < 25; round++) {
        const tries = Array.from({ length: 8 }, (_, index) =>
          engine.change([{ key, expected, value: Buffer.from(`${round} ${index}`) }]),
        );
        const answers = (await Promise.all(tries)).flatMap((each) => each?.answers ?? []);
        const winners = answers.filter(({ made }) => made);
        expect(winners).toHaveLength(1);
        expected = (await engine.read([key])).values[0]?.revision ?? 0;
      }
    });

    test('of 64 keys fit, and of more, or of one key twice, are the fault of who calls', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const changes = Array.from({ length: 65 }, (_, index) => ({
        key: `${prefix}${index}`,
        expected: 0,
        value: randomBytes(2500),
      }));
      const [first] = changes;
      await expect(engine.change(changes)).rejects.toThrow(RangeError);
      await expect(engine.change(first ? [first, first] : [])).rejects.toThrow(RangeError);
      const done = await engine.change(changes.slice(0, 64), { key: `${prefix}guard`, revision: 0 });
      expect(done?.answers.every(({ made }) => made)).toBe(true);
    });
  });

  describe('leases', () => {
    test('take their keys with them', async () => {
      const engine = await one();
      const key = newPrefix();
      const lease = await engine.grant(30);
      await put(engine, key, Buffer.from('x'), lease);
      expect(await engine.keepAlive(lease)).toBe(true);
      await engine.revoke(lease);
      await engine.revoke(lease);
      expect((await engine.read([key])).values).toEqual([undefined]);
      expect(await engine.keepAlive(lease)).toBe(false);
      await expect(put(engine, key, Buffer.from('x'), lease)).rejects.toMatchObject({ kind: 'refused' });
    });
  });

  describe('what is asked of the engine itself', () => {
    test('a revision is remembered until it is compacted, and what is asked of one before is refused as that', async () => {
      const servers = await startServers(1);
      const engine = openEngine(servers.urls);
      const prefix = newPrefix();
      const first = await put(engine, prefix, Buffer.from('1'));
      const second = await put(engine, prefix, Buffer.from('2'));
      expect(await engine.remembers(first)).toBe(true);
      await servers.compact(second);
      expect([await engine.remembers(first), await engine.remembers(second)]).toEqual([false, true]);
      await expect(engine.list({ prefix }, { revision: first, limit: 1 })).rejects.toMatchObject({
        kind: 'compacted',
      });
    });

    test('tells of each server, and how far the clock here is from theirs', async () => {
      const engine = openEngine([...(await startServers(1)).urls, 'http://127.0.0.1:9']);
      expect(engine.clockAhead()).toBeUndefined();
      expect(await engine.servers()).toEqual([
        {
          url: expect.stringMatching(/^http:/),
          version: expect.stringMatching(/^3\.\d+\.\d+/),
          isLeader: true,
          size: expect.any(Number),
          sizeInUse: expect.any(Number),
          quota: 2147483648,
          alarms: [],
        },
        { url: 'http://127.0.0.1:9', fault: 'nothing listens there' },
      ]);
      expect(Math.abs(engine.clockAhead() ?? Number.NaN)).toBeLessThan(1500);
    });
  });

  describe('watches', () => {
    test('tell of each change of the range from a revision on, in order and all of a revision at once', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const large = randomBytes(100_000);
      await put(engine, `${prefix}old`, Buffer.from('before'));
      const from = await put(engine, `${prefix}a`, Buffer.from('1'));
      await put(engine, `${prefix}a`, undefined);
      await put(engine, `${prefix.slice(0, -1)}0`, Buffer.from('behind the range'));
      const told = await watchAll(engine, prefix, { from });
      await until(() => told.events.length === 2);
      const two = ['b', 'c'].map((name) => ({ key: `${prefix}${name}`, expected: 0, value: large }));
      const revision = (await engine.change(two))?.at.revision;
      await until(() => told.events.length === 4);
      expect(told.events).toEqual([
        { key: `${prefix}a`, value: Buffer.from('1'), revision: from },
        { key: `${prefix}a`, value: undefined, revision: from + 1 },
        { key: `${prefix}b`, value: large, revision },
        { key: `${prefix}c`, value: large, revision },
      ]);
      expect(told.batches.at(-1)).toHaveLength(2);
      expect([told.losses, told.ends]).toEqual([[], []]);
      expect(told.heartbeats.length).toBeGreaterThan(0);
    });

    test('wait until changes are taken, and tell those again that were not', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const from = await put(engine, `${prefix}0`, Buffer.from('0'));
      let go: (() => void) | undefined;
      let fails = true;
      const told = await watchAll(engine, prefix, {
        from,
        take: async () => {
          if (fails) throw new Error('disk full');
          await new Promise<void>((resolve) => {
            go = resolve;
          });
        },
      });
      await until(() => told.losses.length === 1);
      fails = false;
      await until(() => go !== undefined);
      const batches = told.batches.length;
      for (let index = 1; index <= 20; index++) await put(engine, `${prefix}${index}`, randomBytes(2500));
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(told.batches).toHaveLength(batches);
      const again = () => {
        go?.();
        return told.events.at(-1)?.key === `${prefix}20`;
      };
      await until(again);
      const keys = told.batches.slice(batches - 1).flatMap((batch) => batch.map(({ key }) => key));
      expect(keys).toEqual(Array.from({ length: 21 }, (_, index) => `${prefix}${index}`));
    });

    test('end when the changes from where they should go on are compacted', async () => {
      const servers = await startServers(1);
      const engine = openEngine(servers.urls);
      const prefix = newPrefix();
      const from = await put(engine, prefix, Buffer.from('1'));
      await put(engine, prefix, Buffer.from('2'));
      await servers.compact(await put(engine, prefix, Buffer.from('3')));
      const told = await watchAll(engine, prefix, { from });
      await until(() => told.ends.length > 0);
      expect(told).toMatchObject({ ends: [{ kind: 'compacted' }], events: [], losses: [] });
    });

    test('tell nothing after they were closed', async () => {
      const engine = await one();
      const prefix = newPrefix();
      const from = await put(engine, `${prefix}0`, Buffer.from('0'));
      const told = await watchAll(engine, prefix, { from });
      await until(() => told.events.length === 1);
      told.close();
      await put(engine, `${prefix}1`, Buffer.from('1'));
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect([told.events.length, told.losses, told.ends]).toEqual([1, [], []]);
    });
  });

  describe('the loss of a server', () => {
    test('is passed over by calls and watches, and nothing is lost or told twice', async () => {
      const servers = await startServers(3);
      const engine = openEngine(servers.urls);
      const prefix = newPrefix();
      const from = (await engine.read([prefix])).at.revision + 1;
      const told = await watchAll(engine, prefix, { from });
      await until(() => told.heartbeats.length > 0);
      let expected = 0;
      const write = async (text: string) => {
        const done = await engine.change([{ key: prefix, expected, value: Buffer.from(text) }]);
        const [answer] = done?.answers ?? [];
        // One whose answer was lost is known by its value.
        expect(answer?.made || answer?.present?.value.toString() === text).toBe(true);
        expected = (answer?.made ? answer.revision : answer?.present?.revision) ?? 0;
      };
      for (let index = 0; index < 5; index++) await write(`before ${index}`);
      await servers.stop(0);
      for (let index = 0; index < 5; index++) await write(`after ${index}`);
      await until(() => told.events.length >= 10);
      await servers.start(0);
      expect(plain(told.events).map(([, value]) => value)).toEqual(
        ['before', 'after'].flatMap((when) => [0, 1, 2, 3, 4].map((index) => `${when} ${index}`)),
      );
      expect(told.losses).toEqual(['unavailable']);
    });

    test('that takes connections and says nothing costs calls two seconds and watches five', async () => {
      const servers = await startServers(3);
      const engine = openEngine(servers.urls);
      const prefix = newPrefix();
      const from = (await engine.read([prefix])).at.revision + 1;
      const told = await watchAll(engine, prefix, { from });
      await until(() => told.heartbeats.length > 0);
      await servers.hang(0);
      const began = performance.now();
      const writer = openEngine(servers.urls.slice(1));
      await put(writer, prefix, Buffer.from('1'));
      await engine.read([prefix]);
      const read = performance.now() - began;
      await until(() => told.events.length > 0);
      const heard = performance.now() - began;
      await servers.resume(0);
      expect(plain(told.events)).toEqual([[prefix, '1']]);
      expect(told.losses).toEqual(['unavailable']);
      expect(read).toBeLessThan(2500);
      expect(heard).toBeLessThan(5500);
    });

    test('of all is unavailable to reads, and to changes that were never sent', async () => {
      const servers = await startServers(1);
      const engine = openEngine(servers.urls, { timeoutMs: 600 });
      await put(engine, newPrefix(), Buffer.from('1'));
      await servers.stop(0);
      await expect(engine.read(['a'])).rejects.toMatchObject({ kind: 'unavailable' });
      await expect(engine.change([{ key: 'a', expected: 0, value: undefined }])).rejects.toMatchObject({
        kind: 'unavailable',
      });
      expect(await engine.servers()).toEqual([{ url: servers.urls[0], fault: 'nothing listens there' }]);
      await servers.start(0);
      await until(async () => (await engine.servers()).every(({ fault }) => fault === undefined));
      expect((await engine.read(['a'])).values).toEqual([undefined]);
    });
  });
}
