import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import fc from 'fast-check';
import request from 'supertest';
import { errorBody, toHttpError } from '../../../../src/http/errors';
import { listen } from '../../../../src/http/server';
import { receiveForm } from '../../../../src/platform/emulator/uploads/upload-form';
import { afterTest, onceForAll } from '../../../support/after-test';
import { startUploads } from '../../../support/start-uploads';
import { until } from '../../../support/until';

const errors = (code: string, description: string) => ({ errors: [{ code, description }] });

/** A route that takes a form for one upload, as API v1 has it. */
async function startForm(wanted: Parameters<Awaited<ReturnType<typeof startUploads>>['begin']>[0] = {}) {
  const emulator = await startUploads();
  const upload = emulator.begin(wanted);
  const handler: RequestListener = (incoming, response) => {
    receiveForm(incoming, upload).then(
      (received) => response.end(JSON.stringify(received)),
      (thrown: unknown) => {
        const error = toHttpError(thrown);
        response.statusCode = error.status;
        response.setHeader('content-type', 'application/json').end(JSON.stringify(errorBody(error)));
      },
    );
  };
  const { port, url, stop } = await listen(handler, '127.0.0.1', 0);
  afterTest(() => stop(0));
  return { ...emulator, formPort: port, form: request(url) };
}

/** A form with one part; `end` follows it. */
const formOf = (content: string, head = 'form-data; name="file"; filename="a.mp4"', end = '\r\n--B--\r\n') =>
  `--B\r\nContent-Disposition: ${head}\r\nContent-Type: video/mp4\r\n\r\n${content}${end}`;

const FORM_TYPE = 'multipart/form-data; boundary=B';
const head = (length: number) =>
  `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${length}\r\n\r\n`;

test('the file of a form is kept byte for byte, among other fields and files', async () => {
  const { form, taken, sizesOnDisk } = await startForm();
  const bytes = randomBytes(2_000_000);
  const md5 = createHash('md5').update(bytes).digest('hex');
  await form
    .post('/')
    .field('title', 'a film')
    .attach('poster', Buffer.from('other'), { filename: 'p.png', contentType: 'image/png' })
    .attach('file', bytes, { filename: 'film.mp4', contentType: 'video/mp4' })
    .field('more', 'x'.repeat(1000))
    .expect(200);
  expect(taken).toEqual([{ path: expect.any(String), size: 2_000_000, md5, declaredType: 'video/mp4' }]);
  expect(readFileSync(taken[0]?.path ?? '').equals(bytes)).toBe(true);
  expect(sizesOnDisk()).toEqual([2_000_000]);
});

const NO_FORM =
  'Send the file as the field file of a form: content-type multipart/form-data with a boundary.';
const UNREADABLE = "The form can't be read: it ends early, or its parts are not as the boundary says.";
const VIDEO = 'form-data; name="video"; filename="a.mp4"';

const unsent = onceForAll(() => startForm());

test.each([
  ['application/json', '{}', 415, 'unsupported_media_type', NO_FORM],
  ['multipart/form-data', formOf('x'), 415, 'unsupported_media_type', NO_FORM],
  [`multipart/form-data; boundary=${'b'.repeat(10_000)}`, '', 415, 'unsupported_media_type', NO_FORM],
  ['multipart/form-data; boundary=""', formOf('x'), 400, 'invalid_body', UNREADABLE],
  ['multipart/form-data; boundary*=B', formOf('x'), 400, 'invalid_body', UNREADABLE],
  [FORM_TYPE, formOf('x', VIDEO), 400, 'invalid_body', 'The form has no file in the field file.'],
  [FORM_TYPE, formOf(''), 400, 'invalid_body', 'The file is empty. Send its bytes as the body.'],
  [FORM_TYPE, formOf('cut here', undefined, ''), 400, 'invalid_body', UNREADABLE],
  [FORM_TYPE, 'no form at all', 400, 'invalid_body', UNREADABLE],
])('of a bad form %# nothing is kept', async (type, body, status, code, description) => {
  const { form, taken, sizesOnDisk, context } = await unsent();
  await form.post('/').set('content-type', type).send(body).expect(status, errors(code, description));
  await until(() => context.uploads.files.usedBytes === 0);
  expect([taken, sizesOnDisk()]).toEqual([[], []]);
});

