import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { type Fields, okV1, processFile, refusedV1, uploadForm, type V1Link } from '../../../support/call-v1';
import { queryOf } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const md5Of = (text: string) => createHash('md5').update(text).digest('hex');
const linkOf = ({ link }: Fields) => link as V1Link;
const targetOf = ({ path, query }: V1Link, more = '') => `${path}?${queryOf(Object.entries(query))}${more}`;

async function sizeOf(emulator: TestEmulator, video_key: string): Promise<unknown> {
  return ((await okV1(emulator, 'videos/show', { video_key })).video as Fields).size;
}

test('a file that is not what was said of it is refused, and may come again', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', { md5: md5Of('abc').toUpperCase(), size: '3' });
  const { key } = made.video as { key: string };
  const codeOf = async (file: string) => {
    const { status, body } = await uploadForm(emulator, made, file);
    return [status, body.code];
  };
  expect(await codeOf('abd')).toEqual([400, 'DigestInvalid']);
  expect(await codeOf('abcd')).toEqual([400, 'FileSizeInvalid']);
  expect(await sizeOf(emulator, key)).toBe('0');
  expect(await codeOf('abc')).toEqual([200, undefined]);
  // The answer may have been lost.
  expect(await codeOf('abc')).toEqual([200, undefined]);
  expect(await codeOf('xyz')).toEqual([400, 'DigestInvalid']);
  expect(await sizeOf(emulator, key)).toBe('3');
});

test('the answer to an upload comes in the format that is asked for', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create');
  const { key } = made.video as Fields;
  const { text } = await emulator.unauthenticated
    .post(targetOf(linkOf(made), '&api_format=xml'))
    .attach('file', Buffer.from('abc'), 'film.mp4');
  expect(text).toBe(
    `<?xml version="1.0" encoding="UTF-8"?>\n<response><status>ok</status><media key="${key}"><type>video</type></media><video key="${key}"/><file><md5>${md5Of('abc')}</md5><size>3</size></file></response>`,
  );
});

test.each([
  ['another token', { token: 'x' }, 403, 'PermissionDenied'],
  ['no token', { token: undefined }, 403, 'PermissionDenied'],
  ['another key', { key: 'none0000' }, 404, 'NotFound'],
  ['no key', { key: undefined }, 400, 'ParameterMissing'],
] as const)('a link with %s takes no file', async (_what, changed, status, code) => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create');
  const { path, query } = linkOf(made);
  const parameters = Object.entries({ ...query, ...changed }).filter(([, value]) => value !== undefined);
  const answer = await uploadForm(emulator, { link: { path, query: Object.fromEntries(parameters) } }, 'abc');
  expect([answer.status, answer.body.status, answer.body.code]).toEqual([status, 'error', code]);
  expect(emulator.context.uploads.usedBytes).toBe(0);
});

test('a form without the field file, an empty file and another body are refused', async () => {
  const emulator = await startEmulator();
  const target = targetOf(linkOf(await okV1(emulator, 'videos/create')));
  const { unauthenticated } = emulator;
  const answers = [
    await unauthenticated.post(target).attach('other', Buffer.from('abc'), 'film.mp4'),
    await unauthenticated.post(target).attach('file', Buffer.alloc(0), 'film.mp4'),
    await unauthenticated.post(target).send('file=abc'),
    await unauthenticated.get(target),
  ];
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
    [400, 'FileUploadFailed'],
    [400, 'FileUploadFailed'],
    [415, 'FileUploadFailed'],
    [405, 'NotSupported'],
  ]);
  expect(emulator.context.uploads.usedBytes).toBe(0);
});

test('a link holds for a day', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create');
  await emulator.advance(24 * 3600);
  const { status, body } = await uploadForm(emulator, made, 'abc');
  expect([status, body.status]).toEqual([410, 'error']);
});

test('pages of any origin may send forms', async () => {
  const emulator = await startEmulator();
  const asked = await emulator.unauthenticated.options('/v1/videos/upload').set('origin', 'https://cms.test');
  expect([asked.status, asked.headers['access-control-allow-origin']]).toEqual([204, '*']);
});

test('the method s3 is told where to PUT the bytes', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', { upload_method: 's3' });
  const { key } = made.video as { key: string };
  await emulator.unauthenticated
    .put(targetOf(linkOf(made)))
    .send('abc')
    .expect(200);
  await processFile(emulator, key);
  expect(await sizeOf(emulator, key)).toBe('3');
});

