import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import { onceForAll, temporaryFolder } from '../../support/after-test';
import { CENC_ONLY, POST_MANUAL } from '../../support/post-manual';
import { seriesOf } from '../../support/start-observed';
import {
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  SHARED_SECRET,
  startProvisioning,
} from '../../support/start-provisioning';
import { API_KEY, apiKeysFile, startSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const ROUTE = '/api/keyfile/:streamid';
const FAULTY = 'packagerdrmapi_key_files_faulty{severity="error"}';

const { cenc, fairplay } = POST_MANUAL;
const SECRETS = [
  ...[API_KEY, 'a-wrong-key-that-someone-sent', PROVIDED.clientApiKey, SHARED_SECRET],
  ...[cenc.contentkey, fairplay.key, fairplay.iv],
  ...[PLAIN_CENC.content_key ?? '', PLAIN_FAIRPLAY.key_hex ?? '', PLAIN_FAIRPLAY.iv_hex ?? ''],
];

function secretsIn(text: string): string[] {
  return SECRETS.filter((secret) => text.toLowerCase().includes(secret.slice(0, 12).toLowerCase()));
}

/** The sidecar's series without those of durations, which the tests of the metrics themselves look at. */
async function countsOf(unauthenticated: { get(path: string): PromiseLike<{ text: string }> }) {
  const { text } = await unauthenticated.get('/metrics');
  const counts = Object.entries(seriesOf(text)).filter(([name]) => !name.includes('_seconds_sum'));
  return Object.fromEntries(counts);
}

test('counts what a day of a sidecar brings, and nothing of whom and what', async () => {
  const keyFilesPath = await temporaryFolder();
  await fs.outputFile(join(keyFilesPath, 'old.key'), 'name: value\n');
  await fs.outputFile(join(keyFilesPath, 'site', 'older.key'), 'name: value\n');
  const { sidecar } = await startProvisioning({ keyFilesPath });
  const { api, unauthenticated } = sidecar;
  await api.post('/api/keyfile/secret-stream').send(POST_MANUAL).expect(200);
  await api.post('/api/keyfile/secret-stream').send(CENC_ONLY).expect(200);
  await api.post('/api/keyfile/provided').send(PROVIDED).expect(200);
  await api.get('/api/keyfile/secret-stream').expect(200);
  await api.get('/api/keyfile/absent').expect(404);
  await api.delete('/api/keyfile/provided').expect(200);
  await api.delete('/api/keyfile/provided').expect(404);
  await unauthenticated
    .get('/api/keyfile/secret-stream')
    .set('x-api-key', 'a-wrong-key-that-someone-sent')
    .expect(401);
  await api.post('/api/keyfile/secret-stream').set('if-match', '"other"').send(CENC_ONLY).expect(412);
  await unauthenticated.get('/readyz').expect(200);
  expect(await countsOf(unauthenticated)).toMatchObject({
    [`packagerdrmapi_http_requests_total{method="POST",route="${ROUTE}",status="200"}`]: 3,
    [`packagerdrmapi_http_requests_total{method="GET",route="${ROUTE}",status="404"}`]: 1,
    'packagerdrmapi_http_requests_total{method="GET",route="unmatched",status="401"}': 1,
    [`packagerdrmapi_http_request_duration_seconds_count{method="POST",route="${ROUTE}"}`]: 4,
    'packagerdrmapi_upstream_requests_total{upstream="config_service",status="200"}': 1,
    'packagerdrmapi_upstream_requests_total{upstream="key_provider",status="200"}': 2,
    'packagerdrmapi_upstream_request_duration_seconds_count{upstream="key_provider"}': 2,
    'packagerdrmapi_upstream_last_answer_timestamp_seconds{upstream="config_service"}': expect.any(Number),
    'packagerdrmapi_upstream_last_answer_timestamp_seconds{upstream="key_provider"}': expect.any(Number),
    'packagerdrmapi_write_phase_duration_seconds_count{phase="sync"}': 3,
    'packagerdrmapi_key_file_changes_total{action="put",result="created"}': 2,
    'packagerdrmapi_key_file_changes_total{action="delete",result="deleted"}': 1,
    'packagerdrmapi_key_file_changes_total{action="refused",result="unauthorized"}': 1,
    packagerdrmapi_key_files: 3,
    [FAULTY]: 2,
    'packagerdrmapi_key_files_faulty{severity="warning"}': expect.any(Number),
    'packagerdrmapi_failures_total{code="precondition_failed"}': 1,
    'packagerdrmapi_refused_total{reason="unauthorized"}': 1,
  });
  const { text } = await unauthenticated.get('/metrics');
  expect(secretsIn(text)).toEqual([]);
  expect(text).not.toMatch(/secret-stream|provided|default|127\.0\.0\.1/);
});

test('audits each change and each refused one, with key ids and without key material', async () => {
  const path = join(await temporaryFolder(), 'audit.log');
  const { sidecar, upstream } = await startProvisioning({ audit: path });
  const { api } = sidecar;
  await api.post('/api/keyfile/live').set('x-request-id', 'one').send(POST_MANUAL).expect(200);
  await api.post('/api/keyfile/live').set('x-request-id', 'two').send(PROVIDED).expect(200);
  upstream.on(PATHS.config, { status: 404, body: {} });
  await api.post('/api/keyfile/live').set('x-request-id', 'three').send(PROVIDED).expect(422);
  await api.delete('/api/keyfile/live').set('x-request-id', 'four').expect(200);
  const text = () => readFileSync(path, 'utf8');
  await until(() => text().split('\n').length === 5);
  const common = {
    time: '1970-01-01T00:00:00.000Z',
    audit: true,
    key: 'default',
    address: '127.0.0.1',
    stream_id: 'live',
  };
  const NONE = { old_key_id: null, new_key_id: null };
  const [first, second] = ['44da52ef-4523-098e-6854-777ee322681d', 'a8c4ee99-4cf9-76b8-1bba-c598f9f8b92c'];
  expect(
    text()
      .split('\n')
      .slice(0, -1)
      .map((line): unknown => JSON.parse(line)),
  ).toEqual([
    { ...common, ...NONE, action: 'put', result: 'created', new_key_id: first, request_id: 'one' },
    { ...common, action: 'put', result: 'changed', old_key_id: first, new_key_id: second, request_id: 'two' },
    { ...common, ...NONE, action: 'refused', result: 'client_unknown', request_id: 'three' },
    { ...common, ...NONE, action: 'delete', result: 'deleted', old_key_id: second, request_id: 'four' },
  ]);
  expect(secretsIn(text())).toEqual([]);
});

test('distinguishes calls that it cancelled from calls that were not answered', async () => {
  const { sidecar, upstream } = await startProvisioning();
  upstream.on(PATHS.config, { status: 404, body: {} });
  upstream.on(PATHS.cenc, 'hang');
  upstream.on(PATHS.fairplay, 'hang');
  await sidecar.api.post('/api/keyfile/live').send(PROVIDED).expect(422);
  expect(await countsOf(sidecar.unauthenticated)).toMatchObject({
    'packagerdrmapi_upstream_requests_total{upstream="config_service",status="404"}': 1,
    'packagerdrmapi_upstream_requests_total{upstream="key_provider",status="cancelled"}': 2,
  });
});

test('counts the key files of a folder that comes later when it is there', async () => {
  const keyFilesPath = join(await temporaryFolder(), 'keys');
  const { advance, unauthenticated } = await startSidecar({ keyFilesPath });
  await unauthenticated.get('/readyz').expect(503);
  expect(await countsOf(unauthenticated)).not.toHaveProperty('packagerdrmapi_key_files');
  await fs.outputFile(join(keyFilesPath, 'old.key'), 'name: value\n');
  advance(1000);
  await unauthenticated.get('/readyz').expect(200);
  await until(async () => {
    advance(1000);
    const counts = await countsOf(unauthenticated);
    return counts.packagerdrmapi_key_files === 1 && counts[FAULTY] === 1;
  });
});

test('serves and writes while the disk of the audit is full', async () => {
  const { api, unauthenticated } = await startSidecar({ audit: '/dev/full' });
  for (let count = 0; count < 20; count += 1) {
    await api.post(`/api/keyfile/live-${count}`).send(CENC_ONLY).expect(200);
  }
  expect(await countsOf(unauthenticated)).toMatchObject({
    packagerdrmapi_key_files: 20,
    packagerdrmapi_audit_lines_waiting: 20,
    packagerdrmapi_audit_lines_lost_total: 0,
  });
});

test('is quiet in the log about scrapes', async () => {
  const sidecar = await startSidecar();
  await sidecar.unauthenticated.get('/metrics').expect(200);
  expect(await sidecar.logEntries()).toEqual([
    expect.objectContaining({ level: 'debug', route: '/metrics' }),
  ]);
});

test('answers 404 to /metrics when metrics are off', async () => {
  const { api, unauthenticated } = await startSidecar({ metrics: false });
  await api.post('/api/keyfile/live').send(CENC_ONLY).expect(200);
  await unauthenticated.get('/metrics').expect(404);
});

describe('audited refusals', () => {
  const PATH = '/api/keyfile/live';
  const READER = 'the-key-of-a-reader-0123456789';

  const started = onceForAll(async () => {
    const file = join(await temporaryFolder(), 'audit.log');
    const keys = await apiKeysFile({ name: 'reader', key: READER, scope: 'read', streams: ['live'] });
    return { sidecar: await startSidecar({ audit: file, ...keys }), lines: linesOf(file) };
  });

  /** The lines of an audit file since the last call once there are so many, without what is the same in all. */
  function linesOf(file: string) {
    let seen = 0;
    return async (count: number) => {
      const read = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean);
      await until(async () => (await read()).length >= seen + count);
      const added = (await read()).slice(seen);
      seen += added.length;
      return added.map((line) => {
        const { action, key, stream_id, result } = JSON.parse(line);
        return [action, key, stream_id, result];
      });
    };
  }

  /** Asks, and then writes a file of another stream, whose line shows that there is no other one. */
  async function askAndGoOn(...[key, method, path, body]: Parameters<typeof ask>) {
    const { sidecar, lines } = await started();
    await fs.emptyDir(sidecar.folder);
    await ask(key, method, path, body);
    await sidecar.api.post('/api/keyfile/after').send(CENC_ONLY).expect(200);
    return lines;
  }

  type Method = 'get' | 'post' | 'delete';
  type Body = object | string | undefined;

  /** Sends a request with the key of that name; a text is sent as JSON, or as HTML where it is that. */
  async function ask(key: string | null, method: Method, path: string, body: Body) {
    const { sidecar } = await started();
    const type = String(body).startsWith('<') ? 'text/html' : 'application/json';
    const sent = sidecar.unauthenticated[method](path);
    if (key !== null) sent.set('x-api-key', key === 'reader' ? READER : API_KEY);
    await (body === undefined ? sent : sent.type(type).send(body));
  }

  const BATCH = '/api/keyfiles';

  test.each<[key: string | null, method: Method, path: string, body: Body, id: string | null, code: string]>([
    [null, 'post', PATH, CENC_ONLY, null, 'unauthorized'],
    [null, 'get', PATH, undefined, null, 'unauthorized'],
    [null, 'get', '/api?x', undefined, null, 'unauthorized'],
    ['reader', 'get', '/api/keyfile/news', undefined, 'news', 'forbidden'],
    ['reader', 'post', PATH, CENC_ONLY, 'live', 'forbidden'],
    ['reader', 'delete', PATH, undefined, 'live', 'forbidden'],
    ['reader', 'post', BATCH, { streams: [] }, null, 'forbidden'],
    ['default', 'post', PATH, { cenc: {} }, 'live', 'invalid_body'],
    ['default', 'post', `${PATH}?dryrun=false`, { cenc: {} }, 'live', 'invalid_body'],
    ['default', 'post', PATH, '{', 'live', 'malformed_json'],
    ['default', 'post', `${PATH}/`, '{', 'live', 'malformed_json'],
    ['default', 'post', '/API/KeyFile/live', '{', 'live', 'malformed_json'],
    ['default', 'post', PATH, '<p>', 'live', 'unsupported_media_type'],
    ['default', 'post', '/api/keyfile/.x', CENC_ONLY, null, 'invalid_stream_id'],
    ['default', 'post', BATCH, { streams: [{ streamid: 'live', cenc: {} }] }, 'live', 'invalid_body'],
    ['default', 'post', BATCH, {}, null, 'invalid_body'],
    ['default', 'post', BATCH, { streams: [{}] }, null, 'invalid_body'],
  ])('has one line for a request with the key %s: %s %s %j', async (key, method, path, body, id, code) => {
    const lines = await askAndGoOn(key, method, path, body);
    expect(await lines(2)).toEqual([
      ['refused', key, id, code],
      ['put', 'default', 'after', 'created'],
    ]);
  });

  test.each<[key: string | null, method: Method, path: string, body: Body]>([
    ['default', 'get', PATH, undefined],
    ['default', 'post', '/api/check', '{'],
    ['default', 'post', `${PATH}?dryrun=true`, { cenc: {} }],
    ['default', 'post', `${PATH}?%64ryrun=true`, { cenc: {} }],
    ['default', 'post', `${BATCH}?dryrun=true`, { streams: [{ streamid: 'live', cenc: {} }, 7] }],
    [null, 'post', '/elsewhere', {}],
  ])('has no line for a request with the key %s: %s %s %j', async (key, method, path, body) => {
    const lines = await askAndGoOn(key, method, path, body);
    expect(await lines(1)).toEqual([['put', 'default', 'after', 'created']]);
  });

  test('has a line for each member of a group that has no keys', async () => {
    const file = join(await temporaryFolder(), 'audit.log');
    const { sidecar } = await startProvisioning({ audit: file });
    const group = { members: ['a', 'b'], ...PROVIDED, contentId: 'unknown' };
    await sidecar.batch({ groups: [group] });
    expect(await linesOf(file)(2)).toEqual([
      ['refused', 'default', 'a', 'key_provider_failed'],
      ['refused', 'default', 'b', 'key_provider_failed'],
    ]);
  });
});
