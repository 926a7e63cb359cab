import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { partLink, type StoredFile } from '../../../../src/platform/emulator/uploads/uploads';
import { errorBody } from '../../../support/error-body';
import { rawExchange, rawRequest } from '../../../support/raw-http';
import { sendPart, startUploads, uploadsAlone } from '../../../support/start-uploads';
import { until } from '../../../support/until';

const MB = 1024 * 1024;

test('5 GB announced are refused before a byte of them has come', async () => {
  const { port, beginDirect, sizesOnDisk, context } = await startUploads({ EMULATOR_UPLOADSMAXMB: '10' });
  const announce = async (path: string) => {
    const head = `PUT ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${5 * 1024 * MB}\r\n\r\n`;
    const answer = await rawExchange(port, head, /\r\n\r\n.*\}$/);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    return JSON.parse(answer.split('\r\n\r\n')[1] ?? '');
  };
  const tooLarge = 'The file is larger than this upload may be: 1024 MB.';
  expect(await announce(beginDirect())).toEqual(errorBody('body_too_large', tooLarge));
  const full =
    'The emulator keeps at most 10 MB of uploads (EMULATOR_UPLOADSMAXMB), and 10 MB are free. Delete media, or reset the emulator.';
  expect(await announce(beginDirect({ maxBytes: 2 ** 40 }))).toEqual(errorBody('uploads_full', full));
  expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[], 0]);
});

test('a client that sends all of a file that is too large gets the answer, and may go on over the same connection', async () => {
  const { url, beginDirect } = await startUploads();
  const link = url + beginDirect({ maxBytes: MB });
  const answers = [];
  // The first one is more than the system's buffers for a connection take.
  for (const bytes of [6 * MB, 2 * MB, MB]) {
    const { status } = await fetch(link, { method: 'PUT', body: Buffer.alloc(bytes) });
    answers.push(status);
  }
  expect(answers).toEqual([413, 413, 200]);
});

test('a body of unknown length is cut off at the limit, its sender gets an error, and nothing of it is kept', async () => {
  const { port, beginDirect, sizesOnDisk, context } = await startUploads();
  const link = beginDirect({ maxBytes: MB });
  const body = 'x'.repeat(MB + 1);
  const { status, text } = await rawRequest(port, 'PUT', link, { 'transfer-encoding': 'chunked' }, body);
  expect([status, JSON.parse(text).errors[0].code]).toEqual([413, 'body_too_large']);
  expect([sizesOnDisk(), context.uploads.files.usedBytes]).toEqual([[], 0]);
  const whole = await rawRequest(port, 'PUT', link, { 'transfer-encoding': 'chunked' }, body.slice(1));
  expect(whole.status).toBe(200);
});

test('the parts of a file may not have more bytes than the file', async () => {
  const { unauthenticated, begin } = await startUploads();
  const upload = begin({ method: 'multipart', maxBytes: 10 });
  const put = (part: number, bytes: number) =>
    unauthenticated.put(partLink(upload, part, '')).send(Buffer.alloc(bytes));
  await put(1, 6).expect(200);
  const tooLarge = 'The file is larger than this upload may be: 4 bytes.';
  await put(2, 5).expect(413, errorBody('body_too_large', tooLarge));
  await put(1, 10).expect(200);
});

test('all files together have no more than the limit, and a deleted one makes room', async () => {
  const { unauthenticated, beginDirect, taken, context } = await startUploads({ EMULATOR_UPLOADSMAXMB: '2' });
  const put = () => unauthenticated.put(beginDirect()).send(Buffer.alloc(1.5 * MB));
  await put().expect(200);
  expect((await put().expect(413)).body.errors[0].code).toBe('uploads_full');
  for (const file of [...taken, ...taken]) await context.uploads.files.remove(file);
  expect(context.uploads.files.usedBytes).toBe(0);
  await put().expect(200);
});

test('a file that is only announced takes no room from the others', async () => {
  const emulator = await startUploads({ EMULATOR_UPLOADSMAXMB: '2' });
  const { unauthenticated, beginDirect, sizesOnDisk } = emulator;
  const { socket, answer } = sendPart(emulator, beginDirect(), 2 * MB, 'hello');
  await until(() => sizesOnDisk().length === 1);
  const rest = Buffer.alloc(2 * MB - 5);
  await unauthenticated.put(beginDirect()).send(rest).expect(200);
  // Its announced length has no room now.
  socket.write('more');
  expect(await answer).toMatch(/^HTTP\/1.1 413 /);
  socket.destroy();
});

test('a reset deletes every file, ends what is on its way, and forgets the links', async () => {
  const emulator = await startUploads();
  const { unauthenticated, control, begin, beginDirect, taken, sizesOnDisk, context } = emulator;
  const link = beginDirect();
  await unauthenticated.put(link).send(Buffer.alloc(1000)).expect(200);
  const folder = dirname(taken[0]?.path ?? '');
  const part = partLink(begin({ method: 'multipart' }), 1, '');
  await unauthenticated.put(part).send('part').expect(200);
  const { socket, answer } = sendPart(emulator, beginDirect(), 10, 'hello');
  await until(() => sizesOnDisk().length === 3);
  await control.post('/reset').expect(204);
  const { files } = context.uploads;
  expect([existsSync(folder), files.usedBytes, context.uploads.list()]).toEqual([false, 0, []]);
  expect(await answer).toMatch(/^HTTP\/1.1 410 /);
  socket.destroy();
  await unauthenticated.put(link).send('again').expect(404);
  // The old file is not counted off the new state.
  for (const file of taken) await context.uploads.files.remove(file);
  expect(context.uploads.files.usedBytes).toBe(0);
  await unauthenticated.put(beginDirect()).send('new').expect(200);
  expect(sizesOnDisk()).toEqual([3]);
});

