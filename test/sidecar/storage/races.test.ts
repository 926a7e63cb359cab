import { execFileSync } from 'node:child_process';
import { readdirSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { readSmallFile } from '../../../src/sidecar/storage/open-file';
import { folderOfEachTest, temporaryFolder } from '../../support/after-test';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { errorBody, startSidecar, type TestSidecar } from '../../support/start-sidecar';

/**
 * Swaps a sub-folder for a link to another folder and back, over and over, between all that the sidecar does: it runs in
 * the same process, so each await lets it in.
 */
async function swapping(sub: string, outside: string, run: () => Promise<void>): Promise<void> {
  let goes = true;
  const swap = async () => {
    while (goes) {
      renameSync(sub, `${sub}-aside`);
      symlinkSync(outside, sub);
      await new Promise((resolve) => setImmediate(resolve));
      unlinkSync(sub);
      renameSync(`${sub}-aside`, sub);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const swapped = swap();
  await run().finally(() => {
    goes = false;
  });
  await swapped;
}

test('a sub-folder that is swapped for a link in the middle of requests leads none of them outside', async () => {
  const { api, folder } = await startSidecar();
  const outside = await temporaryFolder();
  await fs.outputFile(join(outside, 'secret.key'), 'a: secret\n');
  await fs.outputFile(join(folder, 'site', 'kept.key'), CENC_ONLY_FILE);
  const statuses = new Map<string, number>();
  const note = (what: string, { status, text }: { status: number; text: string }) => {
    expect(text).not.toContain('a: secret');
    statuses.set(`${what} ${status}`, (statuses.get(`${what} ${status}`) ?? 0) + 1);
  };
  await swapping(join(folder, 'site'), outside, async () => {
    for (let round = 0; round < 20; round += 1) {
      await Promise.all([
        ...[`site%2Flive-${round}`, `site%2Fdeep%2F${round}`].map((streamId) =>
          api
            .post(`/api/keyfile/${streamId}`)
            .send(CENC_ONLY)
            .then((each) => note('POST', each)),
        ),
        api.get('/api/keyfile/site%2Fsecret').then((each) => note('GET', each)),
        api.delete('/api/keyfile/site%2Fsecret').then((each) => note('DELETE', each)),
      ]);
    }
  });
  expect(await fs.readdir(outside)).toEqual(['secret.key']);
  const written = await fs.readdir(join(folder, 'site'));
  expect(written.filter((name) => name.startsWith('live-'))).not.toEqual([]);
  expect(written.filter((name) => name.endsWith('.tmp'))).toEqual([]);
  // Both must have happened: else nothing was tried.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining(['POST 200', 'POST 409']));
});

describe('a folder that vanishes', () => {
  const folder = join(folderOfEachTest(), 'keys');
  let sidecar: TestSidecar;

  beforeEach(async () => {
    await fs.ensureDir(folder);
    await fs.writeFile(join(folder, 'live.key'), CENC_ONLY_FILE);
    sidecar = await startSidecar({ keyFilesPath: folder });
  });

  /** The answer to each request: the status, and the code or else the body. */
  async function askEverything(streamId: string) {
    const path = `/api/keyfile/${streamId}`;
    const asked = [
      sidecar.api.get(path),
      sidecar.api.post(path).send(CENC_ONLY),
      sidecar.api.delete(path),
      sidecar.unauthenticated.get('/readyz'),
      sidecar.unauthenticated.get('/healthz'),
    ];
    const answers = [];
    for (const answer of asked) {
      const { status, body } = await answer;
      answers.push([status, body.errors?.[0].code ?? body]);
    }
    return answers;
  }

  const UNUSABLE = [
    [500, 'key_files_not_readable'],
    [500, 'key_files_not_writable'],
    [500, 'key_files_not_writable'],
    [503, 'key_files_not_writable'],
    [200, { status: 'ok' }],
  ];

  test.each(['live', 'never-written', 'site%2Fevent'])(
    'says of %s that the folder is gone, makes no new folder, and works again when it is back',
    async (streamId) => {
      await fs.move(folder, `${folder}-elsewhere`);
      expect(await askEverything(streamId)).toEqual(UNUSABLE);
      expect(await fs.pathExists(folder)).toBe(false);

      await fs.move(`${folder}-elsewhere`, folder);
      const { text } = await sidecar.api.get('/api/keyfile/live');
      expect(text).toBe(CENC_ONLY_FILE);
      expect((await sidecar.api.post(`/api/keyfile/${streamId}`).send(CENC_ONLY)).status).toBe(200);
      expect((await sidecar.api.delete(`/api/keyfile/${streamId}`)).text).toBe(CENC_ONLY_FILE);
      sidecar.advance(1000);
      expect((await sidecar.unauthenticated.get('/readyz')).status).toBe(200);
    },
  );

  test('says that a file in the place of the folder is no folder', async () => {
    await fs.remove(folder);
    await fs.writeFile(folder, 'not a folder\n');
    expect(await askEverything('live')).toEqual(UNUSABLE);
    expect(await fs.readFile(folder, 'utf8')).toBe('not a folder\n');
  });

  const OTHER =
    'a different file system is at its path than at the start; mount the former one again, or restart the service if this is the right one (ENODEV)';

  /** The memory file system is another one than that of temporary folders, as an empty mount point is than the mount. */
  const elsewhere = () => fs.mkdtempSync('/dev/shm/packager-drm-api-');

  test.each(['live', 'never-written', 'site%2Fevent'])(
    'is not taken for it: %s is neither absent nor written there',
    async (streamId) => {
      const other = elsewhere();
      try {
        await fs.move(folder, `${folder}-elsewhere`);
        await fs.symlink(other, folder);
        await fs.writeFile(join(other, 'live.key'), 'left: over\n');
        expect(await askEverything(streamId)).toEqual(UNUSABLE);
        const list = await sidecar.api.get('/api/keyfiles');
        const description = `The key-file folder is not readable: ${OTHER}. Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.`;
        expect([list.status, list.body]).toEqual([500, errorBody('key_files_not_readable', description)]);
        expect(await fs.readdir(other)).toEqual(['live.key']);

        await fs.unlink(folder);
        await fs.move(`${folder}-elsewhere`, folder);
        expect((await sidecar.api.get('/api/keyfile/live')).text).toBe(CENC_ONLY_FILE);
        sidecar.advance(1000);
        expect((await sidecar.unauthenticated.get('/readyz')).status).toBe(200);
      } finally {
        await fs.remove(other);
      }
    },
  );
});

describe('reading a file', () => {
  const MEBIBYTE = 1024 * 1024;

  const folder = folderOfEachTest();
  const path = join(folder, 'live.key');

  test.each([0, 1, 1000, MEBIBYTE])('reads a file of %d bytes whole', async (length) => {
    const bytes = Buffer.alloc(length, 'abc');
    await fs.writeFile(path, bytes);
    const found = readSmallFile(path);
    expect(found?.kind).toBe('file');
    expect(found?.kind === 'file' && found.bytes.equals(bytes)).toBe(true);
  });

  test('refuses a file of one byte more than a mebibyte', async () => {
    await fs.writeFile(path, Buffer.alloc(MEBIBYTE + 1));
    expect(readSmallFile(path)).toEqual({ kind: 'too_large' });
  });

  test('answers undefined where there is no file, and below one', async () => {
    expect(readSmallFile(path)).toBeUndefined();
    await fs.writeFile(path, 'name: value\n');
    expect(readSmallFile(join(path, 'below.key'))).toBeUndefined();
  });

  test.each([
    ['that leads to a key file', 'other.key'],
    ['that leads nowhere', 'missing.key'],
    ['that leads to itself', 'live.key'],
    ['that leads to a folder', '.'],
  ])('follows no link %s', async (_where, target) => {
    await fs.writeFile(join(folder, 'other.key'), 'name: value\n');
    symlinkSync(target, path);
    expect(readSmallFile(path)).toEqual({ kind: 'link' });
  });

  test('takes a folder, a pipe, a device and a socket for no file, and waits for no writer', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    for (const name of [folder, join(folder, 'pipe'), '/dev/null', path])
      expect(readSmallFile(name)).toEqual({ kind: 'not_a_file' });
    await new Promise((resolve) => server.close(resolve));
  });

  test('throws what the system says to a path that is too long', () => {
    const read = () => readSmallFile(join(folder, 'x'.repeat(300)));
    expect(read).toThrow(expect.objectContaining({ code: 'ENAMETOOLONG' }));
  });

  const descriptors = '/proc/self/fd';
  const onLinux = fs.existsSync(descriptors) ? test : test.skip;

  onLinux('leaves no descriptor open, whatever it finds', async () => {
    await fs.writeFile(join(folder, 'file'), 'name: value\n');
    await fs.writeFile(join(folder, 'large'), Buffer.alloc(MEBIBYTE + 1));
    await fs.ensureDir(join(folder, 'folder'));
    const names = ['file', 'large', 'folder', 'missing'];
    const before = readdirSync(descriptors).length;
    for (let round = 0; round < 50; round += 1) for (const name of names) readSmallFile(join(folder, name));
    expect(readdirSync(descriptors).length).toBeLessThan(before + 50);
  });

  test('leaves no trace in the access time: that shows when the packager has read the file', async () => {
    await fs.writeFile(path, 'name: value\n');
    const before = new Date(2020, 0, 1);
    await fs.utimes(path, before, new Date(2020, 0, 2));
    expect(readSmallFile(path)).toMatchObject({ kind: 'file' });
    expect((await fs.stat(path)).atime).toEqual(before);
  });
});
