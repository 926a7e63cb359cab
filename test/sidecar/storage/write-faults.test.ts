import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as faulty from '../../support/faulty-fs';
import { CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

jest.mock('node:fs', () => jest.requireActual('../../support/faulty-fs').faultyFs);

/** Errors of the system, and the answers to them. */
const CODES = [
  { code: 'ENOSPC', answer: [507, 'insufficient_storage'] },
  { code: 'EROFS', answer: [500, 'key_files_not_writable'] },
  { code: 'EACCES', answer: [500, 'key_files_not_writable'] },
  { code: 'ENOENT', answer: [500, 'key_files_not_writable'] },
  { code: 'EIO', answer: [500, 'key_files_not_writable'] },
  { code: 'EMFILE', answer: [503, 'too_many_open_files'] },
  { code: 'EXDEV', answer: [500, 'server_error'] },
];

/** The calls of a write in their order; the second open and close are the folder's. */
const BEFORE_RENAME = [
  { step: 'open of the temporary', call: 'open', nth: 1 },
  { step: 'fchmod', call: 'fchmod', nth: 1 },
  { step: 'write', call: 'write', nth: 1 },
  { step: 'fdatasync', call: 'fdatasync', nth: 1 },
  { step: 'close of the temporary', call: 'close', nth: 1 },
  { step: 'rename', call: 'rename', nth: 1 },
] as const;

const AFTER_RENAME = [
  { step: 'open of the folder', call: 'open', nth: 2 },
  { step: 'fsync of the folder', call: 'fsync', nth: 1 },
  { step: 'close of the folder', call: 'close', nth: 2 },
] as const;

const DELETION = [
  { step: 'open of the folder', call: 'open', nth: 1 },
  { step: 'fsync of the folder', call: 'fsync', nth: 1 },
  { step: 'close of the folder', call: 'close', nth: 1 },
] as const;

const withCodes = (...names: string[]) => CODES.filter(({ code }) => names.includes(code));

/** Each step fails by a code that has an answer of its own, and by one that is tried again; one step by every code. */
const FAILURES = BEFORE_RENAME.flatMap((step) =>
  (step.call === 'write' ? CODES : withCodes('ENOSPC', 'ENOENT')).map((code) => ({ ...step, ...code })),
);

/** A change that was made has the same answer for every error of its folder's sync. */
const NOT_SYNCED = [
  ...AFTER_RENAME.map((step) => ({ ...step, method: 'post' as const })),
  ...DELETION.map((step) => ({ ...step, method: 'delete' as const })),
];

let sidecar: TestSidecar;
const umask = process.umask();

beforeEach(async () => {
  sidecar = await startSidecar();
  writeFileSync(join(sidecar.folder, 'live.key'), CENC_ONLY_FILE);
  // Takes bits of the mode away, so that it has to be set.
  process.umask(0o277);
  faulty.reset();
});
afterEach(() => process.umask(umask));

async function post(streamId: string) {
  const { status, body, text } = await sidecar.api.post(`/api/keyfile/${streamId}`).send(POST_MANUAL);
  return { status, body, text };
}

async function expectServiceGoesOn() {
  faulty.reset();
  expect(await post('live')).toEqual({ status: 200, body: {}, text: POST_MANUAL_FILE });
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
  sidecar.advance(1000);
  expect((await sidecar.unauthenticated.get('/readyz')).status).toBe(200);
}

test.each(FAILURES)(
  'keeps the old file, leaves no temporary and serves the next request when $step fails with $code',
  async ({ call, nth, code, answer }) => {
    faulty.fail(call, nth, code);
    // A temporary that has vanished is made once more; a vanished folder fails again.
    if (code === 'ENOENT') faulty.fail(call, nth + 1, code);
    const { status, body } = await post('live');
    expect([status, body.errors[0].code]).toEqual(answer);
    expect(await sidecar.files()).toEqual({ 'live.key': CENC_ONLY_FILE });
    expect(faulty.openDescriptors()).toEqual([]);
    await expectServiceGoesOn();
  },
);

const NOT_DURABLE =
  '299 - "not_durable: the change is made, but the key-file folder could not be synced: a power cut may undo it. Check the disk, and send the request again"';

/** The log lines and counts of changes by which an operator sees what became of a request. */
async function traces() {
  const { text } = await sidecar.unauthenticated.get('/metrics');
  const entries = await sidecar.logEntries();
  return {
    errors: entries.filter(({ level }) => level === 'error').map(({ message }) => message),
    changes: text.match(/^packagerdrmapi_(?:key_file_changes_total|key_files(?= )).*$/gm),
  };
}

test.each(NOT_SYNCED)(
  'answers a $method with the new or the removed file and a Warning when $step fails',
  async ({ call, nth, method }) => {
    faulty.fail(call, nth, 'EIO');
    const isNew = method === 'post';
    const sent = sidecar.api[method]('/api/keyfile/live').send(isNew ? POST_MANUAL : undefined);
    const { headers } = await sent.expect(200, isNew ? POST_MANUAL_FILE : CENC_ONLY_FILE);
    expect(headers.warning).toBe(NOT_DURABLE);
    expect(await sidecar.files()).toEqual(isNew ? { 'live.key': POST_MANUAL_FILE } : {});
    expect(faulty.openDescriptors()).toEqual([]);
    await expectServiceGoesOn();
    expect((await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL)).headers.warning).toBeUndefined();
  },
);

