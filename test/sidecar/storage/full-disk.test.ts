import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fs from 'fs-extra';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

// A file system of 64 KiB of its own. Elsewhere the injected faults of write-faults.test.ts cover the same.
const folder = mkdtempSync(join(tmpdir(), 'packager-drm-api-disk-'));
const mounted = mount();
const onRealDisk = mounted ? test : test.skip;

function mount(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0750', 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function remount(how: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${how}`, folder]);
}

/** Takes all the space there is, and answers how to give it back. */
function fill(): () => void {
  const ballast = join(folder, 'ballast');
  const descriptor = fs.openSync(ballast, 'w');
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096));
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'ENOSPC' });
  } finally {
    fs.closeSync(descriptor);
  }
  return () => fs.removeSync(ballast);
}

afterAll(() => {
  if (mounted) execFileSync('umount', [folder]);
  rmdirSync(folder);
});

describe(`on a small disk${mounted ? '' : ' (skipped: mounting a tmpfs takes root on Linux)'}`, () => {
  let sidecar: TestSidecar;
  const withoutBallast = async () => (await fs.readdir(folder)).filter((name) => name !== 'ballast').sort();

  beforeEach(async () => {
    if (!mounted) return;
    await fs.emptyDir(folder);
    sidecar = await startSidecar({ keyFilesPath: folder });
    await sidecar.api.post('/api/keyfile/live').send(CENC_ONLY);
  });

  async function post(streamId: string) {
    const { status, body } = await sidecar.api.post(`/api/keyfile/${streamId}`).send(POST_MANUAL);
    return { status, body };
  }

  onRealDisk.each(['live', 'new'])(
    'answers 507 to a POST of the stream %s when the disk is full, and 200 when there is space again',
    async (streamId) => {
      const free = fill();
      const description =
        'There is no space left for key files; none was damaged. Free some space and try again.';
      expect(await post(streamId)).toEqual({
        status: 507,
        body: { errors: [{ code: 'insufficient_storage', description }] },
      });
      expect((await sidecar.unauthenticated.get('/readyz')).status).toBe(503);
      expect((await sidecar.api.get('/api/keyfile/live')).text).toBe(CENC_ONLY_FILE);
      expect(await withoutBallast()).toEqual(['live.key']);
      free();
      expect((await post(streamId)).status).toBe(200);
      expect((await sidecar.api.get(`/api/keyfile/${streamId}`)).text).toBe(POST_MANUAL_FILE);
      sidecar.advance(1000);
      expect((await sidecar.unauthenticated.get('/readyz')).status).toBe(200);
    },
  );

  onRealDisk('deletes a key file from a full disk', async () => {
    fill();
    const { status, text } = await sidecar.api.delete('/api/keyfile/live');
    expect({ status, text }).toEqual({ status: 200, text: CENC_ONLY_FILE });
  });

  onRealDisk('reads and does not write while the disk is read-only, and writes when it is not', async () => {
    remount('ro');
    try {
      const reason = 'the folder is mounted read-only (EROFS)';
      const description = `The key-file folder is not writable: ${reason}. Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.`;
      const body = { errors: [{ code: 'key_files_not_writable', description }] };
      expect(await post('live')).toEqual({ status: 500, body });
      expect(await post('site%2Fevent')).toEqual({ status: 500, body });
      const removal = await sidecar.api.delete('/api/keyfile/live');
      expect({ status: removal.status, body: removal.body }).toEqual({ status: 500, body });
      const ready = await sidecar.unauthenticated.get('/readyz');
      expect({ status: ready.status, body: ready.body }).toEqual({ status: 503, body });
      expect((await sidecar.api.get('/api/keyfile/live')).text).toBe(CENC_ONLY_FILE);
    } finally {
      remount('rw');
    }
    expect((await post('live')).status).toBe(200);
    expect(await withoutBallast()).toEqual(['live.key']);
  });
});
