import { newPrefix, openEngine, put, watchAll } from '../../../support/engine-contract';
import { startFakeEtcd } from '../../../support/fake-etcd';
import { recordedLog } from '../../../support/recorded-log';
import { until } from '../../../support/until';

const value = (text: string) => Buffer.from(text);

describe('a change whose answer is lost', () => {
  test('is repeated, and answered as not made with its own value as what is present', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    await engine.read(['a']);
    gateway.lose('answer');
    const answered = await engine.change([{ key: 'a', expected: 0, value: value('mine') }]);
    expect(answered?.answers).toEqual([
      { made: false, present: { key: 'a', value: value('mine'), revision: gateway.cluster.revision } },
    ]);
  });

  test('is made by the repetition when the request was lost', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    await engine.read(['a']);
    gateway.lose('request');
    const answered = await engine.change([{ key: 'a', expected: 0, value: value('mine') }]);
    expect(answered?.answers).toEqual([{ made: true, revision: gateway.cluster.revision }]);
  });

  test('is of unknown outcome when the repetition is refused', async () => {
    const gateway = await startFakeEtcd(2);
    const engine = openEngine(gateway.urls, { timeoutMs: 900 });
    gateway.hang(0);
    gateway.full();
    await expect(engine.change([{ key: 'a', expected: 0, value: value('x') }])).rejects.toMatchObject({
      kind: 'unknown',
      message: expect.stringContaining(gateway.urls[1] ?? ''),
    });
  });

  test('is of unknown outcome when nobody answers, while a read is unavailable', async () => {
    const gateway = await startFakeEtcd(2);
    const engine = openEngine(gateway.urls, { timeoutMs: 900 });
    gateway.hang(0);
    gateway.hang(1);
    const began = performance.now();
    const [change, read] = await Promise.allSettled([
      engine.change([{ key: 'a', expected: 0, value: value('x') }]),
      engine.read(['a']),
    ]);
    // Less than two waits, one after the other.
    expect(performance.now() - began).toBeLessThan(1750);
    expect(change).toMatchObject({ reason: { kind: 'unknown' } });
    expect(read).toMatchObject({ reason: { kind: 'unavailable' } });
  });
});

describe('what the servers refuse', () => {
  test('for want of room is told as that, and reads go on', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    gateway.full();
    await expect(put(engine, 'a', value('x'))).rejects.toMatchObject({
      kind: 'full',
      message: `${gateway.url}: etcdserver: mvcc: database space exceeded`,
    });
    expect((await engine.read(['a'])).values).toEqual([undefined]);
    expect((await engine.servers())[0]?.alarms).toEqual(['NOSPACE']);
  });

  test('for want of a majority is unavailable to changes, too: they were never begun', async () => {
    const gateway = await startFakeEtcd(3);
    const engine = openEngine(gateway.urls, { timeoutMs: 500 });
    gateway.loseQuorum();
    await expect(put(engine, 'a', value('x'))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('no leader'),
    });
  });

  test('goes to the next server where one alone has no leader', async () => {
    const gateway = await startFakeEtcd(3);
    const { log, lines } = recordedLog();
    const engine = openEngine(gateway.urls, { log });
    gateway.loseQuorum(0);
    await put(engine, 'a', value('x'));
    await put(engine, 'a', value('y'));
    expect(gateway.calls.map(({ server }) => server)).toEqual([0, 1, 1, 1, 1]);
    expect(lines).toEqual([
      [
        'warn',
        "a server of the fleet's engine does not answer",
        { server: gateway.urls[0], why: 'etcdserver: no leader' },
      ],
    ]);
  });
});

describe('users', () => {
  const users = [
    {
      name: 'site',
      password: 'a password',
      rights: [
        { prefix: 'a/', may: 'write' as const },
        { prefix: 'a/', may: 'read' as const },
      ],
    },
  ];
  const site = (password = 'a password') => ({ user: () => ({ name: 'site', password }) });

  test('sign in once for many calls, and again when their token is refused', async () => {
    const gateway = await startFakeEtcd();
    gateway.requireUsers(users);
    const engine = openEngine([gateway.url], site());
    await Promise.all([
      put(engine, 'a/1', value('x')),
      engine.read(['a/1']),
      engine.list({ prefix: 'a/' }, { limit: 9 }),
    ]);
    const told = await watchAll(engine, 'a/', { from: 2 });
    await until(() => told.events.length === 1);
    gateway.forgetTokens();
    await put(engine, 'a/2', value('y'));
    gateway.cut();
    gateway.forgetTokens();
    await put(engine, 'a/3', value('z'));
    await until(() => told.events.length === 3);
    expect(told.ends).toEqual([]);
    const signIns = gateway.calls.filter(({ path }) => path === '/v3/auth/authenticate');
    expect(signIns.length).toBeGreaterThanOrEqual(3);
    expect(signIns.length).toBeLessThanOrEqual(4);
  });

  test('without a name, with a wrong password or without the right are denied, and no message has the password', async () => {
    const gateway = await startFakeEtcd();
    gateway.requireUsers(users);
    const denied = async (action: Promise<unknown>) => {
      const thrown = await action.then(
        () => undefined,
        (caught: unknown) => caught,
      );
      expect(thrown).toMatchObject({ kind: 'denied' });
      expect(String(thrown)).not.toContain('password is wrong');
    };
    await denied(openEngine([gateway.url]).read(['a/1']));
    const wrong = openEngine([gateway.url], site('password is wrong'));
    await denied(wrong.read(['a/1']));
    await denied(put(wrong, 'a/1', value('x')));
    await denied(put(openEngine([gateway.url], site()), 'b/1', value('x')));
    const signIns = gateway.calls.filter(({ path }) => path === '/v3/auth/authenticate');
    expect(signIns).toHaveLength(2);
  });

  test('are not asked for where the engine has none, and are once it has', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url], site());
    await put(engine, 'a/1', value('x'));
    gateway.requireUsers(users);
    await put(engine, 'a/1', value('y'));
    gateway.requireUsers(undefined);
    expect(await put(engine, 'a/1', value('z'))).toBe(gateway.cluster.revision);
  });

  test('whose right is lacking for a watch are told of it, and the watch begins when they have it', async () => {
    const gateway = await startFakeEtcd();
    gateway.requireUsers([{ name: 'site', password: 'a password', rights: [] }]);
    const engine = openEngine([gateway.url], site());
    const told = await watchAll(engine, 'a/', { from: 1, since: gateway.cluster.moment });
    await until(() => told.losses.length > 0);
    gateway.requireUsers(users);
    gateway.cluster.set('a/1', 'x');
    await until(() => told.events.length > 0);
    expect([told.losses, told.ends]).toEqual([['denied'], []]);
  });
});