test('audits and counts a change as made when only the sync of the folder failed, and logs why', async () => {
  faulty.fail('fsync', 1, 'EIO');
  await sidecar.api.post('/api/keyfile/new').send(POST_MANUAL).expect(200);
  faulty.reset();
  faulty.fail('fsync', 1, 'EIO');
  await sidecar.api.delete('/api/keyfile/live').expect(200);
  expect(await traces()).toEqual({
    errors: ['key-file folder not synced', 'key-file folder not synced'],
    changes: [
      'packagerdrmapi_key_file_changes_total{action="put",result="created"} 1',
      'packagerdrmapi_key_file_changes_total{action="delete",result="deleted"} 1',
      'packagerdrmapi_key_files 0',
    ],
  });
});

test('reports which changes of a batch may be undone, and settles them when it is sent again', async () => {
  const batch = { streams: [{ streamid: 'new', ...POST_MANUAL }] };
  const send = async () => (await sidecar.api.post('/api/keyfiles').send(batch)).body.results[0];
  faulty.fail('fsync', 1, 'EIO');
  expect(await send()).toMatchObject({ result: 'created', warnings: [{ code: 'not_durable' }] });
  faulty.reset();
  faulty.fail('fsync', 1, 'EIO');
  expect(await send()).toMatchObject({ result: 'unchanged', warnings: [{ code: 'not_durable' }] });
  faulty.reset();
  expect((await send()).warnings ?? []).toEqual([]);
});

test('answers 404 to a DELETE of a file that another process removed meanwhile', async () => {
  faulty.fail('unlink', 1, 'ENOENT');
  const { status, body } = await sidecar.api.delete('/api/keyfile/live');
  expect([status, body.errors[0].code]).toEqual([404, 'key_file_not_found']);
});

test.each(withCodes('ENOSPC', 'EIO'))(
  'answers no success to a DELETE whose unlink fails with $code',
  async ({ code, answer }) => {
    faulty.fail('unlink', 1, code);
    const { status, body } = await sidecar.api.delete('/api/keyfile/live');
    expect([status, body.errors[0].code]).toEqual(answer);
    expect(await sidecar.files()).toEqual({ 'live.key': CENC_ONLY_FILE });
    expect(faulty.openDescriptors()).toEqual([]);
    await expectServiceGoesOn();
  },
);

test.each([...BEFORE_RENAME.slice(0, 5), { step: 'unlink', call: 'unlink', nth: 1 } as const])(
  'answers 503 to /readyz when $step fails, and 200 within a second of the end of that',
  async ({ call, nth }) => {
    faulty.fail(call, nth, 'EROFS');
    const { status, body } = await sidecar.unauthenticated.get('/readyz');
    expect([status, body.errors[0].code]).toEqual([503, 'key_files_not_writable']);
    faulty.reset();
    sidecar.advance(1000);
    const again = await sidecar.unauthenticated.get('/readyz');
    expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: { status: 'ready' } });
  },
);

test('logs the cause of a failed write under its request id, without a path or a key', async () => {
  faulty.fail('fdatasync', 1, 'EIO');
  await sidecar.api.post('/api/keyfile/live').set('x-request-id', 'failing-1').send(POST_MANUAL);
  const [failure] = (await sidecar.logEntries()).filter(({ level }) => level === 'error');
  expect(failure).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'error',
    message: 'request failed',
    requestId: 'failing-1',
    status: 500,
    codes: ['key_files_not_writable'],
    cause: { name: 'Error', code: 'EIO', message: 'EIO: injected', stack: expect.any(Array) },
  });
});

test('writes the other streams while one is held up by the disk', async () => {
  const gate = faulty.hold('fdatasync');
  const held = post('live');
  await gate.reached;
  expect((await post('other')).status).toBe(200);
  expect(await sidecar.api.get('/api/keyfile/live').then(({ text }) => text)).toBe(CENC_ONLY_FILE);
  gate.release();
  expect((await held).status).toBe(200);
  expect(readdirSync(sidecar.folder).sort()).toEqual(['live.key', 'other.key']);
});
