import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { EngineError, Lease } from '../../../../src/sidecar/fleet/engine/engine';
import {
  type Answer,
  type Asked,
  base64,
  found,
  type Gateway,
  kv,
  openEngine,
  refusal,
  startGateway,
} from '../../../support/etcd-gateway';
import { recordedLog } from '../../../support/recorded-log';

const NOWHERE = 'http://127.0.0.1:9';
const AT = { cluster: '5', revision: 100, term: 2 };
const bytes = (text: string) => Buffer.from(text);
const a = base64('a');
const CHANGE = [{ key: 'a', expected: 7, value: bytes('x') }];
const bodies = ({ asked }: Gateway) => asked.map(({ path, body }) => [path, body]);

test('reads keys in one transaction for each 64, and answers undefined for those that are absent', async () => {
  const gateway = await startGateway((_asked, count) =>
    count === 1 ? { responses: [{ response_range: {} }, found(kv('x', 7))] } : undefined,
  );
  const engine = openEngine([gateway.url]);
  const keys = Array.from({ length: 65 }, (_, index) => `a${index}`);
  expect(await engine.read(keys)).toEqual({
    at: AT,
    values: [undefined, { key: 'a', value: bytes('x'), revision: 7 }, ...Array(63).fill(undefined)],
  });
  const read = (names: readonly string[]) => [
    '/v3/kv/txn',
    { success: names.map((key) => ({ request_range: { key: base64(key) } })) },
  ];
  expect(bodies(gateway)).toEqual([read(keys.slice(0, 64)), read(keys.slice(64))]);
  await expect(engine.read(['€'])).rejects.toThrow(RangeError);
});

test('lists a range by its first key and the one behind its last', async () => {
  const gateway = await startGateway(() => ({ kvs: [kv('x', 7)], more: true, count: '3' }));
  const engine = openEngine([gateway.url]);
  expect(await engine.list({ prefix: 'a/' }, { limit: 1 })).toEqual({
    at: AT,
    values: [{ key: 'a', value: bytes('x'), revision: 7 }],
    more: true,
    count: 3,
  });
  await engine.list({ prefix: 'a/', after: 'a/z' }, { limit: 2, revision: 9 });
  const range_end = base64('a0');
  expect(bodies(gateway)).toEqual([
    ['/v3/kv/range', { key: base64('a/'), range_end, limit: 1 }],
    ['/v3/kv/range', { key: base64('a/z\0'), range_end, limit: 2, revision: '9' }],
  ]);
});

test('makes changes in a flat transaction, and those alone whose keys are as expected when some are not', async () => {
  const gateway = await startGateway((_asked, count) =>
    count === 1
      ? { responses: [found(kv('x', 7)), { response_range: {} }, found(kv('g', 3))] }
      : { succeeded: true },
  );
  const engine = openEngine([gateway.url]);
  const changes = [
    { key: 'a', expected: 7, value: bytes('new'), lease: '9' as Lease },
    { key: 'b', expected: 8, value: undefined },
  ];
  expect(await engine.change(changes, { key: 'guard', revision: 3 })).toEqual([
    { made: true, revision: 100 },
    { made: false, present: undefined },
  ]);
  const compare = (key: string, revision: string) => ({
    ...{ key: base64(key), target: 'MOD', result: 'EQUAL', mod_revision: revision },
  });
  const ranges = (...keys: readonly string[]) => keys.map((key) => ({ request_range: { key: base64(key) } }));
  const put = { request_put: { key: a, value: base64('new'), lease: '9' } };
  const removed = { request_delete_range: { key: base64('b') } };
  expect(bodies(gateway)).toEqual([
    [
      '/v3/kv/txn',
      {
        compare: [compare('a', '7'), compare('b', '8'), compare('guard', '3')],
        success: [put, removed],
        failure: ranges('a', 'b', 'guard'),
      },
    ],
    [
      '/v3/kv/txn',
      { compare: [compare('a', '7'), compare('guard', '3')], success: [put], failure: ranges('a', 'guard') },
    ],
  ]);
});

