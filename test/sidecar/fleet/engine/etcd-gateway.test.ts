import { startEtcdGateway } from '../../../support/etcd-gateway';
import { answersOf, GATEWAY_CALLS, GATEWAY_WATCHES, linesOf } from '../../../support/gateway-contract';
import recorded from '../../../vectors/etcd-gateway.json';

const encoded = (text: string) => Buffer.from(text).toString('base64');
const put = (name: string) => ({ path: '/v3/kv/put', body: { key: encoded(name), value: encoded('x') } });
const range = (name: string) => ({ path: '/v3/kv/range', body: { key: encoded(name) } });
const status = { path: '/v3/maintenance/status', body: {} };

test('the stand-in answers each call as etcd did', async () => {
  const { url } = await startEtcdGateway();
  const answers: Record<string, unknown> = {};
  for (const [name, calls] of Object.entries(GATEWAY_CALLS)) answers[name] = await answersOf(url, calls);
  expect(answers).toEqual(recorded.calls);
});

test('the stand-in tells watchers what etcd did', async () => {
  const { url } = await startEtcdGateway();
  const lines: Record<string, unknown> = {};
  for (const [name, watched] of Object.entries(GATEWAY_WATCHES)) lines[name] = await linesOf(url, watched);
  expect(lines).toEqual(recorded.watches);
});

test('a change whose answer is lost was made, and one whose request is lost was not', async () => {
  const gateway = await startEtcdGateway();
  gateway.loseAnswer();
  await expect(answersOf(gateway.url, [put('a')])).rejects.toMatchObject({ code: 'ECONNRESET' });
  gateway.loseRequest();
  await expect(answersOf(gateway.url, [put('b')])).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect([gateway.get('a')?.toString(), gateway.get('b')]).toEqual(['x', undefined]);
});

test('servers share their keys, one that stops refuses connections, and comes back on its port', async () => {
  const gateway = await startEtcdGateway({ servers: 2 });
  const [first = '', second = ''] = gateway.urls;
  await answersOf(first, [put('a')]);
  await gateway.stop(0);
  await expect(answersOf(first, [range('a')])).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const [there] = await answersOf(second, [range('a')]);
  await gateway.start(0);
  expect([there, ...(await answersOf(first, [put('a')]))].map((each) => each?.status)).toEqual([200, 200]);
  expect(gateway.revision).toBe(3);
});

test('a server that hangs answers nothing until it goes on', async () => {
  const gateway = await startEtcdGateway();
  gateway.hang();
  let answered = false;
  const asked = answersOf(gateway.url, [put('a')]).then(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect([answered, gateway.get('a')]).toEqual([false, undefined]);
  gateway.resume();
  await asked;
  expect(gateway.get('a')?.toString()).toBe('x');
});

test('without a majority changes time out, a status says so, and leases do not end', async () => {
  let now = 0;
  const gateway = await startEtcdGateway({ quorumMs: 30, now: () => now });
  await answersOf(gateway.url, [
    { path: '/v3/lease/grant', body: { TTL: '5', ID: '7' } },
    { path: '/v3/kv/put', body: { key: encoded('leased'), lease: '7' } },
  ]);
  gateway.loseQuorum();
  now = 6000;
  gateway.expire();
  const answers = await answersOf(gateway.url, [put('a'), range('a'), status]);
  expect(answers.map((each) => [each.status, /"(?:error|errors)":\[?"([^"]*)/.exec(each.body)?.[1]])).toEqual(
    [
      [500, 'context deadline exceeded'],
      [503, 'etcdserver: request timed out'],
      [200, 'etcdserver: no leader'],
    ],
  );
  expect(gateway.keys()).toEqual(['leased']);
  gateway.findQuorum();
  gateway.expire();
  expect(gateway.keys()).toEqual([]);
});

test('what is restored is another cluster at an early term, with the keys and the revision of the backup', async () => {
  const gateway = await startEtcdGateway();
  gateway.put('a', '1');
  const backup = gateway.backUp();
  gateway.put('a', '2');
  gateway.elect(0);
  const moment = async () => {
    const answer = await fetch(`${gateway.url}/v3/kv/range`, {
      method: 'POST',
      body: JSON.stringify(range('a').body),
    });
    const { header } = (await answer.json()) as { header: Record<string, string> };
    return [header.cluster_id, header.raft_term, header.revision, gateway.get('a')?.toString()];
  };
  const before = await moment();
  gateway.restore(backup);
  const after = await moment();
  gateway.wipe();
  expect([before, after, await moment()]).toEqual([
    ['1000000000000000001', '3', '3', '2'],
    ['1000000000000000002', '2', '2', '1'],
    ['1000000000000000003', '2', '1', undefined],
  ]);
});

test('with users, a call needs a token and the right to its keys', async () => {
  const gateway = await startEtcdGateway();
  gateway.requireUsers([{ name: 'site', password: 'secret', rights: [{ prefix: 's/', may: 'write' }] }]);
  const signIn = async (password: string) => {
    const body = JSON.stringify({ name: 'site', password });
    const answer = await fetch(`${gateway.url}/v3/auth/authenticate`, { method: 'POST', body });
    return [answer.status, ((await answer.json()) as { token?: string }).token] as const;
  };
  const ask = async (body: object, authorization?: string) => {
    const headers = authorization === undefined ? undefined : { authorization };
    const answer = await fetch(`${gateway.url}/v3/kv/range`, {
      method: 'POST',
      body: JSON.stringify(body),
      ...(headers && { headers }),
    });
    return answer.status;
  };
  const [, token] = await signIn('secret');
  expect((await signIn('wrong'))[0]).toBe(400);
  const site = { key: encoded('s/'), range_end: encoded('s0') };
  expect([
    await ask(site),
    await ask(site, 'no token'),
    await ask(site, token),
    await ask({ key: encoded('q/') }, token),
    await ask({ key: encoded('s/'), range_end: encoded('t') }, token),
  ]).toEqual([400, 401, 200, 403, 403]);
});
