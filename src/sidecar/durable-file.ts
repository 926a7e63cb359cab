import {
  closeSync,
  fchmod,
  fdatasync,
  fstatSync,
  open,
  opendir,
  openSync,
  rename,
  renameSync,
  unlink,
  write,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../kernel/errors';
import { createFolderSync } from './folder-sync';

// The callback functions, promisified: a FileHandle of node:fs/promises costs several times as much a write. What
// touches no disk and no journal (fstat, close, the open of a folder) is done at once: a way through the thread pool
// costs more than the call, and waits there behind the syncs of others. So is what touches the journal (open, write,
// rename) while no other write is under way, which makes a single write a fifth faster; beside others it could stand
// still behind their syncs, and the whole service with it, so then it goes through the pool.
const openFile = promisify(open);
const writeBytes = promisify(write) as (
  descriptor: number,
  bytes: Buffer,
  at: number,
  length: number,
) => Promise<{ bytesWritten: number }>;
const setMode = promisify(fchmod);
const syncData = promisify(fdatasync);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);
const openFolder = promisify(opendir);

// Names no key file can have (a stream id never starts with a dot), so that a sweep takes nobody else's files.
const TEMPORARY = /^\.packagerdrmapi-[0-9a-f-]+\.tmp$/;

export interface DurableWriter {
  /**
   * Puts bytes at `path` so that a reader finds the old file whole or the new one whole, also when the process or the
   * machine dies: temporary beside the target → write → fdatasync → rename → fsync of the folder. Resolves when the
   * new file would survive a power cut. A link at `path` is replaced, not followed.
   * Rejects with the system's error; the old file is then as it was, unless only the last sync failed.
   */
  write(path: string, bytes: Buffer, mode: number): Promise<void>;
  /** Removes a file so that it stays removed after a power cut, and answers whether there was one. */
  remove(path: string): Promise<boolean>;
  /** Writes, syncs and removes a temporary in a folder: whether a key file could be written there now. */
  probe(folder: string): Promise<void>;
  /** Syncs a folder's entries, sharing one sync between all who ask while another is under way. */
  syncFolder(folder: string): Promise<void>;
  /**
   * Removes the temporaries that killed writers left in a folder and `depth` levels below it, those of this writer
   * excepted. Answers how many; what can't be read is passed over.
   */
  sweep(folder: string, depth: number): Promise<number>;
}

/** `newId` answers an unguessable UUID; it names this writer's temporaries. */
export function createDurableWriter(newId: () => string): DurableWriter {
  const syncFolder = createFolderSync();
  const ours = `.packagerdrmapi-${newId()}-`;
  let count = 0;
  let underWay = 0;

  const writeTemporary = async (
    folder: string,
    bytes: Buffer,
    mode: number,
    alone: boolean,
  ): Promise<string> => {
    count += 1;
    const temporary = join(folder, `${ours}${count}.tmp`);
    // Exclusive: neither a file nor a link that waits at this name is written to.
    const descriptor = alone ? openSync(temporary, 'wx', mode) : await openFile(temporary, 'wx', mode);
    try {
      await fill(descriptor, bytes, mode, alone);
    } catch (thrown) {
      await unlinkFile(temporary).catch(() => undefined);
      throw thrown;
    }
    return temporary;
  };

  const replace = async (path: string, bytes: Buffer, mode: number): Promise<void> => {
    const temporary = await writeTemporary(dirname(path), bytes, mode, underWay === 1);
    try {
      if (underWay === 1) renameSync(temporary, path);
      else await renameFile(temporary, path);
    } catch (thrown) {
      await unlinkFile(temporary).catch(() => undefined);
      throw thrown;
    }
  };

  return {
    async write(path, bytes, mode) {
      underWay += 1;
      try {
        await replace(path, bytes, mode).catch((thrown: unknown) => {
          // Another service that starts on the same folder may have swept the temporary away; a second one stays.
          if (systemCode(thrown) !== 'ENOENT') throw thrown;
          return replace(path, bytes, mode);
        });
        await syncFolder(dirname(path));
      } finally {
        underWay -= 1;
      }
    },
    async remove(path) {
      try {
        await unlinkFile(path);
      } catch (thrown) {
        if (systemCode(thrown) === 'ENOENT') return false;
        throw thrown;
      }
      await syncFolder(dirname(path));
      return true;
    },
    async probe(folder) {
      const temporary = await writeTemporary(folder, Buffer.from('probe\n'), 0o600, false);
      await unlinkFile(temporary).catch((thrown: unknown) => {
        // Another service that starts on the same folder may have swept it.
        if (systemCode(thrown) !== 'ENOENT') throw thrown;
      });
    },
    syncFolder,
    sweep: (folder, depth) => sweep(folder, depth, ours),
  };
}

/** Writes and syncs the whole of a new file. Its descriptor is closed once, whatever fails: by a second time it may be another's. */
async function fill(descriptor: number, bytes: Buffer, mode: number, alone: boolean): Promise<void> {
  try {
    // open() lets the umask take bits away; the mode is a setting, so it is set.
    if ((fstatSync(descriptor).mode & 0o7777) !== mode) await setMode(descriptor, mode);
    for (let at = 0; at < bytes.length; ) {
      at += alone
        ? writeSync(descriptor, bytes, at, bytes.length - at)
        : (await writeBytes(descriptor, bytes, at, bytes.length - at)).bytesWritten;
    }
    await syncData(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

async function sweep(folder: string, depth: number, except: string): Promise<number> {
  let swept = 0;
  try {
    for await (const entry of await openFolder(folder)) {
      const path = join(folder, entry.name);
      if (entry.isFile() && TEMPORARY.test(entry.name) && !entry.name.startsWith(except)) {
        const removed = await unlinkFile(path).then(
          () => true,
          () => false,
        );
        swept += removed ? 1 : 0;
      } else if (entry.isDirectory() && depth > 0 && !entry.name.startsWith('.')) {
        swept += await sweep(path, depth - 1, except);
      }
    }
  } catch {
    // A folder that can't be read is no reason to refuse the start; /readyz tells when it can't be written.
  }
  return swept;
}