test('makes no change when the guard has another revision', async () => {
  const gateway = await startGateway(() => ({ responses: [found(kv('x', 7)), found(kv('g', 4))] }));
  const engine = openEngine([gateway.url]);
  expect(await engine.change(CHANGE, { key: 'guard', revision: 3 })).toBeUndefined();
  expect(gateway.asked).toHaveLength(1);
});

test('grants, renews and ends leases', async () => {
  const replies: Answer[] = [
    { ID: '9' },
    { result: { header: { cluster_id: '5' }, TTL: '15' } },
    { result: { header: { cluster_id: '5' } } },
    {},
  ];
  const gateway = await startGateway((_asked, count) => replies[count - 1]);
  const engine = openEngine([gateway.url]);
  const lease = await engine.grant(15);
  expect([lease, await engine.keepAlive(lease), await engine.keepAlive(lease)]).toEqual(['9', true, false]);
  await engine.revoke(lease);
  expect(bodies(gateway)).toEqual([
    ['/v3/lease/grant', { TTL: '15' }],
    ['/v3/lease/keepalive', { ID: '9' }],
    ['/v3/lease/keepalive', { ID: '9' }],
    ['/v3/lease/revoke', { ID: '9' }],
  ]);
});

test('a revision that is compacted is not remembered', async () => {
  const gateway = await startGateway(({ body }) =>
    body.revision === '5' ? refusal('etcdserver: mvcc: required revision has been compacted', 11) : undefined,
  );
  const engine = openEngine([gateway.url]);
  expect([await engine.hasRevision(5), await engine.hasRevision(6)]).toEqual([false, true]);
  gateway.answer = () => refusal('etcdserver: permission denied', 7, 403);
  await expect(engine.hasRevision(5)).rejects.toMatchObject({ kind: 'denied' });
});

test('describes each server, also one that answers nothing of its state to this user, and alarms of one that is gone', async () => {
  const replies: Record<string, Answer> = {
    '/v3/maintenance/status': { version: '3.4.23', leader: '6', dbSize: '24576', dbSizeInUse: '16384' },
    '/v3/maintenance/alarm': {
      alarms: [
        { memberID: '6', alarm: 'NOSPACE' },
        { memberID: '8', alarm: 'CORRUPT' },
        { memberID: '9', alarm: 'CORRUPT' },
      ],
    },
    '/metrics': (response: ServerResponse) =>
      response.end('x 1\netcd_server_quota_backend_bytes 2.147483648e+09\n'),
  };
  const gateway = await startGateway(({ path }) => replies[path]);
  const other = await startGateway(({ path }) => (path === '/metrics' ? undefined : replies[path]));
  other.header = { ...other.header, member_id: '7' };
  const denied = await startGateway(() => refusal('etcdserver: permission denied', 7, 403));
  const status = { version: '3.4.23', size: 24576, size_in_use: 16384 };
  expect(await openEngine([gateway.url, other.url, denied.url, NOWHERE]).servers()).toEqual([
    { ...status, url: gateway.url, leader: true, quota: 2147483648, alarms: ['NOSPACE', 'CORRUPT'] },
    { ...status, url: other.url, leader: false, alarms: ['CORRUPT'] },
    { url: denied.url },
    { url: NOWHERE, fault: 'nothing listens there' },
  ]);
});

test('compares the clock here with that of the answers, as the median of the last five in whole seconds', async () => {
  const hours = [0, 7, 1, 2, 1, 1];
  const gateway = await startGateway((_asked, count) => (response) => {
    response.sendDate = false;
    response.setHeader(
      'date',
      new Date(1_000_000_000_000 - (hours[count - 1] ?? 0) * 3_600_000).toUTCString(),
    );
    response.end(JSON.stringify({ header: { cluster_id: '5' } }));
  });
  let now = 0;
  const engine = openEngine([gateway.url], { now: () => now, clock: () => new Date(1_000_000_000_620) });
  expect(engine.clockAhead()).toBeUndefined();
  for (const _hour of hours) {
    await engine.read(['a']);
    now += 1000;
  }
  expect(engine.clockAhead()).toBe(3_600_000);
});