test('a form that is too large is refused, announced or not', async () => {
  const { form, formPort, sizesOnDisk } = await startForm({ maxBytes: 1000 });
  const tooLarge = errors('body_too_large', 'The file is larger than this upload may be: 1000 bytes.');
  await form.post('/').attach('file', Buffer.alloc(1001), 'a').expect(413, tooLarge);
  const socket = connect(formPort, '127.0.0.1');
  const answer = once(socket, 'data');
  socket.write(head(5_000_000_000));
  expect(String(await answer)).toMatch(/^HTTP\/1.1 413 /);
  socket.destroy();
  expect(sizesOnDisk()).toEqual([]);
  await form.post('/').attach('file', Buffer.alloc(1000), 'a').expect(200);
});

test('of a form that is cut on its way nothing is kept', async () => {
  const { form, formPort, sizesOnDisk, context, taken } = await startForm();
  const socket = connect(formPort, '127.0.0.1');
  socket.write(head(500_000) + formOf('x'.repeat(100_000), undefined, ''));
  await until(() => (sizesOnDisk()[0] ?? 0) > 90_000);
  socket.destroy();
  await until(() => context.uploads.files.usedBytes === 0);
  expect([sizesOnDisk(), taken]).toEqual([[], []]);
  await form.post('/').attach('file', Buffer.from('hello'), 'a').expect(200);
});

test.each([
  ['another file is cut', { maxBytes: 1000 }, 'form-data; name="poster"; filename="p.png"', 'cut', 400],
  ['the file is of a wrong type', { accept: ['image/*'] }, undefined, 'cut', 415],
  ['the file is too large', { maxBytes: 10 }, undefined, 'x'.repeat(50_000), 413],
])(
  'a form in which %s, and that ends early, is refused, and the service goes on',
  async (_what, wanted, head, content, status) => {
    const { form, sizesOnDisk } = await startForm(wanted);
    const cut = formOf(content, head, '');
    await form.post('/').set('content-type', FORM_TYPE).send(cut).expect(status);
    expect(sizesOnDisk()).toEqual([]);
  },
);

test('a file that came whole is kept, whatever is wrong with the form behind it', async () => {
  const { form, formPort, taken, context } = await startForm();
  const more = '\r\n--B\r\nContent-Disposition: form-data; name="more"\r\n\r\ncut';
  const body = formOf('hello', undefined, more);
  await form.post('/').set('content-type', FORM_TYPE).send(body).expect(200);
  expect(taken.map(({ size }) => size)).toEqual([5]);
  const socket = connect(formPort, '127.0.0.1');
  socket.write(head(500_000) + body);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  await form.post('/').set('content-type', FORM_TYPE).send(body).expect(200);
  expect([taken.length, context.uploads.files.usedBytes]).toEqual([1, 5]);
});

test('a form of any parts that ends anywhere has an answer, and only complete files are kept', async () => {
  const { form, context, sizesOnDisk, taken } = await startForm({ maxBytes: 500 });
  const piece = fc.oneof(
    fc.constantFrom('--B\r\n', '--B--\r\n', '\r\n', 'Content-Type: video/mp4\r\n', '--B', '--', '\0'),
    fc.constantFrom(
      'Content-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
      'Content-Disposition: form-data; name="x"; filename="b"\r\n\r\n',
      'Content-Disposition: form-data; name="x"\r\n\r\n',
    ),
    fc.string({ maxLength: 40 }),
    fc.constant('y'.repeat(600)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      const { status } = await form.post('/').set('content-type', FORM_TYPE).send(pieces.join(''));
      expect([200, 400, 409, 413, 415]).toContain(status);
      const kept = taken.map(({ size }) => size);
      await until(() => context.uploads.files.usedBytes === kept.reduce((sum, size) => sum + size, 0));
      expect(sizesOnDisk()).toEqual(kept);
    }),
    { numRuns: 100 },
  );
});