test('a folder that was taken away is made again', async () => {
  const { unauthenticated, beginDirect, taken, sizesOnDisk } = await startUploads();
  await unauthenticated.put(beginDirect()).send('one').expect(200);
  rmSync(dirname(taken[0]?.path ?? ''), { recursive: true });
  await unauthenticated.put(beginDirect()).send('four').expect(200);
  expect(sizesOnDisk()).toEqual([4]);
});

test('a sender that stops sending is cut off', async () => {
  const uploads = uploadsAlone('/tmp', { stallMs: 50 });
  const upload = uploads.begin({ siteId: 's', method: 'direct', maxBytes: MB, done: () => undefined });
  const silent = new Readable({ read: () => undefined });
  silent.push('a beginning');
  await expect(upload.receiveFile(silent, {})).rejects.toMatchObject({
    status: 408,
    problems: errorBody(
      'request_timeout',
      'The upload stopped: nothing came for too long. Send the file again.',
    ).errors,
  });
  expect(uploads.files.usedBytes).toBe(0);
  uploads.reset();
});

test('folders of processes that were killed are deleted when the first file comes', async () => {
  const { unauthenticated, beginDirect, taken, context } = await startUploads();
  const { uploadsFolder } = context.seeds;
  const ended = spawnSync(process.execPath, ['-e', '']).pid;
  const name = (pid: number, host = hostname()) =>
    `emulator-uploads-${host.replaceAll(/[^\w.]/g, '_')}-${pid}-old`;
  // Of a process that has ended, of one before with the number of this one, of one that runs, and of another machine.
  const [running, elsewhere] = [name(process.ppid), name(ended, 'x')];
  for (const folder of [name(ended), name(process.pid), running, elsewhere]) {
    mkdirSync(join(uploadsFolder, folder));
    writeFileSync(join(uploadsFolder, folder, '00000001'), 'left over');
  }
  await unauthenticated.put(beginDirect()).send('one').expect(200);
  const own = basename(dirname(taken[0]?.path ?? ''));
  expect(readdirSync(uploadsFolder).sort()).toEqual([running, elsewhere, own].sort());
});

const folder = mkdtempSync(join(tmpdir(), 'uploads-accounting-'));

afterAll(() => rmSync(folder, { recursive: true }));

const filesOnDisk = () =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

/** The stream of a sender of so many bytes, which may end early. */
function sourceOf(bytes: number, end: 'whole' | 'cut' | 'failed'): Readable {
  const source = Readable.from([Buffer.alloc(bytes, 1)], { objectMode: false });
  if (end === 'whole') return source;
  const cut = new Readable({ read: () => undefined });
  // One that is refused at once has no listener.
  cut.on('error', () => undefined);
  cut.push(Buffer.alloc(Math.ceil(bytes / 2), 1));
  setImmediate(() => cut.destroy(end === 'failed' ? new Error('gone') : undefined));
  return cut;
}

const MOSTLY_SEND = ['send', 'send', 'send', 'send', 'complete', 'cancel', 'remove', 'wait'] as const;
const STEP = fc.record({
  kind: fc.constantFrom(...MOSTLY_SEND),
  upload: fc.nat(3),
  part: fc.integer({ min: 1, max: 3 }),
  bytes: fc.nat(3000),
  end: fc.constantFrom('whole', 'whole', 'whole', 'cut', 'failed'),
  isAnnounced: fc.boolean(),
});

test('the count of bytes is that of the disk after any mix of sent, cut, completed, cancelled and removed uploads, and in the end nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 30 }), async (steps) => {
      const uploads = uploadsAlone(folder, { maxBytes: 10_000 });
      const taken: StoredFile[] = [];
      let refusals = 0;
      const done = (file: StoredFile) => {
        refusals += 1;
        if (refusals % 4 === 0) throw new Error('refused');
        taken.push(file);
      };
      const begun = (['direct', 'multipart', 'direct', 'multipart'] as const).map((method) =>
        uploads.begin({ siteId: 's', method, maxBytes: 5000, done }),
      );
      const underWay: Promise<unknown>[] = [];
      for (const { kind, upload: place, part, bytes, end, isAnnounced } of steps) {
        const upload = begun[place];
        if (!upload) continue;
        if (kind === 'send') {
          const sent = { length: isAnnounced ? bytes : undefined };
          const source = sourceOf(bytes, end);
          const received =
            upload.method === 'direct'
              ? upload.receiveFile(source, sent)
              : upload.receivePart(part, source, sent);
          underWay.push(received.catch(() => undefined));
        } else if (kind === 'complete') underWay.push(upload.complete().catch(() => undefined));
        else if (kind === 'cancel') uploads.cancel(upload);
        else if (kind === 'remove') {
          const file = taken.shift();
          if (file) underWay.push(uploads.files.remove(file));
        } else await Promise.all(underWay);
        expect(uploads.files.usedBytes).toBeLessThanOrEqual(15_000);
      }
      await Promise.all(underWay);
      for (const upload of begun) uploads.cancel(upload);
      await new Promise((resolve) => setImmediate(resolve));
      expect(uploads.files.usedBytes).toBe(taken.reduce((sum, { size }) => sum + size, 0));
      await Promise.all(taken.map((file) => uploads.files.remove(file)));
      expect(uploads.files.usedBytes).toBe(0);
      // Cancelled files are deleted in the background.
      await until(() => filesOnDisk().length === 0);
      uploads.reset();
    }),
    { numRuns: 60 },
  );
});
