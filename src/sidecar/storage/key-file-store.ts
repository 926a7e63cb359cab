import { chmodSync, lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { StreamId } from '../../drm/stream-id';
import { HttpError, systemCode } from '../../kernel/errors';
import type { DurableWriter } from './durable-file';
import { keyFilePath } from './key-file-path';
import { queueByName } from './queue-by-name';
import { type FoundFile, readSmallFile } from './read-file';
import { toStorageError } from './storage-error';

/**
 * The key files under one folder. Reads see a file whole, before or after a change. Changes to one stream are made one
 * after another in the order they were asked for; those to other streams go on in parallel.
 * Every method throws `HttpError` for what the folder or the file system refuses.
 */
export interface KeyFileStore {
  /** The bytes of a stream's key file, or undefined when it has none. */
  read(streamId: StreamId): Buffer | undefined;
  /**
   * Writes a stream's key file durably and answers what it replaced. Sub-folders of the stream id are made as needed.
   * `decide` sees the present file when the stream's turn has come: it throws to refuse, or answers false when
   * nothing is to be written.
   */
  write(streamId: StreamId, bytes: Buffer, decide?: Decide): Promise<Buffer | undefined>;
  /** Removes a stream's key file durably and answers its bytes, or undefined when it had none. `check` throws to refuse. */
  remove(streamId: StreamId, check?: (present: Buffer | undefined) => void): Promise<Buffer | undefined>;
  /** Resolves when a key file could be written now. */
  probe(): Promise<void>;
}

/** Whether to write, in view of the present file (undefined when there is none). */
export type Decide = (present: Buffer | undefined) => boolean;

const FOLDER_MODE = 0o750;

export function createKeyFileStore(folder: string, mode: number, writer: DurableWriter): KeyFileStore {
  const inTurn = queueByName();
  // Sub-folders that would survive a power cut. One that merely exists may have been made a moment ago by another write.
  const lasting = new Set<string>();

  const read = (streamId: StreamId): Buffer | undefined => {
    const { path, subFolders } = keyFilePath(folder, streamId);
    refuseLinks(subFolders);
    const found = readSmallFile(path);
    if (found) return bytesOf(found);
    // A vanished folder, or a file in its place, must not pass for a stream without a key file.
    statSync(`${folder}/.`);
    return undefined;
  };

  return {
    read: (streamId) => guardSync('read', () => read(streamId)),
    write: (streamId, bytes, decide) =>
      inTurn(streamId, () =>
        guard('write', async () => {
          const { path, subFolders } = keyFilePath(folder, streamId);
          refuseLinks(subFolders);
          const found = readSmallFile(path);
          const present = found && bytesOf(found);
          // A vanished folder must not pass for a stream without a key file, in a dry run either.
          if (!present) statSync(`${folder}/.`);
          if (decide && !decide(present)) return present;
          for (const subFolder of subFolders) {
            if (makeFolder(subFolder)) lasting.delete(subFolder);
            if (lasting.has(subFolder)) continue;
            await writer.syncFolder(dirname(subFolder));
            lasting.add(subFolder);
          }
          await writer.write(path, bytes, mode);
          return present;
        }),
      ),
    remove: (streamId, check) =>
      inTurn(streamId, () =>
        guard('write', async () => {
          const bytes = read(streamId);
          check?.(bytes);
          if (!bytes) return undefined;
          if (await writer.remove(keyFilePath(folder, streamId).path)) return bytes;
          // Another process was faster; reading again tells whether the file is gone, or the folder with it.
          read(streamId);
          return undefined;
        }),
      ),
    probe: () => guard('write', () => writer.probe(folder)),
  };
}

/**
 * Makes the key-file folder when it isn't there, with no wider rights than 0750, and answers its real path, so that a
 * link to the folder may be configured while none below it is followed.
 */
export function openKeyFilesFolder(path: string): string {
  if (mkdirSync(path, { recursive: true, mode: FOLDER_MODE }) !== undefined) setFolderMode(path);
  return realpathSync(path);
}

/** mkdir() lets the umask take bits away; the packager's group needs them. A folder's set-group-id bit is inherited and stays. */
function setFolderMode(path: string): void {
  const { mode } = statSync(path);
  if ((mode & 0o777) !== FOLDER_MODE) chmodSync(path, FOLDER_MODE | (mode & 0o2000));
}

/** Answers whether the folder is new. */
function makeFolder(path: string): boolean {
  try {
    mkdirSync(path, { mode: FOLDER_MODE });
    setFolderMode(path);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) !== 'EEXIST') throw thrown;
    return false;
  }
}

function refuseLinks(subFolders: readonly string[]): void {
  for (const subFolder of subFolders) {
    const stat = lstatSync(subFolder, { throwIfNoEntry: false });
    if (!stat) return;
    if (stat.isSymbolicLink()) throw notAKeyFile('A sub-folder of this stream id is a symbolic link');
    if (!stat.isDirectory()) throw notAKeyFile('A sub-folder of this stream id is a file');
  }
}

function bytesOf(found: FoundFile): Buffer {
  switch (found.kind) {
    case 'file':
      return found.bytes;
    case 'link':
      throw notAKeyFile('There is a symbolic link where the key file belongs');
    case 'not_a_file':
      throw notAKeyFile('There is a folder or a device where the key file belongs');
    case 'too_large':
      throw notAKeyFile('The file is too large for a key file');
  }
}

function notAKeyFile(what: string): HttpError {
  const description = `${what}; it is left as it is. Remove it, or use another stream id.`;
  return new HttpError(409, { code: 'not_a_key_file', description });
}

function guardSync<T>(doing: 'read' | 'write', action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}

async function guard<T>(doing: 'read' | 'write', action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw toStorageError(doing, thrown);
  }
}