describe('a watch', () => {
  test('goes on where it was when the majority comes back', async () => {
    const gateway = await startFakeEtcd(3);
    const engine = openEngine(gateway.urls);
    const told = await watchAll(engine, 'a', { from: 2 });
    gateway.cluster.set('a', '1');
    await until(() => told.events.length === 1);
    gateway.loseQuorum();
    await until(() => told.losses.length === 1);
    gateway.cluster.set('a', '2');
    const heartbeats = told.heartbeats.length;
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(told.heartbeats.length).toBe(heartbeats);
    gateway.findQuorum();
    await until(() => told.events.length === 2);
    expect(told.losses).toEqual(['unavailable']);
    expect(told.heartbeats.length).toBeGreaterThan(heartbeats);
  });

  test.each(['from a backup', 'without data'])(
    'ends when the servers come back %s, and a new one can begin',
    async (how) => {
      const gateway = await startFakeEtcd();
      const engine = openEngine([gateway.url]);
      const backup = gateway.cluster.backup();
      const told = await watchAll(engine, 'a', { from: 2 });
      gateway.cluster.set('a', '1');
      await until(() => told.events.length === 1);
      if (how === 'from a backup') gateway.replace(backup);
      else gateway.replace();
      gateway.cluster.set('a', 'of another history');
      gateway.cluster.set('a', 'of another history, at a later revision');
      await until(() => told.ends.length === 1);
      expect(told.ends).toEqual([{ kind: 'restored', at: expect.objectContaining({ term: 2 }) }]);
      expect(told.events).toHaveLength(1);

      const { at } = await engine.list({ prefix: 'a' }, { limit: 9 });
      const again = await watchAll(engine, 'a', { from: at.revision + 1 });
      gateway.cluster.set('a', 'later');
      await until(() => again.events.length === 1);
      expect(again.ends).toEqual([]);
    },
  );

  test('ends at once when it goes on from what another history told', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    const { at } = await engine.read(['a']);
    const ended = (since: typeof at) =>
      new Promise((resolve) => {
        engine.watch(
          { prefix: 'a' },
          { from: 2, since, onEvents: async () => undefined, onEnd: resolve, onHeartbeat: resolve },
        );
      });
    expect(await ended(at)).toEqual(at);
    expect(await ended({ ...at, cluster: '7' })).toEqual({ kind: 'restored', at });
    expect(await ended({ ...at, term: at.term + 1 })).toEqual({ kind: 'restored', at });
    expect(await ended({ ...at, revision: at.revision + 1 })).toEqual({ kind: 'restored', at });
  });

  test('of which there are many share one question every two seconds', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    const told = await Promise.all(
      Array.from({ length: 30 }, (_, index) => watchAll(engine, `${index}/`, { from: 2 })),
    );
    await until(() => told.every(({ heartbeats }) => heartbeats.length > 3));
    const reads = gateway.calls.filter(({ path }) => path === '/v3/kv/range');
    expect(gateway.watches).toBe(30);
    // Each asks once when it opens.
    expect(reads.length).toBeLessThan(45);
    engine.close();
    await until(() => gateway.watches === 0);
  });

  test('knows from what etcd tells now and then that nothing happened, and is not ended by a compaction then', async () => {
    const gateway = await startFakeEtcd();
    const engine = openEngine([gateway.url]);
    const told = await watchAll(engine, 'a', { from: 2 });
    await until(() => told.heartbeats.length > 0);
    for (let index = 0; index < 5; index++) gateway.cluster.set('b', 'x');
    gateway.tellProgress();
    await new Promise((resolve) => setTimeout(resolve, 50));
    gateway.compact();
    gateway.cut();
    await until(() => told.heartbeats.length > 1);
    gateway.cluster.set('a', '1');
    await until(() => told.events.length === 1);
    expect(told.ends).toEqual([]);
  });
});

test('tells by how much the clock here is ahead of the servers', async () => {
  const gateway = await startFakeEtcd(1, () => new Date(Date.now() - 3_600_000));
  const engine = openEngine([gateway.url]);
  await engine.read([newPrefix()]);
  expect(Math.abs((engine.clockAhead() ?? 0) - 3_600_000)).toBeLessThan(1500);
});
