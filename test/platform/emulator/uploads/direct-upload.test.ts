import { createHash, randomBytes } from 'node:crypto';
import fs, { readFileSync, type WriteStream } from 'node:fs';
import { Writable } from 'node:stream';
import { partLink } from '../../../../src/platform/emulator/uploads/uploads';
import { errorBody } from '../../../support/error-body';
import { rawExchange, rawRequest } from '../../../support/raw-http';
import { sendPart, startUploads } from '../../../support/start-uploads';
import { until } from '../../../support/until';

const HELLO = Buffer.from('hello');
const HELLO_MD5 = '5d41402abc4b2a76b9719d911017c592';

test('a file that is PUT to the link is kept byte for byte, and its MD5 is answered in quotes', async () => {
  const { unauthenticated, beginDirect, taken } = await startUploads();
  const bytes = randomBytes(3_000_000);
  const md5 = createHash('md5').update(bytes).digest('hex');
  const answer = await unauthenticated.put(beginDirect()).type('video/mp4').send(bytes).expect(200, '');
  expect(answer.headers).toMatchObject({ etag: `"${md5}"`, 'content-length': '0' });
  expect(taken).toEqual([{ path: expect.any(String), size: 3_000_000, md5, declaredType: 'video/mp4' }]);
  expect(readFileSync(taken[0]?.path ?? '').equals(bytes)).toBe(true);
});

test('a body in chunks, a sender that waits for 100 Continue, a whole link as target, and a slash behind the path are taken', async () => {
  const { port, unauthenticated, begin, beginDirect, taken } = await startUploads();
  const chunked = await rawRequest(port, 'PUT', beginDirect(), { 'transfer-encoding': 'chunked' }, 'hello');
  const head = `PUT ${beginDirect()} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`;
  const waiting = await rawExchange(port, `${head}hello`, /HTTP\/1.1 100[\s\S]*HTTP\/1.1 200[\s\S]*\r\n\r\n/);
  // As one released client sends it.
  const link = `http://127.0.0.1:${port}${beginDirect()}`;
  const whole = await rawRequest(port, 'PUT', link, { 'content-length': 5 }, 'hello');
  for (const { status, headers } of [chunked, whole])
    expect([status, headers.etag]).toEqual([200, `"${HELLO_MD5}"`]);
  expect(waiting).toContain(`"${HELLO_MD5}"`);
  const part = partLink(begin({ method: 'multipart' }), 1, '');
  for (const path of [beginDirect(), part])
    await unauthenticated.put(path.replace('?', '/?')).send(HELLO).expect(200);
  expect(taken.map(({ md5 }) => md5)).toEqual(Array(4).fill(HELLO_MD5));
});

test('the same file again is answered as before and taken once, as a client may have lost the answer; another is refused; no log has the secret', async () => {
  const { unauthenticated, beginDirect, taken, sizesOnDisk, logOf } = await startUploads();
  const link = beginDirect();
  for (let time = 0; time < 2; time++)
    await unauthenticated.put(link).send(HELLO).expect(200).expect('etag', `"${HELLO_MD5}"`);
  const finished =
    'The file of this upload has been received already. For another file, ask for a new upload.';
  await unauthenticated.put(link).send('jello').expect(409, errorBody('upload_finished', finished));
  expect(taken.map(({ path }) => readFileSync(path, 'utf8'))).toEqual(['hello']);
  expect(sizesOnDisk()).toEqual([5]);
  const log = await logOf(3);
  expect(log).toContain('/uploads/:uploadId');
  expect(log).not.toContain(link.split('token=')[1]);
});

