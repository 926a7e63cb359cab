import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { onceForAll } from '../../../support/after-test';
import { serve, serveRaw } from '../../../support/serve';
import { startUploads, uploadsAlone } from '../../../support/start-uploads';
import { until } from '../../../support/until';

const shared = onceForAll(() => startUploads());

const MB = 1024 * 1024;
const WANTED = { maxBytes: MB, signal: new AbortController().signal };

const failed = (problem: string) => ({ ok: false, problem });

test('a file is fetched and kept byte for byte, by a sender that says who it is', async () => {
  const { context, sizesOnDisk } = await startUploads();
  const heads: unknown[] = [];
  const { url } = await serve(({ method, url, headers }, response) => {
    heads.push([method, url, headers['user-agent'], headers['accept-encoding'], headers.authorization]);
    response.setHeader('content-type', 'video/mp4').end('hello');
  });
  const fetched = await context.uploads.fetchFile(`${url}/a/film.mp4?x=1`, WANTED);
  const md5 = '5d41402abc4b2a76b9719d911017c592';
  const file = { path: expect.any(String), size: 5, md5, declaredType: 'video/mp4' };
  expect(fetched).toEqual({ ok: true, file });
  expect(heads).toEqual([['GET', '/a/film.mp4?x=1', 'packager-drm-emulator-fetch', 'identity', undefined]]);
  expect(readFileSync(fetched.ok ? fetched.file.path : '', 'utf8')).toBe('hello');
  expect(sizesOnDisk()).toEqual([5]);
});

test('three redirects are followed, also relative ones, and a fourth is not', async () => {
  const { context } = await startUploads();
  const { url } = await serve((request, response) => {
    const left = Number(request.url?.slice(1));
    if (left === 0) response.end('hello');
    else response.writeHead([301, 302, 307, 308][left % 4] ?? 303, { location: `${left - 1}` }).end('moved');
  });
  expect(await context.uploads.fetchFile(`${url}/3`, WANTED)).toMatchObject({ ok: true, file: { size: 5 } });
  const tooMany = failed('The address is redirected more than 3 times.');
  expect(await context.uploads.fetchFile(`${url}/4`, WANTED)).toEqual(tooMany);
});

test.each([
  ['http://10.0.0.1/', 'The address that it is redirected to must be an https address;'],
  ['https://169.254.169.254/', 'The address that it is redirected to must not be an address of a private'],
  ['http://', 'The address answered 302 without a location to go to.'],
])('a redirect to %s is not followed', async (location, reason) => {
  const { context } = await shared();
  const { url } = await serve((_request, response) => response.writeHead(302, { location }).end());
  const fetched = await context.uploads.fetchFile(url, WANTED);
  expect(fetched).toEqual({ ok: false, problem: expect.stringContaining(reason) });
});

test.each([
  ['https://192.168.1.1/a.mp4', 'The address must not be an address of a private network'],
  ['http://localhost:1/', 'The file could not be fetched: connection refused.'],
])('from %s nothing is fetched', async (url, reason) => {
  const { context } = await shared();
  const fetched = await context.uploads.fetchFile(url, WANTED);
  expect(fetched).toEqual({ ok: false, problem: expect.stringContaining(reason) });
});

const HEAD = 'HTTP/1.1 200 OK\r\n';

const HALF = `${HEAD}Content-Length: 1000\r\n\r\nhello`;
const TOO_LARGE = 'The file is larger than this upload may be: 1 MB.';
const COMPRESSED = 'The address sends the file compressed, although it was asked not to.';
const keepOpen = () => undefined;

test.each([
  ['is another status', 'HTTP/1.1 404 Not Found\r\n\r\n', keepOpen, 'The address answered 404.'],
  ['is empty', `${HEAD}Content-Length: 0\r\n\r\n`, keepOpen, 'The address answered with an empty file.'],
  ['announces too much', `${HEAD}Content-Length: 5000000000\r\n\r\n`, keepOpen, TOO_LARGE],
  ['is too long', `${HEAD}\r\n${'x'.repeat(MB + 1)}`, keepOpen, TOO_LARGE],
  ['is compressed', `${HEAD}Content-Encoding: gzip\r\n\r\nxx`, keepOpen, COMPRESSED],
  ['is no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', keepOpen, 'The file could not be fetched: not http.'],
  ['is cut', HALF, (socket: Socket) => socket.end(), 'The connection ended before the file had come.'],
])('an answer that %s fails and leaves nothing', async (_what, answer, then, reason) => {
  const { context, sizesOnDisk } = await shared();
  const url = await serveRaw((socket) => socket.write(answer, () => then(socket)));
  expect(await context.uploads.fetchFile(url, WANTED)).toEqual(failed(reason));
  expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[], 0]);
});

test.each([
  ['before the answer', ''],
  ['amid the file', HALF],
])('an address that falls silent %s fails', async (_when, answer) => {
  const uploads = uploadsAlone('/tmp', { idleMs: 100 });
  const url = await serveRaw((socket) => socket.write(answer));
  expect(await uploads.fetchFile(url, WANTED)).toEqual(failed('Nothing came from the address for 0.1 s.'));
  expect(uploads.files.usedBytes).toBe(0);
  uploads.reset();
});

test.each(['a signal', 'a reset'])('%s ends a fetch, and nothing is kept', async (by) => {
  const { context, sizesOnDisk } = await startUploads();
  const url = await serveRaw((socket) => socket.write(HALF));
  const ending = new AbortController();
  const fetching = context.uploads.fetchFile(url, { ...WANTED, signal: ending.signal });
  await until(() => sizesOnDisk().includes(5));
  if (by === 'a signal') ending.abort();
  else context.reset();
  expect(await fetching).toEqual(failed('The fetch was ended.'));
  await until(() => context.uploads.files.usedBytes === 0 && sizesOnDisk().length === 0);
});

test('a file that the folder does not take fails the fetch, with the cause in the log', async () => {
  const { context, logOf } = await startUploads({ EMULATOR_UPLOADSFOLDER: '/dev/null/uploads' });
  const { url } = await serve((_request, response) => response.end('hello'));
  expect(await context.uploads.fetchFile(url, WANTED)).toEqual(
    failed("The file could not be kept. The emulator's log has the cause."),
  );
  expect(await logOf(1)).toContain('ENOTDIR');
});

test('of many files sixteen are fetched at a time, and all of them in the end', async () => {
  const { context, sizesOnDisk } = await startUploads();
  const held: ServerResponse[] = [];
  let released = false;
  const { url } = await serve((_request, response) => {
    if (released) response.end('hello');
    else held.push(response);
  });
  const fetching = Array.from({ length: 20 }, () => context.uploads.fetchFile(url, WANTED));
  await until(() => held.length >= 16);
  await wait(50);
  expect(held.length).toBe(16);
  released = true;
  for (const response of held) response.end('hello');
  const fetched = await Promise.all(fetching);
  expect([fetched.filter(({ ok }) => ok).length, sizesOnDisk().length]).toEqual([20, 20]);
});

test('a file that waits for its turn is not fetched after a reset', async () => {
  const { context } = await startUploads();
  let calls = 0;
  const { url } = await serve(() => {
    calls += 1;
  });
  const fetching = Array.from({ length: 20 }, () => context.uploads.fetchFile(url, WANTED));
  await until(() => calls === 16);
  context.reset();
  expect(await Promise.all(fetching)).toEqual(fetching.map(() => failed('The fetch was ended.')));
  expect(calls).toBe(16);
});
