import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { EngineError, type Lease } from '../../../../src/sidecar/fleet/engine/engine';
import {
  faultOfAnswer,
  faultOfNoAnswer,
  faultOfText,
} from '../../../../src/sidecar/fleet/engine/etcd-answers';
import {
  type Answer,
  type Asked,
  base64,
  type Gateway,
  openEngine,
  refusal,
  startGateway,
  startSilent,
} from '../../../support/etcd-gateway';
import { recordedLog } from '../../../support/recorded-log';

const NOWHERE = 'http://127.0.0.1:9';
const AT = { cluster: '5', revision: 100, term: 2 };
const bytes = (text: string) => Buffer.from(text);
const a = base64('a');
const kv = (text: string, revision: number) => ({
  key: a,
  mod_revision: String(revision),
  value: base64(text),
});
const found = (...kvs: readonly object[]) => ({ response_range: { kvs } });
const CHANGE = [{ key: 'a', expected: 7, value: bytes('x') }];
const cut = (response: ServerResponse) => response.socket?.resetAndDestroy();
const hang = () => undefined;
const upgrade = (response: ServerResponse) =>
  response.writeHead(101, { connection: 'upgrade', upgrade: 'x' }).end();
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
  expect([await engine.remembers(5), await engine.remembers(6)]).toEqual([false, true]);
  gateway.answer = () => refusal('etcdserver: permission denied', 7, 403);
  await expect(engine.remembers(5)).rejects.toMatchObject({ kind: 'denied' });
});

test('describes each server, also one that answers nothing of its state to this user', async () => {
  const replies: Record<string, Answer> = {
    '/v3/maintenance/status': { version: '3.4.23', leader: '6', dbSize: '24576', dbSizeInUse: '16384' },
    '/v3/maintenance/alarm': {
      alarms: [
        { memberID: '6', alarm: 'NOSPACE' },
        { memberID: '7', alarm: 'CORRUPT' },
      ],
    },
    '/metrics': (response: ServerResponse) =>
      response.end('x 1\netcd_server_quota_backend_bytes 2.147483648e+09\n'),
  };
  const gateway = await startGateway(({ path }) => replies[path]);
  const denied = await startGateway(() => refusal('etcdserver: permission denied', 7, 403));
  expect(await openEngine([gateway.url, denied.url, NOWHERE]).servers()).toEqual([
    {
      ...{ url: gateway.url, version: '3.4.23', leader: true, size: 24576, size_in_use: 16384 },
      ...{ quota: 2147483648, alarms: ['NOSPACE'] },
    },
    { url: denied.url },
    { url: NOWHERE, fault: 'nothing listens there' },
  ]);
});

test('compares the clock here with that of the answers, as the median of the last five', async () => {
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
  const engine = openEngine([gateway.url], { now: () => now, clock: () => new Date(1_000_000_000_500) });
  expect(engine.clockAhead()).toBeUndefined();
  for (const _hour of hours) {
    await engine.read(['a']);
    now += 1000;
  }
  expect(engine.clockAhead()).toBe(3_600_000);
});

