import {
  chmodSync,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncate,
  lstatSync,
  mkdirSync,
  open,
  openSync,
  read,
  rename,
  type Stats,
  unlink,
} from 'node:fs';
import { promisify } from 'node:util';
import { FLEET_FOLDER } from '../../../api/fleet';
import { systemCode } from '../../../http/errors';
import { createDurableWriter, writeBytes } from '../../storage/durable-file';
import { DESCRIPTORS } from '../../storage/sub-folder';
import { type FolderLock, lockFolder } from './folder-lock';

const openFile = promisify(open);
const readBytes = promisify(read);
const syncData = promisify(fdatasync);
const truncate = promisify(ftruncate);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);

const NAME = 'ledger';
const NEW_NAME = 'ledger.new';
const FOLDER_MODE = 0o700;
const MODE = 0o600;
/** Lines of so many bytes are read in about 3 ms. */
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** Lines on disk, to which lines are appended. One thing at a time is done with it, but for a replacement. */
export interface LedgerFile {
  /** How many lines it has. */
  readonly lines: number;
  /**
   * Appends whole lines; with `sync`, resolves when they would survive a power cut. Rejects with the system's error, and
   * none of the lines is in the file then.
   */
  append(lines: readonly string[], sync: boolean): Promise<void>;
  /** Begins a file in the place of this one. */
  replacement(): Promise<Replacement>;
  close(): Promise<void>;
}

/** A file that is written beside the ledger, and takes its place at once. */
export interface Replacement {
  write(lines: readonly string[]): Promise<void>;
  /** Brings what is written to the disk: what is left to the end is little then. */
  sync(): Promise<void>;
  /** Puts it in the place of the former file. */
  finish(): Promise<void>;
  /** Removes it. Never rejects. */
  abandon(): Promise<void>;
}

export interface OpenedLedgerFile {
  readonly file: LedgerFile;
  /** Whether another process is kept out. */
  readonly isLocked: boolean;
  /** Whether the last line was cut off; it is no longer in the file. */
  readonly isTorn: boolean;
}

/**
 * Opens the ledger of a key-file folder, or makes it, for this process alone, and tells its lines without their ends.
 * @throws Error in words for people when it is no plain file, or another process has it; else the system's error.
 */
export async function openLedgerFile(
  keyFiles: string,
  newId: () => string,
  take: (line: Buffer) => void,
): Promise<OpenedLedgerFile> {
  const folder = `${keyFiles}/${FLEET_FOLDER}`;
  const held = holdFolder(folder);
  const heldPath = DESCRIPTORS === undefined ? folder : `${DESCRIPTORS}/${held}`;
  let lock: FolderLock | undefined;
  try {
    const locked = await lockFolder(heldPath, newId);
    if (locked !== undefined && 'holder' in locked)
      throw new Error(
        `${folder} is in use by another sidecar (${locked.holder}). In a fleet each sidecar needs a key-file folder of its own; stop that one first, or give this one another PACKAGERDRMAPI_KEYFILESPATH.`,
      );
    lock = locked;
    return await openLocked({ folder, held, heldPath, lock }, newId, take);
  } catch (thrown) {
    await lock?.release();
    closeSync(held);
    throw thrown;
  }
}

interface Place {
  /** As it is configured, for people, and to see whether it is still the same one. */
  readonly folder: string;
  /** The descriptor of the folder. */
  readonly held: number;
  /** Leads to the folder that was opened, whatever stands at its name by now. */
  readonly heldPath: string;
  readonly lock: FolderLock | undefined;
}

