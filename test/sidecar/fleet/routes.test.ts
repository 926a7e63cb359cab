import { join } from 'node:path';
import fs from 'fs-extra';
import { ALL_ERRORS, apiError } from '../../../src/sidecar/errors';
import { onceForAll } from '../../support/after-test';
import { createFakeFleet } from '../../support/fake-fleet';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { apiKeysFile, errorBody, startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { gate, until } from '../../support/until';

const READER = 'the-key-of-a-reader-0123456789';
const SITE = 'the-key-of-a-site-0123456789';

/** A sidecar of a fleet, with a key that reads only and one of a site. */
async function startInFleet(options?: Parameters<typeof createFakeFleet>[0]) {
  const fleet = createFakeFleet(options);
  const keys = await apiKeysFile(
    { name: 'reader', key: READER, scope: 'read' },
    { name: 'site-a', key: SITE, scope: 'write', streams: ['a/'] },
  );
  const sidecar = await startSidecar(keys, undefined, { fleet: fleet.open });
  return { fleet, sidecar, api: sidecar.api };
}

/** For requests that change nothing. */
const shared = onceForAll(async () => {
  const started = await startInFleet();
  started.fleet.setLive('origin-2', false);
  return started;
});

const ROUTES = [
  ['get', '/api/fleet'],
  ['get', '/api/fleet/news'],
  ['post', '/api/fleet/import'],
  ['post', '/api/fleet/reseal'],
  ['delete', '/api/fleet/packagers/origin-2'],
] as const;

test('without a fleet, each route says how to have one', async () => {
  const { api } = await startSidecar();
  const missing = errorBody('fleet_not_configured', ALL_ERRORS.fleet_not_configured.says);
  for (const [method, path] of ROUTES) await api[method](path).expect(404, missing);
});

const LIMITED = 'The API key site-a is limited to some streams, but the API of the fleet covers all.';
const READ_ONLY = 'The API key reader is read-only.';
const FORBIDDEN = [
  ...ROUTES.map(([method, path]) => [method, path, SITE, LIMITED] as const),
  ...ROUTES.slice(2).map(([method, path]) => [method, path, READER, READ_ONLY] as const),
];

test.each(FORBIDDEN)('%s %s is refused to %s', async (method, path, apiKey, description) => {
  const { sidecar, fleet } = await shared();
  const { status, body } = await sidecar.unauthenticated[method](path).set('x-api-key', apiKey);
  expect([status, body.errors[0].code]).toEqual([403, 'forbidden']);
  expect(body.errors[0].description.startsWith(description)).toBe(true);
  expect(fleet.calls).toEqual(['start']);
});

test('an API key that may read all sees the fleet, which no cache stores', async () => {
  const { sidecar, fleet } = await startInFleet({ others: [{ name: 'origin-2', streams: ['b/'] }] });
  await sidecar.api.post('/api/keyfile/a%2Fnews').send(CENC_ONLY).expect(200);
  fleet.hold('origin-2', 'kept');
  await sidecar.api.post('/api/keyfile/b%2Fnews').send(CENC_ONLY).expect(200);
  const { body, headers } = await sidecar.unauthenticated
    .get('/api/fleet')
    .set('x-api-key', READER)
    .expect(200);
  expect(headers['cache-control']).toBe('no-store');
  expect(body).toMatchObject({
    name: 'origin-1',
    packagers: [
      { name: 'origin-1', lacks: [] },
      { name: 'origin-2', streams: ['b/'], lacks: [{ streamid: 'b/news', why: 'kept' }] },
    ],
    findings: [{ severity: 'warning', code: 'fleet_kept' }],
  });
});

test.each(['import', 'reseal', 'packagers', 'a/import'])(
  'a stream may be called %s, as a task or a part of the fleet is',
  async (streamid) => {
    const { api, fleet } = await startInFleet();
    fleet.hold('origin-3');
    const encoded = encodeURIComponent(streamid);
    const post = await api.post(`/api/keyfile/${encoded}`).send(CENC_ONLY).expect(200);
    const { body, headers } = await api.get(`/api/fleet/${encoded}`).expect(200);
    expect(headers['cache-control']).toBe('no-store');
    const revision = Number(post.headers['x-fleet-revision']);
    expect(body).toMatchObject({ streamid, revision, state: 'file', etag: post.headers.etag });
    expect(body.packagers[2]).toEqual({ name: 'origin-3', live: true, has: false, why: 'behind' });
  },
);

test('a stream that the fleet never had is a 404, a deleted one is described', async () => {
  const { api } = await startInFleet();
  const { body: absent } = await api.get('/api/fleet/news').expect(404);
  expect(absent).toEqual(errorBody('fleet_entry_not_found', 'The fleet has no entry for this stream.'));
  await api.post('/api/keyfile/news').send(CENC_ONLY).expect(200);
  const { headers } = await api.delete('/api/keyfile/news').expect(200);
  const { body } = await api.get('/api/fleet/news').expect(200);
  const revision = Number(headers['x-fleet-revision']);
  expect([body.state, body.etag, body.revision]).toEqual(['deleted', null, revision]);
});

test.each([
  ['put', '/api/fleet', 'GET, HEAD'],
  ['delete', '/api/fleet/news', 'GET, HEAD'],
  ['delete', '/api/fleet/import', 'GET, HEAD, POST'],
  ['put', '/api/fleet/Reseal', 'GET, HEAD, POST'],
  ['get', '/api/fleet/packagers/origin-2', 'DELETE'],
] as const)('%s %s is refused with the methods that there are', async (method, path, allow) => {
  const { api } = await shared();
  const { body, headers } = await api[method](path).expect(405);
  expect(headers.allow).toBe(allow);
  expect(body.errors[0].code).toBe('method_not_allowed');
});

const LATER_FOUND = 'found is for the first step of an import: leave it out where after is given.';

test.each([
  ['get', '/api/fleet?prefix=a', 'prefix is not '],
  ['post', '/api/fleet/import?limt=1', 'limt is not '],
  ['post', '/api/fleet/import?limit=1.5', 'limit: '],
  ['post', '/api/fleet/import?after=a&after=b', 'after: is given twice. Nothing was changed.'],
  ['post', '/api/fleet/import?found=yes', 'found: '],
  ['post', '/api/fleet/import?found=true&after=a', `${LATER_FOUND} Nothing was changed.`],
  ['post', '/api/fleet/reseal?after=%E2%82%AC', 'after: must be a stream id. '],
  ['post', '/api/fleet/reseal?found=true', 'found is not '],
] as const)('%s %s does nothing, and says why: %s', async (method, path, why) => {
  const { api, fleet } = await shared();
  const { status, body } = await api[method](path);
  expect([status, body]).toEqual([400, errorBody('invalid_query', expect.stringContaining(why))]);
  expect(fleet.calls).toEqual(['start']);
});

test.each([
  ['/api/fleet/.news', 'No part of a stream id may start with a dot.'],
  ['/api/fleet/a/b', 'Write the slashes of a stream id as %2F.'],
])('%s is no stream', async (path, description) => {
  const { api } = await shared();
  const { body } = await api.get(path).expect(400);
  expect(body).toEqual(errorBody('invalid_stream_id', description));
});

/** The log lines of a task, without their common fields. */
async function taskLines(sidecar: TestSidecar, message: string) {
  const lines = await sidecar.logEntries();
  return lines
    .filter((line) => line.message === message)
    .map(({ message: _, time: __, level, requestId: ___, ...fields }) => [level, fields]);
}

test('an import and a reseal hand on their step and who asks for it, and are logged', async () => {
  const { api, fleet, sidecar } = await startInFleet();
  for (const name of ['a', 'b', 'c']) await api.post(`/api/keyfile/${name}`).send(CENC_ONLY).expect(200);
  await fleet.arrive('c', Buffer.from('another: file\n'));
  await fs.writeFile(join(sidecar.folder, 'c.key'), CENC_ONLY_FILE);
  await fs.writeFile(join(sidecar.folder, 'd.key'), CENC_ONLY_FILE);
  const { body: imported, headers } = await api.post('/api/fleet/import?limit=3&after=a').expect(200);
  expect(headers['cache-control']).toBe('no-store');
  expect(imported).toEqual({
    imported: 1,
    same: 1,
    refused: [
      {
        streamid: 'c',
        code: 'differs',
        description: expect.stringMatching(/^The fleet has another key file of this stream\./),
      },
    ],
    next: null,
    total: 4,
  });
  const by = { key: 'default', address: '127.0.0.1', requestId: headers['x-request-id'] };
  expect(fleet.entryOf('d')).toMatchObject({ by, isFound: true });
  fleet.sealFormerly('a');
  fleet.spoil('c');
  const { body: first } = await api.post('/api/fleet/reseal?limit=2').expect(200);
  expect(first).toEqual({ resealed: 1, current: 1, unreadable: [], next: 'b', total: 4 });
  const { body: second } = await api.post('/api/fleet/reseal?after=b').expect(200);
  expect(second).toEqual({ resealed: 0, current: 1, unreadable: ['c'], next: null, total: 4 });
  expect(await taskLines(sidecar, 'key files imported into the fleet')).toEqual([
    ['info', { key: 'default', imported: 1, same: 1, refused: 1 }],
  ]);
  expect(await taskLines(sidecar, 'fleet resealed')).toEqual([
    ['info', { key: 'default', resealed: 1, current: 1, unreadable: 0 }],
    ['info', { key: 'default', resealed: 0, current: 1, unreadable: 1 }],
  ]);
});

test('an import founds a lost fleet before its first step, and only if it is asked to', async () => {
  const { api, fleet, sidecar } = await startInFleet();
  await fleet.lose();
  await api.post('/api/fleet/import?limit=1').expect(200);
  expect(fleet.calls).toEqual(['start', 'import']);
  await api.post('/api/fleet/import?found=true').expect(200);
  expect(fleet.calls).toEqual(['start', 'import', 'found', 'import']);
  await api.post('/api/fleet/import?found=true').expect(400);
  expect(await taskLines(sidecar, 'fleet founded again')).toEqual([['info', { key: 'default' }]]);
});

test('a packager that is gone is retired, and no request waits for it any more', async () => {
  const { api, fleet, sidecar } = await startInFleet();
  const retire = (name: string) => api.delete(`/api/fleet/packagers/${name}`);
  const { body: live } = await retire('origin-3').expect(409);
  expect(live.errors[0].code).toBe('packager_live');
  fleet.setLive('origin-3', false);
  await api.post('/api/keyfile/news?wait=1').send(CENC_ONLY).expect(202);
  const { body, headers } = await retire('origin-3').expect(200);
  expect([body, headers['cache-control']]).toEqual([{ name: 'origin-3', retired: true }, 'no-store']);
  await api.post('/api/keyfile/news?wait=1').send(CENC_ONLY).expect(200);
  const { body: gone } = await retire('origin-3').expect(404);
  expect(gone.errors[0].code).toBe('packager_not_found');
  expect(await taskLines(sidecar, 'packager retired from the fleet')).toEqual([
    ['info', { key: 'default', packager: 'origin-3' }],
  ]);
});

test.each([
  ['post', '/api/fleet/import'],
  ['post', '/api/fleet/reseal'],
  ['get', '/api/fleet/news'],
  ['delete', '/api/fleet/packagers/origin-2'],
] as const)('%s %s says it when the engine is away', async (method, path) => {
  const { api, fleet, sidecar } = await startInFleet();
  await fs.writeFile(join(sidecar.folder, 'news.key'), CENC_ONLY_FILE);
  fleet.fault = apiError('fleet_unavailable');
  const { status, body } = await api[method](path);
  expect([status, body]).toEqual([503, errorBody('fleet_unavailable', ALL_ERRORS.fleet_unavailable.says)]);
});

test('the sidecar is ready when it has every key file of the fleet', async () => {
  const { api, fleet } = await startInFleet();
  const { opened: isHeld, open: join } = gate();
  fleet.engine.before = () => isHeld;
  const { body } = await api.get('/readyz').expect(503);
  expect(body).toEqual(
    errorBody('fleet_joining', 'This sidecar has not yet received every key file of the fleet.'),
  );
  join();
  await until(async () => (await api.get('/readyz')).status === 200);
});

test('/fleet is answered without an API key, in a fleet or not', async () => {
  const { unauthenticated } = await startSidecar();
  const { headers } = await unauthenticated.get('/fleet').expect(200);
  expect([headers['content-type'], headers['cache-control']]).toEqual([
    'text/html; charset=utf-8',
    'no-cache',
  ]);
});