describe('a server that cannot be used is passed over, and named when there is no other', () => {
  test.each<[what: string, answer: Answer, kind: string, why: string]>([
    ['HTML', (response: ServerResponse) => response.end('<html>hello</html>'), 'refused', 'but not as etcd'],
    ['no header', (response: ServerResponse) => response.end('{}'), 'refused', 'but not as etcd'],
    ['404', (response: ServerResponse) => response.writeHead(404).end('x'), 'refused', 'answered 404'],
    ['421', (response: ServerResponse) => response.writeHead(421).end(), 'refused', '--host-whitelist'],
    ['an upgrade', upgrade, 'unavailable', 'the call failed'],
    ['no leader', refusal('etcdserver: no leader', 14, 503), 'unavailable', 'etcdserver: no leader'],
    ['nothing', hang, 'unavailable', 'no answer came in time'],
    [
      'half of an answer',
      (response: ServerResponse) => response.writeHead(200, { 'content-length': '9' }).write('{'),
      'unavailable',
      'no answer came in time',
    ],
  ])('%s', async (_what, answer, kind, why) => {
    const [odd, other] = [await startGateway(() => answer), await startGateway()];
    const pace = { attemptMs: 300 };
    const { log, lines } = recordedLog();
    const engine = openEngine([odd.url, other.url], { pace, log });
    for (let index = 0; index < 2; index += 1) expect((await engine.read(['a'])).values).toEqual([undefined]);
    expect([odd.asked.length, other.asked.length]).toEqual([1, 2]);
    expect(lines).toEqual([
      [
        'warn',
        "a server of the fleet's engine does not answer",
        { server: odd.url, why: expect.stringContaining(why) },
      ],
    ]);
    const alone = openEngine([odd.url], { timeoutMs: 600, pace });
    await expect(alone.read(['a'])).rejects.toMatchObject({
      kind,
      message: expect.stringMatching(new RegExp(`^${odd.url}: .*${why}`)),
    });
  });

  test('nothing at all is unavailable to reads, and to changes, which were never sent', async () => {
    const engine = openEngine([NOWHERE], { timeoutMs: 100 });
    await expect(engine.read(['a'])).rejects.toMatchObject({ kind: 'unavailable' });
    await expect(engine.change(CHANGE)).rejects.toMatchObject({ kind: 'unavailable' });
    engine.close();
    await expect(engine.read(['a'])).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

test('waits for an answer that takes long but goes on coming', async () => {
  const gateway = await startGateway(() => async (response) => {
    for (const character of JSON.stringify({ header: { cluster_id: '5' }, count: '1' })) {
      response.write(character);
      await pause(10);
    }
    response.end();
  });
  const engine = openEngine([gateway.url], { timeoutMs: 2000, pace: { attemptMs: 300 } });
  expect((await engine.list({ prefix: 'a' }, { limit: 9 })).count).toBe(1);
});

describe('a change whose answer is lost', () => {
  const mine = { responses: [found(kv('x', 100))] };
  test.each<[then: string, answers: readonly Answer[], outcome: unknown]>([
    ['is made by the next attempt', [{ succeeded: true }], { made: true, revision: 100 }],
    [
      'is answered as not made with its own value as what is present',
      [mine],
      { made: false, present: { key: 'a', value: bytes('x'), revision: 100 } },
    ],
    ['is of unknown outcome when the next is refused', [refusal('etcdserver: no space', 8)], 'unknown'],
    ['is of unknown outcome when nothing else is answered', [], 'unknown'],
  ])('%s', async (_then, answers, outcome) => {
    for (const lost of [cut, hang]) {
      const gateway = await startGateway((_asked, count) =>
        count === 1 ? lost : (answers[count - 2] ?? lost),
      );
      const engine = openEngine([gateway.url], { timeoutMs: 600, pace: { attemptMs: 150 } });
      const changed = await engine.change(CHANGE).catch((thrown: EngineError) => thrown);
      if (changed instanceof EngineError) expect(changed.kind).toBe(outcome);
      else expect(changed).toEqual([outcome]);
    }
  });

  test('is made in time though one server is dead and the others wait for a new leader', async () => {
    let isElected = false;
    const follower = () => startGateway(() => (isElected ? { succeeded: true } : hang));
    const urls = [(await follower()).url, (await follower()).url, await startSilent()];
    const engine = openEngine(urls, { timeoutMs: 900, pace: { attemptMs: 300 } });
    const changing = engine.change(CHANGE);
    setTimeout(() => {
      isElected = true;
    }, 620);
    expect(await changing).toEqual([{ made: true, revision: 100 }]);
  });

  test('at a slow server is made there: its late answer counts, and the server stays the first', async () => {
    const other = await startGateway(() => hang);
    const late = await startGateway((_asked, count) => async (response) => {
      // The answer to a change comes once the other server was asked, too; a list is asked for at one alone.
      if (count > 2) await pause(150);
      while (count <= 2 && other.asked.length < count) await pause(5);
      response.end(JSON.stringify({ header: { cluster_id: '5', revision: '9' }, succeeded: true }));
    });
    const engine = openEngine([late.url, other.url], { pace: { attemptMs: 300 } });
    for (let count = 1; count <= 2; count += 1) {
      expect(await engine.change(CHANGE)).toEqual([{ made: true, revision: 9 }]);
      expect([late.asked.length, other.asked.length]).toEqual([count, count]);
    }
    // Many large answers at a time would make a slow engine slower.
    await engine.list({ prefix: 'a' }, { limit: 9 });
    expect([late.asked.length, other.asked.length]).toEqual([3, 2]);
  });

  test('is made when an early attempt is answered at last: no pause and no other attempt is waited for', async () => {
    const made = JSON.stringify({ header: { cluster_id: '5', revision: '9' }, succeeded: true });
    let held: ServerResponse | undefined;
    const hold = (response: ServerResponse) => {
      held ??= response;
    };
    const slow = await startGateway((_asked, count) => (count === 1 ? hold : cut));
    const broken = await startGateway((_asked, count) => (response) => {
      cut(response);
      // The next pause is one of 400 ms.
      if (count === 3) setTimeout(() => held?.end(made), 20);
    });
    const pausing = openEngine([slow.url, broken.url], { pace: { attemptMs: 1500 } });
    expect(await pausing.change(CHANGE)).toEqual([{ made: true, revision: 9 }]);
    await pause(50);
    expect([slow.asked.length, broken.asked.length]).toEqual([3, 3]);
    held = undefined;
    const late = await startGateway(() => hold);
    let isGivenUp = false;
    const silent = await startGateway(() => (response) => {
      response.once('close', () => {
        isGivenUp = true;
      });
    });
    const refusing = await startGateway(() => (response) => {
      refusal('etcdserver: no space', 8)(response);
      setTimeout(() => held?.end(made), 20);
    });
    const waiting = openEngine([late.url, silent.url, refusing.url], { pace: { attemptMs: 900 } });
    expect(await waiting.change(CHANGE)).toEqual([{ made: true, revision: 9 }]);
    await pause(50);
    expect(isGivenUp).toBe(false);
    // It stays the first, though it was asked once more and has not answered that.
    held = undefined;
    const { log, lines } = recordedLog();
    const asked = await startGateway((_asked, count) => (count === 1 ? hold : () => held?.end(made)));
    const staying = openEngine([asked.url, silent.url], { log, pace: { attemptMs: 300 } });
    expect(await staying.change(CHANGE)).toEqual([{ made: true, revision: 9 }]);
    expect([asked.asked.length, lines]).toEqual([2, []]);
  });

  test('is not made at a server that refuses for certain', async () => {
    const gateway = await startGateway(() => refusal('etcdserver: mvcc: database space exceeded', 8, 429));
    const message = `${gateway.url}: etcdserver: mvcc: database space exceeded`;
    await expect(openEngine([gateway.url]).change(CHANGE)).rejects.toMatchObject({ kind: 'full', message });
    expect(gateway.asked).toHaveLength(1);
  });

  test('does not delay others: calls wait in parallel', async () => {
    const engine = openEngine([await startSilent()], { timeoutMs: 200 });
    const [change, read] = await Promise.allSettled([engine.change(CHANGE), engine.read(['a'])]);
    expect(change).toMatchObject({ reason: { kind: 'unknown' } });
    expect(read).toMatchObject({ reason: { kind: 'unavailable' } });
  });
});

describe('faults', () => {
  const row = ({ kind, again, mayBeDone, signIn }: ReturnType<typeof faultOfText>) =>
    [kind, again && 'again', mayBeDone && 'may be done', signIn && 'sign in'].filter(Boolean).join(', ');

  test.each<[sentence: string, code: number, fault: string]>([
    ['etcdserver: mvcc: database space exceeded', 8, 'full'],
    ['etcdserver: mvcc: required revision has been compacted', 11, 'compacted'],
    ['etcdserver: invalid auth token', 16, 'denied, sign in'],
    ['etcdserver: user name is empty', 3, 'denied, sign in'],
    ['etcdserver: revision of auth store is old', 3, 'denied, sign in'],
    ['etcdserver: permission denied', 7, 'denied'],
    ['etcdserver: authentication failed, invalid user ID or password', 3, 'denied'],
    ['CommonName of client sending a request against gateway will be ignored', 0, 'denied'],
    ['etcdserver: no leader', 14, 'unavailable, again'],
    ['etcdserver: too many requests', 8, 'unavailable, again'],
    ['etcdserver: rpc not supported for learner', 14, 'unavailable, again'],
    ['something else', 7, 'denied'],
    ['something else', 16, 'denied, sign in'],
    ['context canceled', 1, 'unavailable, again, may be done'],
    ['context deadline exceeded', 4, 'unavailable, again, may be done'],
    ['etcdserver: request timed out', 14, 'unavailable, again, may be done'],
    ['etcdserver: key is not provided', 3, 'refused'],
  ])('%s (%i) is %s', (sentence, code, fault) => {
    expect(row(faultOfText(sentence, code))).toBe(fault);
  });

  test.each<[body: string, status: number, fault: string, why: string]>([
    ['{"error":"e","message":"etcdserver: permission denied","code":7}', 403, 'denied', 'permission denied'],
    ['{"error":"etcdserver: permission denied","code":7}', 403, 'denied', 'etcdserver: permission denied'],
    ['{"error":{"grpc_code":7,"message":"no"}}', 200, 'denied', 'no'],
    ['{}', 500, 'unavailable, again, may be done', 'answered 500'],
    ['{}', 400, 'refused', 'answered 400'],
    ['bad gateway', 502, 'unavailable, again, may be done', 'answered 502'],
    ['CommonName of client sending', 401, 'denied', 'must have no common name'],
    ['Not Found', 404, 'refused, again', 'is an etcd of version 3.4 or later there'],
    ['hello', 200, 'refused, again, may be done', 'answered 200, but not as'],
  ])('%s with the status %i is %s', (body, status, fault, why) => {
    const answered = faultOfAnswer(status, body);
    expect(row(answered)).toBe(fault);
    expect(answered.why).toContain(why);
  });

  test.each<[code: string, isSent: boolean, fault: string, why: string]>([
    ['ECONNREFUSED', false, 'unavailable, again', 'nothing listens there'],
    ['ECONNRESET', true, 'unavailable, again, may be done', 'cut'],
    ['TOO_LARGE', true, 'refused, again, may be done', 'more than any answer can be'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', true, 'denied, again', 'refuses the client certificate'],
    ['CERT_NOT_YET_VALID', false, 'unavailable, again', 'check the clock here'],
    ['CERT_HAS_EXPIRED', false, 'unavailable, again', 'its certificate has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', false, 'unavailable, again', 'its certificate is for another name'],
    ['INVALID_PURPOSE', false, 'unavailable, again', 'serverAuth'],
    ['SELF_SIGNED_CERT_IN_CHAIN', false, 'unavailable, again', 'PACKAGERDRMAPI_FLEET_TLSCA'],
  ])('no answer for %s, sent: %s, is %s', (code, isSent, fault, why) => {
    const answered = faultOfNoAnswer(code, isSent);
    expect(row(answered)).toBe(fault);
    expect(answered.why).toContain(why);
  });
});

describe('users', () => {
  const user = () => ({ name: 'site', password: 'a password' });
  const SIGN_IN = '/v3/auth/authenticate';
  /** Accepts the tokens that were given since `valid` was last reset. */
  const startWithUsers = async () => {
    const state = { valid: new Set<string>(), given: 0 };
    const answer = ({ path, token }: Asked): Answer | undefined => {
      if (path === SIGN_IN) {
        state.given += 1;
        state.valid.add(`token-${state.given}`);
        return { token: `token-${state.given}` };
      }
      return state.valid.has(token ?? '') ? undefined : refusal('etcdserver: invalid auth token', 16, 401);
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
    const gateway = await startGateway(({ path, token }) => {
      if (path === SIGN_IN)
        return hasUsers ? { token: 'token' } : refusal('etcdserver: authentication is not enabled', 9);
      return hasUsers && token !== 'token' ? refusal('etcdserver: user name is empty', 3) : undefined;
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
