import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/live';
const MANUAL_TAG = tagOf(POST_MANUAL_FILE);
const CENC_TAG = tagOf(CENC_ONLY_FILE);

function tagOf(text: string): string {
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
}

function failed(description: string) {
  return { errors: [{ code: 'precondition_failed', description }] };
}

test('answers POST, GET and DELETE with the tag of the file', async () => {
  const { api } = await startSidecar();
  for (const accept of ['text/plain', 'application/json']) {
    const headers = { accept };
    await api.post(PATH).set(headers).send(POST_MANUAL).expect(200).expect('etag', MANUAL_TAG);
    await api.get(PATH).set(headers).expect(200).expect('etag', MANUAL_TAG);
    await api.delete(PATH).set(headers).expect(200).expect('etag', MANUAL_TAG);
  }
});

test.each([[MANUAL_TAG], [`W/${MANUAL_TAG}`], [`"other", ${MANUAL_TAG}`], ['*']])(
  'answers 304 without a body to If-None-Match: %s',
  async (tags) => {
    const { api } = await startSidecar();
    await api.post(PATH).send(POST_MANUAL).expect(200);
    const { text } = await api.get(PATH).set('if-none-match', tags).expect(304).expect('etag', MANUAL_TAG);
    expect(text).toBe('');
    await api.get(PATH).set('if-none-match', CENC_TAG).expect(200, POST_MANUAL_FILE);
  },
);

test('does not let the second of two engineers overwrite the first', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  const change = () => sidecar.api.post(PATH).set('if-match', MANUAL_TAG);
  await change().send(CENC_ONLY).expect(200, CENC_ONLY_FILE);
  await change()
    .send(POST_MANUAL)
    .expect(
      412,
      failed(
        'The key file has changed: its ETag is not the one in If-Match. GET it, check it, and send its new ETag.',
      ),
    );
  expect(await sidecar.files()).toEqual({ 'live.key': CENC_ONLY_FILE });
});

test('lets one of many changes at the same time through', async () => {
  const { api } = await startSidecar();
  await api.post(PATH).send(POST_MANUAL).expect(200);
  const bodies = Array.from({ length: 10 }, (_, index) => ({
    ...CENC_ONLY,
    widevine: {},
    contentId: `content-${index}`,
  }));
  const answers = await Promise.all(
    bodies.map((body) => api.post(PATH).set('if-match', MANUAL_TAG).send(body)),
  );
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
});

test.each([
  ['post', 'if-match', CENC_TAG],
  ['post', 'if-match', `W/${MANUAL_TAG}`],
  ['post', 'if-none-match', '*'],
  ['post', 'if-none-match', `W/${MANUAL_TAG}`],
  ['delete', 'if-match', CENC_TAG],
] as const)('refuses a %s with %s: %s', async (method, header, tags) => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  await sidecar.api[method](PATH).set(header, tags).send(CENC_ONLY).expect(412);
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

test('refuses If-Match for a stream without a key file, and creates it with If-None-Match: *', async () => {
  const sidecar = await startSidecar();
  for (const tags of ['*', MANUAL_TAG]) {
    await sidecar.api
      .post(PATH)
      .set('if-match', tags)
      .send(POST_MANUAL)
      .expect(
        412,
        failed(
          'This stream has no key file (any more), but If-Match asks for one. Leave If-Match out to create it.',
        ),
      );
  }
  await sidecar.api.post(PATH).set('if-none-match', '*').send(POST_MANUAL).expect(200);
});

test('tells a file that another program changed', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  await writeFile(join(sidecar.folder, 'live.key'), `${POST_MANUAL_FILE}# by hand\n`);
  await sidecar.api.delete(PATH).set('if-match', MANUAL_TAG).expect(412);
  await sidecar.api
    .get(PATH)
    .expect(200)
    .expect('etag', tagOf(`${POST_MANUAL_FILE}# by hand\n`));
});

test.each([
  ['if-match', ''],
  ['if-none-match', 'nonsense'],
  ['if-match', `${MANUAL_TAG} ${MANUAL_TAG}`],
])('refuses %s: %s, which is no entity tag', async (header, tag) => {
  const sidecar = await startSidecar();
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  const { body } = await sidecar.api.post(PATH).set(header, tag).send(CENC_ONLY).expect(400);
  expect(body.errors[0].code).toBe('invalid_header');
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

const NO_KEY_FILE = JSON.stringify({
  errors: [{ code: 'key_file_not_found', description: 'This stream has no key file.' }],
});

const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const cenc = fc.record({ keyid: block, contentkey: block }).map(({ keyid, contentkey }) => ({
  keyid: keyid.toString('base64'),
  contentkey: contentkey.toString('base64'),
}));
const fairplay = fc.record({ key: block, iv: block }).map(({ key, iv }) => ({
  key: key.toString('hex'),
  iv: iv.toString('hex'),
  laurl: 'skd://license.example/demo',
}));
const body = fc.oneof(
  fc.record({
    cenc,
    widevine: fc.constant({}),
    playready: fc.constant({ laurl: 'https://license.example/' }),
  }),
  fc.record({ cenc, fairplay }),
  fc.record({ fairplay }),
);

// Names that are each other's prefix, case, folder or file: whatever one could be mixed up with another by.
const streamId = fc.constantFrom('a', 'A', 'ab', 'a.key', 'a/b', 'a/b/c', 'b/a');
const step = fc.oneof(
  fc.record({ method: fc.constant('POST' as const), streamId, body }),
  fc.record({ method: fc.constantFrom('GET' as const, 'DELETE' as const), streamId }),
);

/** The key file that a body asks for, as the lines of the specification's table. */
function keyFileOf(given: object): string {
  const parsed = parseKeyFileRequest(given);
  if (!parsed.ok || parsed.value.source !== 'supplied') throw new Error('the model takes supplied keys only');
  return renderKeyFile(keyFileLines(parsed.value.keyFile));
}

it('answers any sequence of POST, GET and DELETE as a map of texts would', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { api, files } = await startSidecar();
      const model = new Map<string, string>();
      for (const { method, streamId, ...rest } of steps) {
        const path = `/api/keyfile/${encodeURIComponent(streamId)}`;
        const before = model.get(streamId);
        if (method === 'POST' && 'body' in rest) {
          const text = keyFileOf(rest.body);
          model.set(streamId, text);
          await api.post(path).send(rest.body).expect(200, text);
          continue;
        }
        if (method === 'DELETE') model.delete(streamId);
        const answer = await (method === 'GET' ? api.get(path) : api.delete(path));
        expect([answer.status, answer.text]).toEqual(
          before === undefined ? [404, NO_KEY_FILE] : [200, before],
        );
      }
      const left = Object.entries(await files()).filter(([, content]) => content !== 'folder');
      const expected = [...model].map(([name, text]) => [`${name}.key`, text]);
      expect(Object.fromEntries(left)).toEqual(Object.fromEntries(expected));
    }),
    { numRuns: 25 },
  );
});

it('leaves one of the texts whole, and answers each POST with its own, when many write one stream at once', async () => {
  const { api, files } = await startSidecar();
  const bodies = fc.sample(body, 20);
  const answers = await Promise.all(bodies.map((each) => api.post('/api/keyfile/demo').send(each)));
  const texts = bodies.map(keyFileOf);
  expect(answers.map(({ status, text }) => [status, text])).toEqual(texts.map((text) => [200, text]));
  const written = await files();
  expect(Object.keys(written)).toEqual(['demo.key']);
  expect(texts).toContain(written['demo.key']);
});
