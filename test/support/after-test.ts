import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Cleanup = () => unknown;

const cleanups: Cleanup[] = [];
const lastCleanups: Cleanup[] = [];

// Jest loads this before the tests, so these are for each test file that is run with it.
afterEach(() => runAll(cleanups));
afterAll(() => runAll(lastCleanups));

/** The last one first: a program ends before the folder that it was started in goes. */
async function runAll(waiting: Cleanup[]): Promise<void> {
  for (const cleanup of waiting.splice(0).reverse()) await cleanup();
}

/** Runs this after the test. */
export function afterTest(cleanup: Cleanup): void {
  cleanups.push(cleanup);
}

/** Runs this after all tests that are run with this file. */
export function afterAllTests(cleanup: Cleanup): void {
  lastCleanups.push(cleanup);
}

/** Starts something once for all tests of a file. Its `afterTest` functions run after the last test. */
export function onceForAll<Started>(start: () => Promise<Started>): () => Promise<Started> {
  let started: Promise<Started> | undefined;
  return async () => {
    if (started) return started;
    const earlier = cleanups.splice(0);
    started = start();
    try {
      return await started;
    } finally {
      lastCleanups.push(...cleanups.splice(0));
      cleanups.push(...earlier);
    }
  };
}

/** A new folder that is removed after the test, or after all; what is stopped may still finish a write there. */
export async function temporaryFolder(after = afterTest): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'packager-drm-api-'));
  after(() => removed(folder));
  return folder;
}

/** The path of a folder that each test of this file, or of this `describe`, finds new and empty. */
export function folderOfEachTest(): string {
  const folder = join(realpathSync(tmpdir()), `packager-drm-api-${randomUUID()}`);
  beforeEach(async () => {
    await mkdir(folder);
    // Also under a umask that takes rights of the owner away: only root could work then.
    await chmod(folder, 0o700);
    afterTest(() => removed(folder));
  });
  return folder;
}

const removed = (folder: string) => rm(folder, { recursive: true, force: true, maxRetries: 5 });
