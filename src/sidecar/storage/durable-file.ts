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

// The callback functions, promisified: a FileHandle of node:fs/promises costs several times as much a write. Calls
// that touch no disk and no journal (fstat, close, the open of a folder) are synchronous: a way through the thread
// pool costs more than the call, and waits there behind the syncs of others.
const openFile = promisify(open);
const setMode = promisify(fchmod);
const syncData = promisify(fdatasync);
const syncAll = promisify(fsync);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);
const openFolder = promisify(opendir);

/** `fs.write` of a piece of a buffer at the descriptor's position; may write less than it is given. */
export const writeBytes = promisify(write) as (
  descriptor: number,
  bytes: Buffer,
  at: number,
  length: number,
) => Promise<{ bytesWritten: number }>;

export type DurableWriter = ReturnType<typeof createDurableWriter>;

/** A change is made, but its folder could not be synced. */
export interface NotSynced {
  /** The system's error. */
  readonly cause: unknown;
}

/** The phases of a write, in this order. `temporary`: opened, its mode set, written. */
export type WritePhase = 'temporary' | 'sync' | 'rename' | 'folder_sync';

/** Takes how long each phase of each write took. Must not throw. */
export interface WriteTimes {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observe: (phase: WritePhase, ms: number) => void;
}

/** `newId` returns an unguessable UUID; it names this writer's temporaries. */
export function createDurableWriter(newId: () => string, times?: WriteTimes) {
  const syncFolder = createFolderSync();
  const ours = `${TEMPORARY_PREFIX}${newId()}-`;
  let count = 0;

  const writeTemporary = async (folder: string, bytes: Buffer, mode: number, lap: Lap): Promise<string> => {
    count += 1;
    const temporary = join(folder, `${ours}${count}.tmp`);
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

  /** The same as `syncFolder`, but a failure is the answer. */
  const trySync = (folder: string, id?: string): Promise<NotSynced | undefined> =>
    syncFolder(folder, id).then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );

  return {
    /**
     * Puts bytes at `path` so that a reader finds the old file whole or the new one whole, also when the process or the
     * machine dies: temporary next to the target → write → fdatasync → rename → fsync of the folder. Resolves when the
     * new file would survive a power cut, or with the reason when only the last sync failed. A link at `path` is replaced,
     * not followed. Rejects with the system's error; the old file is then as it was. `folderId` is as for `syncFolder`.
     */
    async write(
      path: string,
      bytes: Buffer,
      mode: number,
      folderId?: string,
    ): Promise<NotSynced | undefined> {
      const lap = times ? stopwatch(times) : noLap;
      await replace(path, bytes, mode, lap).catch((thrown: unknown) => {
        // Another service that starts on the same folder may have swept the temporary away; a second one stays.
        if (systemCode(thrown) !== 'ENOENT') throw thrown;
        return replace(path, bytes, mode, lap);
      });
      const notSynced = await trySync(dirname(path), folderId);
      lap('folder_sync');
      return notSynced;
    },
    /** Removes a file; it stays removed after a power cut, unless the last sync fails. */
    async remove(path: string, folderId?: string): Promise<'removed' | 'absent' | NotSynced> {
      try {
        await unlinkFile(path);
      } catch (thrown) {
        if (systemCode(thrown) === 'ENOENT') return 'absent';
        throw thrown;
      }
      return (await trySync(dirname(path), folderId)) ?? 'removed';
    },
    /** Writes, syncs and removes a temporary in a folder: whether a key file could be written there now. */
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
    sweep: (folder: string, depth: number, signal?: AbortSignal) => sweepFolder(folder, depth, ours, signal),
  };
}

/** Says that a phase is over, which began when the one before it was. */
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

/** Writes and syncs the whole of a new file. Its descriptor is closed once in any case: later it may be another's. */
async function fill(descriptor: number, bytes: Buffer, mode: number, lap: Lap): Promise<void> {
  try {
    // open() lets the umask take bits away; the mode is a setting, so it is set.
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
    // Some network and FUSE file systems can't sync a folder; there a rename is as durable as it gets.
    if (systemCode(thrown) !== 'EINVAL' && systemCode(thrown) !== 'ENOTSUP') throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes a folder's entries durable, and lets callers share the syncs. A caller may only rely on a sync that started
 * after its own rename, so a caller that asks while one is under way waits for the next, together with all others who ask
 * meanwhile. `id` is the same for all paths that lead to the same folder; a path must lead there until its sync is done.
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

/**
 * How the names of temporaries begin. No key file's does (a stream id never starts with a dot), so that a sweep takes
 * no other program's files.
 */
const TEMPORARY_PREFIX = '.packagerdrmapi-';
const TEMPORARY = /^\.packagerdrmapi-[0-9a-f-]+\.tmp$/;

interface Swept {
  /** How many temporaries were removed. */
  readonly temporaries: number;
  /** How many key files there are. */
  readonly keyFiles: number;
}

/**
 * Removes the temporaries in a folder and `depth` levels below it whose names don't begin with `except`, and counts the
 * key files. Unreadable folders are skipped. Ends early when aborted.
 */
async function sweepFolder(
  folder: string,
  depth: number,
  except: string,
  signal?: AbortSignal,
): Promise<Swept> {
  let temporaries = 0;
  let keyFiles = 0;
  try {
    for await (const entry of await openFolder(folder)) {
      if (signal?.aborted) break;
      const path = join(folder, entry.name);
      if (entry.isFile() && TEMPORARY.test(entry.name) && !entry.name.startsWith(except)) {
        const removed = await unlinkFile(path).then(
          () => true,
          () => false,
        );
        temporaries += removed ? 1 : 0;
      } else if (entry.isFile() && entry.name.endsWith('.key') && !entry.name.startsWith('.')) {
        keyFiles += 1;
      } else if (entry.isDirectory() && depth > 0 && !entry.name.startsWith('.')) {
        const below = await sweepFolder(path, depth - 1, except, signal);
        temporaries += below.temporaries;
        keyFiles += below.keyFiles;
      }
    }
  } catch {
    // A folder that can't be read is no reason to refuse the start; /readyz reports when it can't be written.
  }
  return { temporaries, keyFiles };
}
