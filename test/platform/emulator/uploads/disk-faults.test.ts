import fs, { type WriteStream } from 'node:fs';
import { Writable } from 'node:stream';
import { partLink } from '../../../../src/platform/emulator/uploads/uploads';
import { startUploads } from '../../../support/start-uploads';

afterEach(() => void jest.restoreAllMocks());

/** Has the next file fail with this error of the system when so many bytes are written. */
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

const FULL = {
  errors: [
    {
      code: 'insufficient_storage',
      description: 'The disk of the uploads is full. Make room, or choose another EMULATOR_UPLOADSFOLDER.',
    },
  ],
};

test('when the disk is full, the sender is told, nothing is kept, and the link takes the file later', async () => {
  const { unauthenticated, beginDirect, sizesOnDisk, context } = await startUploads();
  const link = beginDirect();
  const bytes = Buffer.alloc(1_000_000);
  failNextFile('ENOSPC', 200_000);
  await unauthenticated.put(link).send(bytes).expect(507, FULL);
  expect([sizesOnDisk(), context.uploads.usedBytes]).toEqual([[], 0]);
  await unauthenticated.put(link).send(bytes).expect(200);
});

test('when the disk gets full while parts are put together, they stay, and can be completed later', async () => {
  const { unauthenticated, begin, taken, sizesOnDisk, context } = await startUploads();
  const upload = begin({ method: 'multipart' });
  for (const part of [1, 2])
    await unauthenticated
      .put(partLink(upload, part, ''))
      .send('12345')
      .expect(200);
  const complete = () =>
    unauthenticated.put(`/v2/uploads/${upload.id}/complete`).set('authorization', upload.token);
  failNextFile('EDQUOT', 6);
  await complete().expect(507, FULL);
  expect([sizesOnDisk(), context.uploads.usedBytes, taken]).toEqual([[5, 5], 10, []]);
  await complete().expect(202);
  expect([sizesOnDisk(), context.uploads.usedBytes]).toEqual([[10], 10]);
});

test('another fault of the disk is a failure of the service, whose cause is in the log', async () => {
  const { unauthenticated, beginDirect, sizesOnDisk, context, logOf } = await startUploads();
  failNextFile('EIO', 1);
  const { body } = await unauthenticated.put(beginDirect()).send('hello').expect(500);
  expect(body.errors[0].code).toBe('server_error');
  expect(await logOf(1)).toContain('"code":"EIO"');
  expect([sizesOnDisk(), context.uploads.usedBytes]).toEqual([[], 0]);
});

test('a file that can not be deleted is told in the log, and nobody fails of it', async () => {
  const { unauthenticated, beginDirect, taken, context, logOf } = await startUploads();
  await unauthenticated.put(beginDirect()).send('hello').expect(200);
  jest.spyOn(fs.promises, 'rm').mockRejectedValueOnce(Object.assign(new Error('no'), { code: 'EPERM' }));
  await context.uploads.remove({ path: taken[0]?.path ?? '' });
  expect(context.uploads.usedBytes).toBe(0);
  expect(await logOf(2)).toMatch(/"message":"upload not deleted".*EPERM/);
});
