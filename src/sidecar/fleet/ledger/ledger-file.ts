import {
  chmodSync,
  close,
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncate,
  lstatSync,
  mkdirSync,
  open,
  openSync,
  readFile,
  rename,
  type Stats,
  unlink,
} from 'node:fs';
import { promisify } from 'node:util';
import { FLEET_FOLDER } from '../../../api/fleet';
import { systemCode } from '../../../http/errors';
import { type FolderLock, lockFolder } from '../../../http/folder-lock';
import { createDurableWriter, writeBytes } from '../../storage/durable-file';
import { DESCRIPTORS } from '../../storage/open-file';

const openFile = promisify(open);
const readAll = promisify(readFile);
const syncData = promisify(fdatasync);
const truncate = promisify(ftruncate);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);

const NAME = 'ledger';
const NEW_NAME = 'ledger.new';
const FOLDER_MODE = 0o700;
const MODE = 0o600;
const NEWLINE = 0x0a;

/**
 * Opens or makes the ledger of a key-file folder, and locks it. The caller makes one call at a time.
 * @throws the system's error, or an Error with a sentence for the operator.
 */
export async function openLedgerFile(keyFiles: string, newId: () => string) {
  /** As configured: for messages, and to notice when something else is mounted or put there. */
  const folder = `${keyFiles}/${FLEET_FOLDER}`;
  const held = openFolder(folder);
  /** Leads to the opened folder, also after a change at its name, and is short enough for a socket's name. */
  const path = DESCRIPTORS === undefined ? folder : `${DESCRIPTORS}/${held}`;
  let lock: FolderLock | 'taken' | undefined;
  let descriptor = -1;
  let found: Buffer;
  try {
    lock = await lockFolder(path, newId);
    if (lock === 'taken')
      throw new Error(
        `${folder} is in use by another sidecar. In a fleet each sidecar needs a key-file folder of its own: stop the other one, or set another PACKAGERDRMAPI_KEYFILESPATH here.`,
      );
    await removeIfPresent(`${path}/${NEW_NAME}`);
    descriptor = await openRegular(`${path}/${NAME}`, `${folder}/${NAME}`);
    const bytes = await readAll(descriptor);
    // Without an incomplete last line.
    found = bytes.subarray(0, bytes.lastIndexOf(NEWLINE) + 1);
    if (found.length < bytes.length) await truncate(descriptor, found.length);
  } catch (thrown) {
    if (descriptor !== -1) closeSync(descriptor);
    if (typeof lock === 'object') await lock.release();
    closeSync(held);
    throw thrown;
  }
  /** undefined: the file system supports no lock. */
  const folderLock = lock;
  const { syncFolder } = createDurableWriter(() => 'ledger');
  /** Bytes of the complete lines. A failed append may have left more. */
  let { length } = found;
  let isTorn = false;
  let isFolderSynced = false;

  const checkPlace = (): void => {
    const present = lstatSync(`${folder}/${NAME}`, { throwIfNoEntry: false });
    const { ino, dev } = fstatSync(descriptor);
    if (present?.ino !== ino || present.dev !== dev)
      throw noDevice(`${folder} is not the one of the start: it was replaced, or mounted over`);
    if (folderLock && !folderLock.isHeld())
      throw noDevice(`the lock of ${folder} was removed; restart the service`);
  };

  const removeTorn = async (): Promise<void> => {
    if (isTorn) await truncate(descriptor, length);
    isTorn = false;
  };

  const syncFolders = async (): Promise<void> => {
    if (isFolderSynced) return;
    await syncFolder(path);
    // The folder of the ledger may be new.
    await syncFolder(`${folder}/..`);
    isFolderSynced = true;
  };

  return {
    found,
    isLocked: folderLock !== undefined,
    /** Resolves when the lines survive a power cut. After the system's error the file has none of them. */
    async append(lines: string): Promise<void> {
      checkPlace();
      await removeTorn();
      const bytes = Buffer.from(lines);
      isTorn = true;
      try {
        await writeAll(descriptor, bytes);
        await syncData(descriptor);
        await syncFolders();
        isTorn = false;
      } catch (thrown) {
        // If this fails too, the next append repeats it.
        await removeTorn().catch(() => undefined);
        throw thrown;
      }
      length += bytes.length;
    },
    /** After the system's error the file is as before. */
    async replace(lines: string): Promise<void> {
      checkPlace();
      const newPath = `${path}/${NEW_NAME}`;
      await removeIfPresent(newPath);
      const created = await openFile(newPath, 'ax', MODE);
      const bytes = Buffer.from(lines);
      try {
        await writeAll(created, bytes);
        await syncData(created);
        checkPlace();
        await renameFile(newPath, `${path}/${NAME}`);
      } catch (thrown) {
        closeSync(created);
        await removeIfPresent(newPath).catch(() => undefined);
        throw thrown;
      }
      // A disk that fails at it takes no line: all are in the new file.
      close(descriptor, () => undefined);
      descriptor = created;
      [length, isTorn, isFolderSynced] = [bytes.length, false, false];
      // New lines last no longer than the rename: if this sync fails, the next append repeats it.
      await syncFolders().catch(() => undefined);
    },
    async close(): Promise<void> {
      closeSync(descriptor);
      await folderLock?.release();
      closeSync(held);
    },
  };
}

function noDevice(message: string): Error {
  return Object.assign(new Error(message), { code: 'ENODEV' });
}

/** Makes the folder if it is missing. */
function openFolder(folder: string): number {
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

async function openRegular(path: string, shown: string): Promise<number> {
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

/** Takes rights from other users, where this user may. */
function setMode(path: string, { mode }: Stats, wanted: number): void {
  if ((mode & 0o777) === wanted) return;
  try {
    chmodSync(path, wanted);
  } catch (thrown) {
    if (systemCode(thrown) !== 'EPERM') throw thrown;
  }
}

async function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await writeBytes(descriptor, bytes, at, bytes.length - at)).bytesWritten;
}

async function removeIfPresent(path: string): Promise<void> {
  try {
    await unlinkFile(path);
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
  }
}