/** Sends chunks of a resumable upload, each with the range that it says. */
async function startChunks(announced: Readonly<Record<string, string>> = {}) {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', {
    upload_method: 'multipart',
    title: 'A',
    ...announced,
  });
  const { session_id } = made as { session_id: string };
  const send = async (range: string, bytes: string, headers: Readonly<Record<string, string>> = {}) => {
    const { status, body, text } = await request(emulator.url)
      .post(targetOf(linkOf(made), '&api_format=json'))
      .set({
        'x-session-id': session_id,
        'x-content-range': `bytes ${range}`,
        'content-type': 'application/octet-stream',
        ...headers,
      })
      .send(Buffer.from(bytes));
    return [status, status === 201 ? text : (body.code ?? body)];
  };
  return { emulator, send, key: (made.video as { key: string }).key };
}

test('a large file comes in chunks, one behind the other', async () => {
  const { emulator, send, key } = await startChunks();
  expect(await send('0-3/9', 'abcd')).toEqual([201, '0-3/9']);
  expect(await send('4-7/9', 'efgh')).toEqual([201, '0-7/9']);
  expect(await send('8-8/9', 'i')).toEqual([
    200,
    { status: 'ok', media: { type: 'video', key }, video: { key }, file: { size: '9' } },
  ]);
  await processFile(emulator, key);
  expect((await okV1(emulator, 'videos/show', { video_key: key })).video).toMatchObject({
    status: 'ready',
    size: '9',
    md5: md5Of('abcdefghi'),
  });
});

test('a chunk that was lost is told, and one that came already may come again', async () => {
  const { send } = await startChunks();
  expect(await send('2-3/4', 'cd')).toEqual([412, 'PreconditionFailed']);
  expect(await send('0-1/4', 'ab')).toEqual([201, '0-1/4']);
  expect(await send('0-1/4', 'AB')).toEqual([201, '0-1/4']);
  expect(await send('3-3/4', 'd')).toEqual([412, 'PreconditionFailed']);
});

test('a chunk that comes again keeps its length, as another one follows it', async () => {
  const { send } = await startChunks();
  await send('0-3/8', 'abcd');
  expect(await send('0-5/8', 'abcdef')).toEqual([201, '0-5/8']);
  expect(await send('6-6/8', 'g')).toEqual([201, '0-6/8']);
  expect(await send('0-3/8', 'abcd')).toEqual([412, 'PreconditionFailed']);
  expect(await send('0-5/8', 'ABCDEF')).toEqual([201, '0-6/8']);
});

test.each([
  [{ md5: md5Of('abce') }, 'DigestInvalid'],
  [{ size: '5' }, 'FileSizeInvalid'],
])('chunks whose file is not as %j said are refused, and may come again', async (announced, code) => {
  const { emulator, send, key } = await startChunks(announced);
  expect(await send('0-1/4', 'ab')).toEqual([201, '0-1/4']);
  expect(await send('2-3/4', 'cd')).toEqual([400, code]);
  expect(emulator.context.uploads.usedBytes).toBe(4);
  expect((await okV1(emulator, 'videos/show', { video_key: key })).video).toMatchObject({
    status: 'created',
  });
  const again = await send('2-3/4', 'ce');
  expect(again[0]).toBe('md5' in announced ? 200 : 400);
});

test.each([
  ['0-1/4', 'abc', {}, 400, 'FileSizeInvalid'],
  ['3-1/4', 'ab', {}, 400, 'ParameterInvalid'],
  ['0-4/4', 'abcde', {}, 400, 'ParameterInvalid'],
  ['0-1/*', 'ab', {}, 400, 'ParameterInvalid'],
  ['0-1/4', '', {}, 400, 'FileUploadFailed'],
  ['0-1/4', 'ab', { 'x-session-id': 'x' }, 403, 'PermissionDenied'],
] as const)('the chunk %s of %j is refused', async (range, bytes, headers, status, code) => {
  const { emulator, send } = await startChunks();
  expect(await send(range, bytes, headers)).toEqual([status, code]);
  expect(emulator.context.uploads.usedBytes).toBe(0);
});

test('a file is fetched from an address that webhooks may call', async () => {
  const server = createServer((_request, response) => void response.end('a film')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const emulator = await startEmulator();
  const download_url = `http://127.0.0.1:${port}/film.mp4`;
  const made = await okV1(emulator, 'videos/create', { upload_method: 'fetch', download_url });
  const { key } = made.video as { key: string };
  await processFile(emulator, key);
  expect((await okV1(emulator, 'videos/show', { video_key: key })).video).toMatchObject({
    status: 'ready',
    size: '6',
  });
  server.close();
});

test('a file is not fetched from an address that webhooks may not call', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', { download_url: 'https://10.0.0.1/film.mp4' });
  const { key } = made.video as { key: string };
  expect(made).not.toHaveProperty('link');
  await emulator.advance(10);
  expect((await okV1(emulator, 'videos/show', { video_key: key })).video).toMatchObject({
    status: 'failed',
    error: expect.any(String),
  });
  const [status, code] = await refusedV1(emulator, 'videos/create', {
    download_url: 'ftp://a.test/film.mp4',
  });
  expect([status, code]).toEqual([400, 'ParameterInvalid']);
});
