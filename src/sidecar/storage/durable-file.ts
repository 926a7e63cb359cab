import {
  closeSync,
  fchmod,
  fdatasync,
  fstatSync,
  fsync,
  open,
  opendir,
  openSync,
  rename,
  unlink,
  write,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../../http/errors';

// Promisified: a FileHandle of node:fs/promises costs several times as much. Calls that don't touch the disk
// are synchronous: in the thread pool they would wait behind syncs of others.
const openFile = promisify(open);
const setMode = promisify(fchmod);
const syncData = promisify(fdatasync);
const syncAll = promisify(fsync);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);
const openFolder = promisify(opendir);

/** Writes at the descriptor's position; may write less than it is given. */
export const writeBytes = promisify(write) as (
  descriptor: number,
  bytes: Buffer,
  at: number,
  length: number,
) => Promise<{ bytesWritten: number }>;

export type DurableWriter = ReturnType<typeof createDurableWriter>;

/** The system's error of a sync that failed after its change was made. */
export interface NotSynced {
  readonly cause: unknown;
}

/** `temporary`: opened, its mode set, written. */
export type WritePhase = 'temporary' | 'sync' | 'rename' | 'folder_sync';

export interface WriteTimes {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Must not throw. */
  readonly observe: (phase: WritePhase, ms: number) => void;
}

/** `newId` returns an unguessable UUID, which names this writer's temporaries. */
export function createDurableWriter(newId: () => string, times?: WriteTimes) {
  const syncFolder = createFolderSync();
  const ours = newId();
  let count = 0;

  const writeTemporary = async (folder: string, bytes: Buffer, mode: number, lap: Lap): Promise<string> => {
    count += 1;
    const temporary = join(folder, temporaryName(`${ours}-${count}`));
    // Exclusive: neither a file nor a link that waits at this name is written to.
    const descriptor = await openFile(temporary, 'wx', mode);
    try {
      await fill(descriptor, bytes, mode, lap);
    } catch (thrown) {
      await unlinkFile(temporary).catch(() => undefined);
      throw thrown;
    }
    return temporary;
  };

  const replace = async (path: string, bytes: Buffer, mode: number, lap: Lap): Promise<void> => {
    const temporary = await writeTemporary(dirname(path), bytes, mode, lap);
    try {
      await renameFile(temporary, path);
      lap('rename');
    } catch (thrown) {
      await unlinkFile(temporary).catch(() => undefined);
      throw thrown;
    }
  };

  /** As `syncFolder`, but a failure is the answer. */
  const trySync = (folder: string, id?: string): Promise<NotSynced | undefined> =>
    syncFolder(folder, id).then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );

  return {
    /**
     * Readers find the old file whole or the new one whole, even after a crash: temporary next to the target
     * → write → fdatasync → rename → fsync of the folder. Resolves when the new file would survive a power cut, or
     * with a reason when the last sync failed. A link at `path` is replaced, not followed. Rejects with the
     * system's error; the old file is then as it was. `folderId` is the `id` of `syncFolder`.
     */
    async write(
      path: string,
      bytes: Buffer,
      mode: number,
      folderId?: string,
    ): Promise<NotSynced | undefined> {
      const lap = times ? stopwatch(times) : noLap;
      await replace(path, bytes, mode, lap).catch((thrown: unknown) => {
        // Another service that starts on the same folder may have swept it; a second one stays.
        if (systemCode(thrown) !== 'ENOENT') throw thrown;
        return replace(path, bytes, mode, lap);
      });
      const notSynced = await trySync(dirname(path), folderId);
      lap('folder_sync');
      return notSynced;
    },
    /** The file stays removed after a power cut, unless the last sync fails. */
    async remove(path: string, folderId?: string): Promise<'removed' | 'absent' | NotSynced> {
      try {
        await unlinkFile(path);
      } catch (thrown) {
        if (systemCode(thrown) === 'ENOENT') return 'absent';
        throw thrown;
      }
      return (await trySync(dirname(path), folderId)) ?? 'removed';
    },
    /** Rejects with the system's error when no key file could be written now. */
    async probe(folder: string): Promise<void> {
      const temporary = await writeTemporary(folder, Buffer.from('probe\n'), 0o600, noLap);
      await unlinkFile(temporary).catch((thrown: unknown) => {
        // Another service that starts on the same folder may have swept it.
        if (systemCode(thrown) !== 'ENOENT') throw thrown;
      });
    },
    syncFolder,
    trySync,
    /** Sweeps a folder and `depth` levels below it, except for the temporaries of this writer. */
    sweep: (folder: string, depth: number, signal?: AbortSignal) =>
      sweepFolder(folder, depth, `${TEMPORARY_PREFIX}${ours}-`, signal),
  };
}

