import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { etagOf } from '../../../src/drm/bytes';
import { apiError } from '../../../src/sidecar/errors';
import { EngineError } from '../../../src/sidecar/fleet/engine/engine';
import { createFleetWait } from '../../../src/sidecar/fleet/wait';
import { CPIX_DOCUMENT, SUPPLIED } from '../../../src/sidecar/openapi/examples';
import { temporaryFolder } from '../../support/after-test';
import { errorBody } from '../../support/error-body';
import { createFakeFleet } from '../../support/fake-fleet';
import { PLAIN, PLAIN_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { recordedLog } from '../../support/recorded-log';
import { seriesOf } from '../../support/start-observed';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const PATH = '/api/keyfile/news';

async function startInFleet(options?: Parameters<typeof createFakeFleet>[0]) {
  const fleet = createFakeFleet(options);
  const audit = join(await temporaryFolder(), 'audit.log');
  const sidecar = await startSidecar({ audit }, undefined, { fleet: fleet.open });
  /** The audit lines, once there are so many: caller, change, stream and packager. */
  const audited = async (count: number) => {
    const read = async () => (await readFile(audit, 'utf8').catch(() => '')).split('\n').filter(Boolean);
    await until(async () => (await read()).length >= count);
    return (await read()).map((line) => {
      const { action, key, stream_id, result, fleet: from } = JSON.parse(line);
      return [action, key, stream_id, result, from];
    });
  };
  const keyFiles = async () => {
    // A scrape is kept for a second.
    sidecar.advance(1001);
    const { text } = await sidecar.unauthenticated.get('/metrics');
    return seriesOf(text).packagerdrmapi_key_files;
  };
  /** The revision of a stream's entry, as a header has it. */
  const revisionOf = (stream: string) => String(fleet.entryOf(stream)?.revision);
  return { fleet, sidecar, api: sidecar.api, audited, keyFiles, revisionOf };
}

/** The key files in the folder of a sidecar, without the ledger. */
const filesIn = async ({ files }: TestSidecar) =>
  Object.fromEntries(Object.entries(await files()).filter(([name]) => name.endsWith('.key')));

const behind = (who: string, after = '1 second') =>
  `299 - "fleet_behind: not everything is at ${who} after ${after}; the fleet has accepted the change, and each packager takes it as soon as it can. GET /api/fleet/{streamid} lists who has it"`;

test('every answer to a change says at which revision of the fleet it is made', async () => {
  const { api, fleet, revisionOf } = await startInFleet();
  const post = await api.post(PATH).send(PLAIN).expect(200);
  expect([post.headers['x-fleet-revision'], post.headers.warning, post.text]).toEqual([
    revisionOf('news'),
    undefined,
    PLAIN_FILE,
  ]);
  const removed = await api.delete(PATH).accept('application/json').expect(200);
  expect(removed.headers['x-fleet-revision']).toBe(revisionOf('news'));
  expect(fleet.waits).toEqual([]);
  const by = { key: 'default', address: '127.0.0.1', requestId: removed.headers['x-request-id'] };
  expect(fleet.entryOf('news')).toMatchObject({ by, awaited: false });
});

test('a change that all packagers get in time is a 200', async () => {
  const { api, fleet } = await startInFleet();
  fleet.hold('origin-2');
  const sent = api
    .post(`${PATH}?wait=30`)
    .send(PLAIN)
    .then((answer) => answer);
  await until(() => fleet.waits.length === 1);
  fleet.release('origin-2');
  const { status, headers } = await sent;
  expect([status, headers.warning]).toEqual([200, undefined]);
  const revision = Number(headers['x-fleet-revision']);
  expect(fleet.waits).toEqual([{ changes: [{ streamId: 'news', revision }], seconds: 30 }]);
  expect(fleet.entryOf('news')).toMatchObject({ revision, awaited: true });
});

test.each([
  [1, 'origin-2'],
  [2, 'origin-2 and origin-3'],
  [
    10,
    'origin-10, origin-11, origin-2, origin-3, origin-4, origin-5, origin-6, origin-7, origin-8 and origin-9',
  ],
  [
    12,
    'origin-10, origin-11, origin-12, origin-13, origin-2, origin-3, origin-4, origin-5, origin-6, origin-7 and 2 more',
  ],
])('a change that %i packagers have not got in time is a 202 that names them', async (count, who) => {
  const names = Array.from({ length: count }, (_, index) => `origin-${index + 2}`);
  const { api, fleet, revisionOf } = await startInFleet({ others: names.map((name) => ({ name })) });
  for (const name of names) fleet.hold(name);
  const post = await api.post(`${PATH}?wait=2`).send(PLAIN).expect(202);
  expect([post.headers.warning, post.headers.etag, post.text]).toEqual([
    behind(who, '2 seconds'),
    etagOf(Buffer.from(PLAIN_FILE)),
    PLAIN_FILE,
  ]);
  const { headers, body } = await api.delete(`${PATH}?wait=1`).accept('application/json').expect(202);
  expect([headers.warning, headers['x-fleet-revision']]).toEqual([behind(who), revisionOf('news')]);
  expect(body.streamid).toBe('news');
});

test('warnings about the keys come with the one about the fleet', async () => {
  const { api, fleet } = await startInFleet();
  fleet.hold('origin-3');
  const plainHttp = { ...PLAIN, playready: { laurl: 'http://license.example.com/' } };
  const { headers } = await api.post(`${PATH}?wait=1`).send(plainHttp).expect(202);
  expect(headers.warning).toMatch(/^299 - "plain_http: .*", 299 - "fleet_behind: /);
});

test.each([
  ['text/plain', '?wait=1&keepunknown=true', `${PLAIN_FILE}vendor-tier: gold\n`],
  ['application/cpix+xml', `?laurl=${SUPPLIED.playready.laurl}&wait=1`, CPIX_DOCUMENT],
])('a body of %s can be waited for with its other parameters', async (type, query, body) => {
  const { api, fleet } = await startInFleet();
  fleet.hold('origin-3');
  await api
    .post(PATH + query)
    .type(type)
    .send(body)
    .expect(202);
  expect(fleet.waits).toHaveLength(1);
});

test('a dry run waits for no packager, and is no change of the fleet', async () => {
  const { api, fleet } = await startInFleet();
  await api.post(PATH).send(PLAIN).expect(200);
  const before = fleet.entryOf('news');
  const dry = await api.post(`${PATH}?dryrun=true&wait=1`).send(POST_MANUAL).expect(200);
  const { headers } = await api
    .post('/api/keyfiles?dryrun=true&wait=1')
    .send({ streams: [{ streamid: 'news', ...POST_MANUAL }] })
    .expect(200);
  expect([dry.headers['x-fleet-revision'], headers['x-fleet-revision']]).toEqual([undefined, undefined]);
  expect([fleet.waits, fleet.entryOf('news')]).toEqual([[], before]);
});

const REQUESTS = [
  ['post', PATH, PLAIN],
  ['delete', PATH, undefined],
  ['post', '/api/keyfiles', { streams: [{ streamid: 'news', ...POST_MANUAL }] }],
] as const;

test.each(REQUESTS)('%s %s is refused with another wait, and changes nothing', async (method, path, body) => {
  const { api, sidecar } = await startInFleet();
  await api.post(PATH).send(PLAIN).expect(200);
  const why = 'wait: must be a whole number of seconds, from 1 to 30. Nothing was changed.';
  for (const value of ['0', '31', '-1', '1.5', '01', 'true', '', '1&wait=2']) {
    const answer = await api[method](`${path}?wait=${value}`).send(body);
    expect([value, answer.status, answer.body]).toEqual([value, 400, errorBody('invalid_query', why)]);
  }
  expect(await filesIn(sidecar)).toEqual({ 'news.key': PLAIN_FILE });
});

test.each(REQUESTS)('without a fleet, %s %s has no packager to wait for', async (method, path, body) => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(PLAIN).expect(200);
  const before = await sidecar.files();
  const answer = await sidecar.api[method](`${path}?wait=5`).send(body);
  const description =
    'wait: is for a fleet of packagers, but this sidecar is not in one: leave it out. Nothing was changed.';
  expect([answer.status, answer.body]).toEqual([400, errorBody('invalid_query', description)]);
  expect(await sidecar.files()).toEqual(before);
});

test('without a fleet, no answer speaks of one', async () => {
  const { api } = await startSidecar();
  const { headers } = await api.post(PATH).send(PLAIN).expect(200);
  const { headers: ofBatch } = await api.post('/api/keyfiles').send({ streams: [] }).expect(200);
  expect(Object.keys({ ...headers, ...ofBatch }).filter((name) => name.includes('fleet'))).toEqual([]);
});

test('a change that this packager has not made though the fleet has accepted it is a 202, without a wait, too', async () => {
  const { api, fleet, sidecar, revisionOf } = await startInFleet();
  fleet.faultHere = apiError('insufficient_storage');
  const { headers, text } = await api.post(PATH).send(PLAIN).expect(202);
  expect([headers.warning, headers['x-fleet-revision'], text]).toEqual([
    '299 - "fleet_not_here: the fleet has accepted the change, but it is not applied in the folder of this sidecar: There is no space left for key files, or no inode (df -i) or quota; none was damaged. Free some and try again."',
    revisionOf('news'),
    PLAIN_FILE,
  ]);
  expect(await filesIn(sidecar)).toEqual({});
  const waited = await api.post(`${PATH}?wait=1`).send(PLAIN).expect(202);
  expect(waited.headers.warning).toMatch(/^299 - "fleet_not_here: .*", 299 - "fleet_behind: .* origin-1 /);
  const logged = (await sidecar.logEntries()).filter(({ level }) => level === 'error');
  expect(logged.map(({ message, streamId, cause }) => [message, streamId, cause !== undefined])).toEqual([
    ['a key file of the fleet could not be written here; the sidecar retries', 'news', true],
    ['a change of the fleet could not be made here', 'news', true],
    ['a change of the fleet could not be made here', 'news', true],
  ]);
});

test('a change whose packagers cannot be asked for is a 202 all the same', async () => {
  const { api, fleet, sidecar } = await startInFleet();
  await api.get('/api/fleet').expect(200);
  fleet.engine.before = ({ method }) => {
    if (method === 'list') throw new EngineError('unavailable', 'http://etcd-1:2379 does not answer');
  };
  const { headers } = await api.post(`${PATH}?wait=1`).send(PLAIN).expect(202);
  expect(headers.warning).toBe(
    '299 - "fleet_behind: it is not known which packagers have it, because the engine of the fleet cannot be read; the fleet has accepted the change, and each packager takes it as soon as it can. GET /api/fleet/{streamid} lists who has it"',
  );
  const [line] = (await sidecar.logEntries()).filter(({ level }) => level === 'error');
  expect(line).toMatchObject({
    message: 'it is not known which packagers have a change of the fleet',
    requestId: headers['x-request-id'],
    cause: { message: 'fleet_unavailable', cause: { message: 'http://etcd-1:2379 does not answer' } },
  });
});

test('a service that stops ends all waits, and starts none', async () => {
  const wait = createFleetWait({ waitFor: () => new Promise(() => undefined) }, recordedLog().log);
  const fleet = { revision: 7, isTaken: true };
  const [change] = [{ streamId: 'news', fleet }] as unknown as Parameters<typeof wait.awaitOutcome>[0];
  const settled = [wait.awaitOutcome(change ? [change] : [], 30, 'request-1')];
  wait.endWaits();
  settled.push(wait.awaitOutcome(change ? [change] : [], 30, 'request-2'));
  const description =
    'it is not known which packagers have it, because the service is stopping; the fleet has accepted the change, and each packager takes it as soon as it can. GET /api/fleet/{streamid} lists who has it';
  const expected = {
    status: 202,
    warnings: [{ severity: 'warning', code: 'fleet_behind', description }],
    headers: { 'x-fleet-revision': '7' },
  };
  expect(await Promise.all(settled)).toEqual([expected, expected]);
});

describe('a batch', () => {
  const BATCH = {
    streams: [
      { streamid: 'news', ...PLAIN },
      { streamid: 'sports', ...POST_MANUAL },
      { streamid: '.faulty', ...POST_MANUAL },
    ],
  };

  test('waits once, for all that it changed and all that was so already', async () => {
    const { api, fleet, revisionOf } = await startInFleet();
    await api.post(PATH).send(PLAIN).expect(200);
    const { headers, body } = await api.post('/api/keyfiles?wait=3').send(BATCH).expect(200);
    expect([headers['x-fleet-revision'], headers.warning, headers['cache-control']]).toEqual([
      revisionOf('sports'),
      undefined,
      'no-store',
    ]);
    expect(body.summary).toEqual({ created: 1, changed: 0, unchanged: 1, failed: 1 });
    expect(fleet.waits).toHaveLength(1);
    const changes = [...(fleet.waits[0]?.changes ?? [])].sort((one, other) => one.revision - other.revision);
    expect([changes, fleet.waits[0]?.seconds]).toEqual([
      [
        { streamId: 'news', revision: Number(revisionOf('news')) },
        { streamId: 'sports', revision: Number(revisionOf('sports')) },
      ],
      3,
    ]);
  });

  test('is a 202 with all its results when a packager is behind', async () => {
    const { api, fleet, revisionOf } = await startInFleet({
      others: [{ name: 'origin-2', streams: ['sports'] }],
    });
    fleet.hold('origin-2');
    const { headers, body } = await api.post('/api/keyfiles?wait=1').send(BATCH).expect(202);
    expect([headers.warning, headers['x-fleet-revision']]).toEqual([
      behind('origin-2'),
      revisionOf('sports'),
    ]);
    expect(body.results).toMatchObject([
      { streamid: 'news', result: 'created', etag: etagOf(Buffer.from(PLAIN_FILE)) },
      { streamid: 'sports', result: 'created', etag: etagOf(Buffer.from(POST_MANUAL_FILE)) },
      { streamid: null, result: 'failed', errors: [{ code: 'invalid_stream_id' }] },
    ]);
  });

  test('warns of each stream that the folder here has not', async () => {
    const { api, fleet } = await startInFleet();
    fleet.faultHere = apiError('insufficient_storage');
    const streams = [{ streamid: 'news', ...PLAIN }];
    const { headers, body } = await api.post('/api/keyfiles').send({ streams }).expect(202);
    expect(headers.warning).toBeUndefined();
    expect(body.results[0].warnings.map(({ code }: { code: string }) => code)).toEqual(['fleet_not_here']);
  });

  test('of nothing does not wait', async () => {
    const { api, fleet } = await startInFleet();
    const { headers } = await api.post('/api/keyfiles?wait=1').send({ streams: [] }).expect(200);
    expect([headers['x-fleet-revision'], fleet.waits]).toEqual([undefined, []]);
  });

  test('that waits keeps no other from being written', async () => {
    const { api, fleet } = await startInFleet({ secondMs: 1000 });
    fleet.hold('origin-2');
    const send = (streamid: string, query = '') =>
      api
        .post(`/api/keyfiles${query}`)
        .send({ streams: [{ streamid, ...POST_MANUAL }] })
        .then((answer) => answer);
    const waiting: ReturnType<typeof send>[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      waiting.push(send(name, '?wait=30'));
      await until(() => fleet.waits.length === waiting.length);
    }
    expect((await send('f')).status).toBe(200);
    fleet.release('origin-2');
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });
});

test('an entry that is not written here is no key file here: it is not counted, and contradicts none', async () => {
  const { api, fleet, keyFiles, audited } = await startInFleet({
    here: { name: 'origin-1', streams: ['a/'] },
  });
  const otherKey = { ...PLAIN, cenc: { ...PLAIN.cenc, contentkey: Buffer.alloc(16, 7).toString('base64') } };
  delete (otherKey as { playready?: object }).playready;
  await api.post('/api/keyfile/b%2Fnews').send(PLAIN).expect(200);
  expect(await keyFiles()).toBe(0);
  const { headers } = await api.post('/api/keyfile/a%2Fnews').send(otherKey).expect(200);
  expect(headers.warning).not.toContain('key_id_reused');
  expect(await keyFiles()).toBe(1);
  fleet.faultHere = apiError('insufficient_storage');
  await api.post('/api/keyfile/a%2Flater').send(PLAIN).expect(202);
  await api.delete('/api/keyfile/b%2Fnews').expect(200);
  expect(await keyFiles()).toBe(1);
  expect(await audited(4)).toEqual([
    ['put', 'default', 'b/news', 'created', undefined],
    ['put', 'default', 'a/news', 'created', undefined],
    ['put', 'default', 'a/later', 'created', undefined],
    ['delete', 'default', 'b/news', 'deleted', undefined],
  ]);
});

test('a key file from the fleet is counted, audited with its origin, and known by its keys', async () => {
  const { api, fleet, keyFiles, audited } = await startInFleet();
  await fleet.arrive('news', Buffer.from(PLAIN_FILE), 'origin-3', { key: 'site-b', address: '192.0.2.7' });
  expect(await keyFiles()).toBe(1);
  const cenc = { ...PLAIN.cenc, contentkey: Buffer.alloc(16, 7).toString('base64') };
  const { headers } = await api.post('/api/keyfile/sports').send({ cenc }).expect(200);
  expect(headers.warning).toContain(
    'key_id_reused: cenc.keyid is the key id of another content key in the key file of news',
  );
  await fleet.arrive('news', Buffer.from(POST_MANUAL_FILE), 'origin-2');
  await fleet.arrive('news', undefined, 'origin-2');
  expect(await keyFiles()).toBe(1);
  const { engine } = fleet;
  const change = engine.change.bind(engine);
  for (const stream of ['late', 'early']) {
    const isHere = () => until(async () => (await keyFiles()) === (stream === 'late' ? 2 : 3));
    engine.change = async (...asked) => {
      await change(...asked);
      if (stream === 'early') await isHere();
      throw new EngineError('unknown', 'its answer was lost');
    };
    await api.post(`/api/keyfile/${stream}`).send(PLAIN).expect(504);
    await isHere();
  }
  expect(await audited(8)).toEqual([
    ['put', 'site-b', 'news', 'created', 'origin-3'],
    ['put', 'default', 'sports', 'created', undefined],
    ['put', 'default', 'news', 'changed', 'origin-2'],
    ['delete', 'default', 'news', 'deleted', 'origin-2'],
    ['refused', 'default', 'late', 'fleet_outcome_unknown', undefined],
    ['put', 'default', 'late', 'created', 'origin-1'],
    ['put', 'default', 'early', 'created', 'origin-1'],
    ['refused', 'default', 'early', 'fleet_outcome_unknown', undefined],
  ]);
});

test('a stop ends what a batch asks of an engine that is silent, and each stream is audited', async () => {
  const { api, fleet, sidecar, audited } = await startInFleet();
  const { engine } = fleet;
  await until(() => sidecar.api.get('/readyz').then(({ status }) => status === 200));
  const close = engine.close.bind(engine);
  let asked = 0;
  // Requests to a silent server end when the connections are closed.
  const closed = new Promise<void>((resolve) => {
    engine.close = () => {
      close();
      resolve();
    };
  });
  engine.before = ({ keys }) => {
    if (keys.every((key) => !key.endsWith('keys/news'))) return;
    asked += 1;
    return closed;
  };
  const batch = api.post('/api/keyfiles').send({ groups: [{ members: ['news'], ...PLAIN }] });
  const cut = batch.then(
    () => undefined,
    ({ code }) => code,
  );
  await until(() => asked === 1);
  await sidecar.stop();
  expect(await cut).toBe('ECONNRESET');
  expect(await audited(1)).toEqual([['refused', 'default', 'news', 'fleet_unavailable', undefined]]);
});