describe('users', () => {
  const user = () => ({ name: 'site', password: 'a password' });
  const SIGN_IN = '/v3/auth/authenticate';
  /** Accepts the tokens that were given since `valid` was last reset. */
  const startWithUsers = async () => {
    const state = { valid: new Set<string>(), given: 0, isRestored: false, isFrozen: false };
    const answer = ({ path, token }: Asked): Answer | undefined => {
      if (path === SIGN_IN) {
        state.given += 1;
        state.valid.add(`token-${state.given}`);
        return { token: `token-${state.given}` };
      }
      if (state.valid.has(token ?? '') && !state.isFrozen) return undefined;
      return state.isRestored || state.isFrozen
        ? () => undefined
        : refusal('etcdserver: invalid auth token', 16, 401);
    };
    return { state, gateway: await startGateway(answer) };
  };

  test('sign in once for many calls, and again when their token is refused', async () => {
    const { state, gateway } = await startWithUsers();
    const engine = openEngine([gateway.url], { user });
    await Promise.all([engine.read(['a']), engine.read(['b']), engine.list({ prefix: 'a' }, { limit: 9 })]);
    expect(state.given).toBe(1);
    expect(gateway.asked[0]).toMatchObject({ path: SIGN_IN, body: user() });
    state.valid.clear();
    await Promise.all([engine.read(['a']), engine.read(['b'])]);
    expect(state.given).toBe(2);
  });

  // A restored etcd takes the token for one that comes from its future, and waits until it is there itself.
  test('sign in again after a call whose token no server has answered to', async () => {
    const { state, gateway } = await startWithUsers();
    const engine = openEngine([gateway.url], { user, timeoutMs: 300 });
    await engine.read(['a']);
    state.valid.clear();
    state.isRestored = true;
    await expect(engine.read(['a'])).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await engine.read(['a'])).toMatchObject({ at: AT });
  });

  test('sign in once more after several calls that no server has answered', async () => {
    const { state, gateway } = await startWithUsers();
    const engine = openEngine([gateway.url], { user, timeoutMs: 300 });
    await engine.read(['a']);
    state.isFrozen = true;
    const calls = [0, 1, 2].map((at) => pause(70 * at).then(() => engine.read(['a'])));
    for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected');
    state.isFrozen = false;
    await engine.read(['a']);
    expect(state.given).toBe(2);
  });

  test('whose password is wrong are denied, and asked for only after a second again', async () => {
    const gateway = await startGateway(() =>
      refusal('etcdserver: authentication failed, invalid user ID or password', 3),
    );
    let now = 0;
    const engine = openEngine([gateway.url], { user, now: () => now });
    for (const [at, asked] of [
      [0, 1],
      [999, 1],
      [1001, 2],
    ] as const) {
      now = at;
      const thrown = await engine.change(CHANGE).catch((caught: EngineError) => caught);
      expect(thrown).toMatchObject({ kind: 'denied' });
      expect(String(thrown)).not.toContain('a password');
      expect(gateway.asked).toHaveLength(asked);
    }
  });

  test('are not signed in where the engine has none, and are once it asks for one', async () => {
    let hasUsers = false;
    const gateway = await startGateway(({ path, token, accept }) => {
      if (path === SIGN_IN)
        return hasUsers ? { token: 'token' } : refusal('etcdserver: authentication is not enabled', 9);
      if (!hasUsers || token === 'token') return undefined;
      // With TLS, etcd takes a call that accepts nothing for one of its own certificate.
      return accept ? refusal('etcdserver: user name is empty', 3) : refusal('permission denied', 7);
    });
    const { log, lines } = recordedLog();
    const engine = openEngine([gateway.url], { user, log });
    await engine.read(['a']);
    hasUsers = true;
    await engine.read(['a']);
    const paths = gateway.asked.map(({ path }) => path.split('/').at(-1));
    expect(paths).toEqual(['authenticate', 'txn', 'txn', 'authenticate', 'txn']);
    expect(lines).toEqual([
      ['warn', "the fleet's engine has no users: the sidecar does not sign in", { server: gateway.url }],
    ]);
  });
});