type Lap = (phase: WritePhase) => void;

const noLap: Lap = () => undefined;

function stopwatch({ now, observe }: WriteTimes): Lap {
  let began = now();
  return (phase) => {
    const ended = now();
    observe(phase, ended - began);
    began = ended;
  };
}

/** The descriptor is closed once in any case: later it may be another's. */
async function fill(descriptor: number, bytes: Buffer, mode: number, lap: Lap): Promise<void> {
  try {
    // open() lets the umask take bits away.
    if ((fstatSync(descriptor).mode & 0o7777) !== mode) await setMode(descriptor, mode);
    for (let at = 0; at < bytes.length; ) {
      at += (await writeBytes(descriptor, bytes, at, bytes.length - at)).bytesWritten;
    }
    lap('temporary');
    await syncData(descriptor);
    lap('sync');
  } finally {
    closeSync(descriptor);
  }
}

async function syncNow(folder: string): Promise<void> {
  const descriptor = openSync(folder, 'r');
  try {
    await syncAll(descriptor);
  } catch (thrown) {
    // Some network and FUSE file systems can't sync a folder.
    if (systemCode(thrown) !== 'EINVAL' && systemCode(thrown) !== 'ENOTSUP') throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Shares syncs. One that began before a caller's rename doesn't count: the caller waits for the next. `id` is
 * the same for all paths to a folder; a path must lead there until its sync is done.
 */
function createFolderSync(): (folder: string, id?: string) => Promise<void> {
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

/** No stream id starts with a dot: a sweep takes no key file. */
const TEMPORARY_PREFIX = '.packagerdrmapi-';
const TEMPORARY = /^\.packagerdrmapi-[0-9a-f-]+\.tmp$/;

/** A sweep at the start removes a file of this name. `id`: hex digits and hyphens. */
export function temporaryName(id: string): string {
  return `${TEMPORARY_PREFIX}${id}.tmp`;
}

interface Swept {
  readonly temporaries: number;
  readonly keyFiles: number;
}

/**
 * Removes temporaries that don't begin with `except`, and counts key files. Skips unreadable folders below; undefined: the
 * folder itself is one.
 */
async function sweepFolder(
  folder: string,
  depth: number,
  except: string,
  signal?: AbortSignal,
): Promise<Swept | undefined> {
  let temporaries = 0;
  let keyFiles = 0;
  try {
    for await (const entry of await openFolder(folder)) {
      if (signal?.aborted) break;
      const path = join(folder, entry.name);
      if (entry.isFile() && TEMPORARY.test(entry.name) && !entry.name.startsWith(except)) {
        temporaries += await unlinkFile(path).then(
          () => 1,
          () => 0,
        );
      } else if (entry.isFile() && entry.name.endsWith('.key') && !entry.name.startsWith('.')) {
        keyFiles += 1;
      } else if (entry.isDirectory() && depth > 0 && !entry.name.startsWith('.')) {
        const below = await sweepFolder(path, depth - 1, except, signal);
        temporaries += below?.temporaries ?? 0;
        keyFiles += below?.keyFiles ?? 0;
      }
    }
    return { temporaries, keyFiles };
  } catch {
    // An unreadable folder doesn't refuse the start; /readyz reports one that can't be written.
    return undefined;
  }
}
