import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

let folder: string;
let sidecar: TestSidecar;

beforeEach(async () => {
  folder = join(await temporaryFolder(), 'keys');
  await fs.ensureDir(folder);
  await fs.writeFile(join(folder, 'live.key'), CENC_ONLY_FILE);
  sidecar = await startSidecar({ keyFilesPath: folder });
});

const CHECK = 'Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.';

function notUsable(verb: 'readable' | 'writable', reason: string) {
  const description = `The key-file folder is not ${verb}: ${reason}. ${CHECK}`;
  return { errors: [{ code: `key_files_not_${verb}`, description }] };
}

async function askEverything(streamId: string) {
  const path = `/api/keyfile/${streamId}`;
  const answers = {
    get: await sidecar.api.get(path),
    post: await sidecar.api.post(path).send(CENC_ONLY),
    delete: await sidecar.api.delete(path),
    ready: await sidecar.unauthenticated.get('/readyz'),
    healthy: await sidecar.unauthenticated.get('/healthz'),
  };
  return Object.fromEntries(
    Object.entries(answers).map(([name, { status, body }]) => [name, { status, body }]),
  );
}

const HEALTHY = { status: 200, body: { status: 'ok' } };
const GONE = 'the folder is gone (ENOENT)';
const NO_FOLDER = 'the path of the folder is not a folder (ENOTDIR)';

test.each(['live', 'never-written', 'site%2Fevent'])(
  'says of %s that the folder is gone, makes no new folder, and works again when it is back',
  async (streamId) => {
    await fs.move(folder, `${folder}-elsewhere`);
    expect(await askEverything(streamId)).toEqual({
      get: { status: 500, body: notUsable('readable', GONE) },
      post: { status: 500, body: notUsable('writable', GONE) },
      delete: { status: 500, body: notUsable('writable', GONE) },
      ready: { status: 503, body: notUsable('writable', GONE) },
      healthy: HEALTHY,
    });
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
  expect(await askEverything('live')).toEqual({
    get: { status: 500, body: notUsable('readable', NO_FOLDER) },
    post: { status: 500, body: notUsable('writable', NO_FOLDER) },
    delete: { status: 500, body: notUsable('writable', NO_FOLDER) },
    ready: { status: 503, body: notUsable('writable', NO_FOLDER) },
    healthy: HEALTHY,
  });
  expect(await fs.readFile(folder, 'utf8')).toBe('not a folder\n');
});

describe('another file system at the path of the folder', () => {
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
        expect(await askEverything(streamId)).toEqual({
          get: { status: 500, body: notUsable('readable', OTHER) },
          post: { status: 500, body: notUsable('writable', OTHER) },
          delete: { status: 500, body: notUsable('writable', OTHER) },
          ready: { status: 503, body: notUsable('writable', OTHER) },
          healthy: HEALTHY,
        });
        const list = await sidecar.api.get('/api/keyfiles');
        expect({ status: list.status, body: list.body }).toEqual({
          status: 500,
          body: notUsable('readable', OTHER),
        });
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