async function openLocked(
  { folder, held, heldPath, lock }: Place,
  newId: () => string,
  take: (line: Buffer) => void,
): Promise<OpenedLedgerFile> {
  const path = `${heldPath}/${NAME}`;
  const newPath = `${heldPath}/${NEW_NAME}`;
  const { syncFolder } = createDurableWriter(newId);
  await removeIfThere(newPath);
  let descriptor = await openPlain(path, `${folder}/${NAME}`);
  try {
    const found = await readLines(descriptor, take);
    let { lines, length } = found;
    let inode = fstatSync(descriptor).ino;
    // What a failed append left behind the last whole line.
    let isTorn = found.isTorn;
    let isFolderSynced = false;

    const checkPlace = () => {
      const now = lstatSync(`${folder}/${NAME}`, { throwIfNoEntry: false });
      if (now?.ino !== inode || now.dev !== fstatSync(held).dev)
        throw Object.assign(
          new Error(`${folder} is another one than at the start: it was replaced, or mounted over`),
          { code: 'ENODEV' },
        );
      if (lock && !lock.isHeld())
        throw Object.assign(new Error(`the lock of ${folder} was taken away; restart the service`), {
          code: 'ENODEV',
        });
    };
    const cutTorn = async () => {
      if (isTorn) await truncate(descriptor, length);
      isTorn = false;
    };
    const syncFolderOnce = async () => {
      if (!isFolderSynced) {
        await syncFolder(heldPath);
        // Of the folder itself: it may be new.
        await syncFolder(`${folder}/..`);
      }
      isFolderSynced = true;
    };
    await cutTorn();

    const file: LedgerFile = {
      get lines() {
        return lines;
      },
      async append(added, sync) {
        checkPlace();
        await cutTorn();
        const bytes = Buffer.from(added.join(''));
        isTorn = true;
        try {
          await writeAll(descriptor, bytes);
          if (sync) {
            await syncData(descriptor);
            await syncFolderOnce();
          }
          isTorn = false;
        } catch (thrown) {
          // If that fails, too, it is done before the next lines.
          await cutTorn().catch(() => undefined);
          throw thrown;
        }
        length += bytes.length;
        lines += added.length;
      },
      async replacement() {
        checkPlace();
        await removeIfThere(newPath);
        const created = await openFile(newPath, 'ax', MODE);
        let isClosed = false;
        const size = { lines: 0, length: 0 };
        return {
          async write(added) {
            const bytes = Buffer.from(added.join(''));
            await writeAll(created, bytes);
            size.lines += added.length;
            size.length += bytes.length;
          },
          sync: () => syncData(created),
          async finish() {
            checkPlace();
            await syncData(created);
            await renameFile(newPath, path);
            closeSync(descriptor);
            isClosed = true;
            [descriptor, isTorn, isFolderSynced] = [created, false, false];
            ({ lines, length } = size);
            inode = fstatSync(descriptor).ino;
            // Lines that come are no safer than the rename: they wait for this sync if it fails now.
            await syncFolderOnce().catch(() => undefined);
          },
          async abandon() {
            if (isClosed) return;
            closeSync(created);
            isClosed = true;
            await removeIfThere(newPath).catch(() => undefined);
          },
        };
      },
      async close() {
        closeSync(descriptor);
        await lock?.release();
        closeSync(held);
      },
    };
    return { file, isLocked: lock !== undefined, isTorn: found.isTorn };
  } catch (thrown) {
    closeSync(descriptor);
    throw thrown;
  }
}

/** Opens the ledger's folder, and makes it if it isn't there. */
function holdFolder(folder: string): number {
  try {
    mkdirSync(folder, { mode: FOLDER_MODE });
  } catch (thrown) {
    if (systemCode(thrown) !== 'EEXIST') throw thrown;
  }
  const found = lstatSync(folder);
  if (!found.isDirectory())
    throw new Error(
      `${folder} is ${kindOf(found)}, and must be a folder: the fleet's ledger lies there. Remove it.`,
    );
  setMode(folder, found, FOLDER_MODE);
  return openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

async function openPlain(path: string, shown: string): Promise<number> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && !found.isFile())
    throw new Error(`${shown} is ${kindOf(found)}, and must be a file: the fleet's ledger. Remove it.`);
  const { O_RDWR, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
  const descriptor = await openFile(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, MODE);
  if (found) setMode(path, found, MODE);
  return descriptor;
}

function kindOf(found: Stats): string {
  if (found.isSymbolicLink()) return 'a symbolic link';
  return found.isDirectory() ? 'a folder' : 'no plain file';
}

/** Takes rights away that others have, where this user may. */
function setMode(path: string, { mode }: Stats, wanted: number): void {
  if ((mode & 0o777) === wanted) return;
  try {
    chmodSync(path, wanted);
  } catch (thrown) {
    if (systemCode(thrown) !== 'EPERM') throw thrown;
  }
}

interface FoundLines {
  readonly lines: number;
  /** Of the whole lines, in bytes. */
  readonly length: number;
  readonly isTorn: boolean;
}

async function readLines(descriptor: number, take: (line: Buffer) => void): Promise<FoundLines> {
  let [lines, length] = [0, 0];
  let rest: Buffer = Buffer.alloc(0);
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await readBytes(descriptor, chunk, 0, CHUNK_BYTES, at);
    if (bytesRead === 0) return { lines, length, isTorn: rest.length > 0 };
    at += bytesRead;
    const bytes = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      take(bytes.subarray(start, end));
      start = end + 1;
      lines += 1;
    }
    rest = bytes.subarray(start);
    length += start;
  }
}

async function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await writeBytes(descriptor, bytes, at, bytes.length - at)).bytesWritten;
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlinkFile(path);
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
  }
}
