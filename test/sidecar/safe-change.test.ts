import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { errorBody, sidecarForAll } from '../support/start-sidecar';

const PATH = '/api/keyfile/live';
const sidecar = sidecarForAll();
const { api } = sidecar;
const MANUAL_TAG = tagOf(POST_MANUAL_FILE);
const CENC_TAG = tagOf(CENC_ONLY_FILE);

function tagOf(text: string): string {
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`;
}

const failed = (description: string) => errorBody('precondition_failed', description);

test('answers POST, GET and DELETE with the tag of the file', async () => {
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
    await api.post(PATH).send(POST_MANUAL).expect(200);
    const { text } = await api.get(PATH).set('if-none-match', tags).expect(304).expect('etag', MANUAL_TAG);
    expect(text).toBe('');
    await api.get(PATH).set('if-none-match', CENC_TAG).expect(200, POST_MANUAL_FILE);
  },
);

test('does not let the second of two engineers overwrite the first', async () => {
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
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  await sidecar.api[method](PATH).set(header, tags).send(CENC_ONLY).expect(412);
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

test('refuses If-Match for a stream without a key file, and creates it with If-None-Match: *', async () => {
  for (const tags of ['*', MANUAL_TAG]) {
    await sidecar.api
      .post(PATH)
      .set('if-match', tags)
      .send(POST_MANUAL)
      .expect(
        412,
        failed(
          'This stream has no key file (any more), but If-Match asks for one. A POST without it creates one.',
        ),
      );
  }
  await sidecar.api.post(PATH).set('if-none-match', '*').send(POST_MANUAL).expect(200);
});

test('recognizes a file that another program changed', async () => {
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
  ['if-match', '"half'],
  ['if-none-match', 'nonsense'],
  ['if-match', `${MANUAL_TAG} ${MANUAL_TAG}`],
])('refuses %s: %s, which is no entity tag', async (header, tag) => {
  await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  const { body } = await sidecar.api.post(PATH).set(header, tag).send(CENC_ONLY).expect(400);
  expect(body.errors[0].code).toBe('invalid_header');
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});
