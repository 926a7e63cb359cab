import { closeSync, fsync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { systemCode } from '../../http/errors';

const syncAll = promisify(fsync);

async function syncNow(folder: string): Promise<void> {
  const descriptor = openSync(folder, 'r');
  try {
    await syncAll(descriptor);
  } catch (thrown) {
    // Some network and FUSE file systems can't sync a folder; there a rename is as durable as it gets.
    if (systemCode(thrown) !== 'EINVAL' && systemCode(thrown) !== 'ENOTSUP') throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes a folder's entries durable, and lets callers share the syncs. A caller may only rely on a sync that started
 * after its own rename, so whoever asks while one is under way waits for the next, together with all others who ask
 * meanwhile. `id` is the same for all paths that lead to the same folder; a path must lead there until its sync is done.
 */
export function createFolderSync(): (folder: string, id?: string) => Promise<void> {
  const folders = new Map<string, { running: Promise<void>; next?: Promise<void> }>();
  const start = (folder: string, id: string): Promise<void> => {
    const running = syncNow(folder).finally(() => {
      if (folders.get(id)?.running === running) folders.delete(id);
    });
    folders.set(id, { running });
    return running;
  };
  return (folder, id = folder) => {
    const state = folders.get(id);
    if (!state) return start(folder, id);
    state.next ??= state.running.then(
      () => start(folder, id),
      () => start(folder, id),
    );
    return state.next;
  };
}
