import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { CENC_ONLY } from '../../support/post-manual';
import { PROVIDED, startProvisioning } from '../../support/start-provisioning';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const PATH = '/api/keyfile/live';
const READER = 'the-key-of-a-reader-0123456789';

async function startAudited() {
  const file = join(await temporaryFolder(), 'audit.log');
  const apiKeysFile = join(await temporaryFolder(), 'keys.json');
  const keys = [{ name: 'reader', key: READER, scope: 'read', streams: ['live'] }];
  await fs.writeJson(apiKeysFile, { keys });
  const sidecar = await startSidecar({ audit: file, apiKeysFile });
  return { sidecar, lines: (count: number) => linesOf(file, count) };
}

/** The lines of an audit file once there are so many, without what is the same in all. */
async function linesOf(file: string, count: number) {
  const read = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  await until(async () => (await read()).length >= count);
  return (await read()).map((line) => {
    const { action, key, stream_id, result } = JSON.parse(line);
    return [action, key, stream_id, result];
  });
}

type Ask = (sidecar: TestSidecar) => Promise<unknown>;
const reader = ({ unauthenticated }: TestSidecar) => ({
  get: (path: string) => unauthenticated.get(path).set('x-api-key', READER),
  post: (path: string) => unauthenticated.post(path).set('x-api-key', READER),
  delete: (path: string) => unauthenticated.delete(path).set('x-api-key', READER),
});

test.each<[what: string, ask: Ask, line: (string | null)[]]>([
  [
    'a POST without a key',
    ({ unauthenticated }) => unauthenticated.post(PATH).send(CENC_ONLY),
    [null, null, 'unauthorized'],
  ],
  ['a GET without a key', ({ unauthenticated }) => unauthenticated.get(PATH), [null, null, 'unauthorized']],
  [
    'a list without a key',
    ({ unauthenticated }) => unauthenticated.get('/api/keyfiles'),
    [null, null, 'unauthorized'],
  ],
  [
    'a query at the root of the API without a key',
    ({ unauthenticated }) => unauthenticated.get('/api?x'),
    [null, null, 'unauthorized'],
  ],
  ['a GET out of reach', (s) => reader(s).get('/api/keyfile/news'), ['reader', 'news', 'forbidden']],
  [
    'a POST with a key that reads',
    (s) => reader(s).post(PATH).send(CENC_ONLY),
    ['reader', 'live', 'forbidden'],
  ],
  ['a DELETE with a key that reads', (s) => reader(s).delete(PATH), ['reader', 'live', 'forbidden']],
  [
    'a batch with a key that reads',
    (s) => reader(s).post('/api/keyfiles').send({ streams: [] }),
    ['reader', null, 'forbidden'],
  ],
  [
    'a body with a fault',
    ({ api }) => api.post(PATH).send({ cenc: {} }),
    ['default', 'live', 'invalid_body'],
  ],
  [
    'a body with a fault and a query',
    ({ api }) => api.post(`${PATH}?dryrun=false`).send({ cenc: {} }),
    ['default', 'live', 'invalid_body'],
  ],
  [
    'a malformed body',
    ({ api }) => api.post(PATH).type('json').send('{'),
    ['default', 'live', 'malformed_json'],
  ],
  [
    'a malformed body, and a slash after the path',
    ({ api }) => api.post(`${PATH}/`).type('json').send('{'),
    ['default', 'live', 'malformed_json'],
  ],
  [
    'a body of another type',
    ({ api }) => api.post(PATH).type('html').send('x'),
    ['default', 'live', 'unsupported_media_type'],
  ],
  [
    'a stream id that is none',
    ({ api }) => api.post('/api/keyfile/.x').send(CENC_ONLY),
    ['default', null, 'invalid_stream_id'],
  ],
  [
    'a file that has changed',
    ({ api }) => api.post(PATH).set('if-match', '"x"').send(CENC_ONLY),
    ['default', 'live', 'precondition_failed'],
  ],
  [
    'a batch without streams',
    ({ api }) => api.post('/api/keyfiles').send({}),
    ['default', null, 'invalid_body'],
  ],
  [
    'a stream of a batch',
    ({ api }) => api.post('/api/keyfiles').send({ streams: [{ streamid: 'live', cenc: {} }] }),
    ['default', 'live', 'invalid_body'],
  ],
  [
    'an entry of a batch without a stream',
    ({ api }) => api.post('/api/keyfiles').send({ streams: [{}] }),
    ['default', null, 'invalid_body'],
  ],
])('has one line for %s', async (_what, ask, line) => {
  const { sidecar, lines } = await startAudited();
  await ask(sidecar);
  // What comes after shows that there is no second line.
  await sidecar.api.post('/api/keyfile/after').send(CENC_ONLY).expect(200);
  expect(await lines(2)).toEqual([
    ['refused', ...line],
    ['put', 'default', 'after', 'created'],
  ]);
});

test.each<[what: string, ask: Ask]>([
  ['a GET of an absent stream', ({ api }) => api.get(PATH)],
  ['a check', ({ api }) => api.post('/api/check').type('json').send('{')],
  ['a faulty dry run', ({ api }) => api.post(`${PATH}?dryrun=true`).send({ cenc: {} })],
  ['a faulty dry run in percent-encoding', ({ api }) => api.post(`${PATH}?%64ryrun=true`).send({ cenc: {} })],
  [
    'a faulty stream in the dry run of a batch',
    ({ api }) => api.post('/api/keyfiles?dryrun=true').send({ streams: [{ streamid: 'live', cenc: {} }, 7] }),
  ],
  ['a path that is none', ({ unauthenticated }) => unauthenticated.post('/elsewhere').send({})],
])('has no line for %s', async (_what, ask) => {
  const { sidecar, lines } = await startAudited();
  await ask(sidecar);
  await sidecar.api.post('/api/keyfile/after').send(CENC_ONLY).expect(200);
  expect(await lines(1)).toEqual([['put', 'default', 'after', 'created']]);
});

test('has a line for each member of a group that has no keys', async () => {
  const file = join(await temporaryFolder(), 'audit.log');
  const { sidecar } = await startProvisioning({ audit: file });
  const group = { members: ['a', 'b'], ...PROVIDED, contentId: 'unknown' };
  await sidecar.api
    .post('/api/keyfiles')
    .send({ groups: [group] })
    .expect(200);
  expect(await linesOf(file, 2)).toEqual([
    ['refused', 'default', 'a', 'key_provider_failed'],
    ['refused', 'default', 'b', 'key_provider_failed'],
  ]);
});