test('of two files that come at the same time the first one to end is taken', async () => {
  const emulator = await startUploads();
  const { unauthenticated, beginDirect, taken, context, sizesOnDisk } = emulator;
  const link = beginDirect();
  const { socket, answer } = sendPart(emulator, link, 5, Buffer.from('sl'));
  await until(() => context.uploads.files.usedBytes === 2);
  await unauthenticated.put(link).send(HELLO).expect(200);
  socket.write('ow!');
  expect(await answer).toMatch(/^HTTP\/1.1 409 /);
  socket.destroy();
  expect([taken.length, sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([1, [5], 5]);
});

test('of an upload that is cut nothing is kept, and the link takes the file afterwards', async () => {
  const emulator = await startUploads();
  const { unauthenticated, beginDirect, taken, context, sizesOnDisk } = emulator;
  const link = beginDirect();
  const { socket } = sendPart(emulator, link, 1_000_000, Buffer.alloc(300_000));
  await until(() => sizesOnDisk()[0] === 300_000);
  expect(context.uploads.files.usedBytes).toBe(300_000);
  socket.destroy();
  await until(() => context.uploads.files.usedBytes === 0);
  expect([sizesOnDisk(), taken]).toEqual([[], []]);
  await unauthenticated.put(link).send(HELLO).expect(200);
  expect(sizesOnDisk()).toEqual([5]);
});

test('a body that is not the one of its Content-MD5 is refused, also when it is sent again', async () => {
  const { unauthenticated, beginDirect, sizesOnDisk } = await startUploads();
  const link = beginDirect();
  const put = (md5: string) =>
    unauthenticated.put(link).set('content-md5', Buffer.from(md5, 'hex').toString('base64')).send(HELLO);
  const description = 'The body does not match the header content-md5. Send it again.';
  const wrong = errorBody('invalid_body', description);
  await put('00'.repeat(16)).expect(400, wrong);
  expect(sizesOnDisk()).toEqual([]);
  await put(HELLO_MD5).expect(200);
  await put('00'.repeat(16)).expect(400, wrong);
});

test('a body that is declared as another type than the upload is for is refused', async () => {
  const { unauthenticated, beginDirect, taken } = await startUploads();
  const accept = ['image/*'];
  const wrong = 'This upload takes image/*. Send the right file, with its content-type.';
  const put = (type: string) =>
    unauthenticated.put(beginDirect({ accept })).set('content-type', type).send(HELLO);
  await put('text/vtt').expect(415, errorBody('unsupported_media_type', wrong));
  for (const type of ['image/png', 'application/octet-stream', 'application/x-www-form-urlencoded', ''])
    await put(type).expect(200);
  expect(taken.length).toBe(4);
});

test('without its secret, or with the one of another upload, a link is refused', async () => {
  const { unauthenticated, beginDirect, sizesOnDisk } = await startUploads();
  const [path, query] = beginDirect().split('?');
  const [, other] = beginDirect().split('?');
  const description = 'This is not the link that was given. Send the file to the whole upload_link.';
  const refused = errorBody('upload_link_refused', description);
  for (const wrong of ['', '?', `?${other}`, `?${query}&${query}`, `?${query}x`, '?token[]=a']) {
    await unauthenticated.put(`${path}${wrong}`).send(HELLO).expect(403, refused);
  }
  const none = errorBody('not_found', 'There is no upload with this id.');
  await unauthenticated.put('/uploads/nonesuch?token=a').send(HELLO).expect(404, none);
  expect(sizesOnDisk()).toEqual([]);
});

test('after a day on the clock a link is over', async () => {
  const { unauthenticated, beginDirect, advance, taken } = await startUploads();
  const [early, link] = [beginDirect(), beginDirect()];
  await advance(86_399);
  const late = beginDirect();
  await unauthenticated.put(early).send(HELLO).expect(200);
  await advance(1);
  const over =
    'This upload is over: its links are valid for a day, while its resource exists. Ask for a new one.';
  await unauthenticated.put(link).send(HELLO).expect(410, errorBody('upload_expired', over));
  await unauthenticated.put(late).send(HELLO).expect(200);
  // Taken files stay.
  expect(taken.map(({ path }) => readFileSync(path, 'utf8'))).toEqual(['hello', 'hello']);
});

test('pages of any origin may send a file to a link, and read the entity tag', async () => {
  const { unauthenticated, beginDirect } = await startUploads();
  const link = beginDirect();
  const asked = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'content-type' };
  const preflight = await unauthenticated.options(link).set({ origin: 'https://app.example', ...asked });
  expect(preflight.status).toBe(204);
  expect(preflight.headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD, PUT',
    'access-control-allow-headers': 'content-type',
  });
  const { headers } = await unauthenticated.put(link).set('origin', 'https://app.example').send(HELLO);
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'ETag',
    'cross-origin-resource-policy': 'cross-origin',
  });
});

afterEach(() => void jest.restoreAllMocks());

/** Makes the next file fail with this system error when so many bytes are written. */
function failNextFile(code: string, bytes: number): void {
  jest.spyOn(fs, 'createWriteStream').mockImplementationOnce(() => {
    let written = 0;
    const target = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written += chunk.length;
        done(written >= bytes ? Object.assign(new Error(code), { code }) : null);
      },
    });
    return target as WriteStream;
  });
}

const FULL = 'The disk of the uploads is full. Make room, or choose another EMULATOR_UPLOADSFOLDER.';

test.each([
  ['is full', 'ENOSPC', 507, 'insufficient_storage', FULL, /"status":507/],
  // Its cause is in the log.
  ['has another fault', 'EIO', 500, 'server_error', expect.any(String), /"code":"EIO"/],
])(
  'when the disk %s, the sender gets an answer, nothing is kept, and the link takes the file later',
  async (_what, fault, status, code, description, logged) => {
    const { unauthenticated, beginDirect, sizesOnDisk, context, logOf } = await startUploads();
    const link = beginDirect();
    const bytes = Buffer.alloc(1_000_000);
    failNextFile(fault, 200_000);
    const answer = await unauthenticated.put(link).send(bytes);
    expect([answer.status, answer.body]).toEqual([status, errorBody(code, description)]);
    expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[], 0]);
    expect(await logOf(1)).toMatch(logged);
    await unauthenticated.put(link).send(bytes).expect(200);
  },
);

test('when the disk gets full while parts are put together, they stay, and can be completed later', async () => {
  const { unauthenticated, begin, taken, sizesOnDisk, context } = await startUploads();
  const upload = begin({ method: 'multipart' });
  for (const link of [1, 2].map((part) => partLink(upload, part, '')))
    await unauthenticated.put(link).send('12345').expect(200);
  const complete = () =>
    unauthenticated.put(`/v2/uploads/${upload.id}/complete`).set('authorization', upload.token);
  failNextFile('EDQUOT', 6);
  await complete().expect(507, errorBody('insufficient_storage', FULL));
  expect([sizesOnDisk(), context.uploads.files.usedBytes, taken]).toEqual([[5, 5], 10, []]);
  await complete().expect(202);
  expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[10], 10]);
});

test('a file that can not be deleted is reported in the log, and no call fails', async () => {
  const { unauthenticated, beginDirect, taken, context, logOf } = await startUploads();
  await unauthenticated.put(beginDirect()).send('hello').expect(200);
  jest.spyOn(fs.promises, 'rm').mockRejectedValueOnce(Object.assign(new Error('no'), { code: 'EPERM' }));
  await context.uploads.files.remove({ path: taken[0]?.path ?? '' });
  expect(context.uploads.files.usedBytes).toBe(0);
  expect(await logOf(2)).toMatch(/"message":"upload not deleted".*EPERM/);
});
