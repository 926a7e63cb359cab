import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import fs from 'fs-extra';
import { HttpError, systemCode, textProperty } from '../../http/errors';
import { apiError } from '../errors';

/** A key file has about 1 KiB; a megabyte under its name is something else. */
const MAX_BYTES = 1024 * 1024;

export type FoundFile =
  | {
      readonly kind: 'file';
      readonly bytes: Buffer;
      readonly device: number;
    }
  | { readonly kind: 'link' | 'not_a_file' | 'too_large'; readonly device?: never };

// O_NONBLOCK: a pipe at this name must not hold up the process.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const NO_ACCESS_TIME = constants.O_NOATIME ?? 0;

/** Leaves the access time, which shows when the packager has read a key file. */
function openQuietly(path: string): number {
  try {
    return openSync(path, FLAGS | NO_ACCESS_TIME);
  } catch (thrown) {
    // O_NOATIME is for the file's owner.
    if (systemCode(thrown) !== 'EPERM') throw thrown;
    return openSync(path, FLAGS);
  }
}

/**
 * Doesn't follow a link. Undefined: there is no file.
 * Synchronous: a cached kilobyte takes 3 µs; in the thread pool it would wait behind the writers' fdatasync.
 */
export function readSmallFile(path: string): FoundFile | undefined {
  let descriptor: number;
  try {
    descriptor = openQuietly(path);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'ELOOP') return { kind: 'link' };
    if (code === 'ENXIO') return { kind: 'not_a_file' };
    throw thrown;
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { kind: 'not_a_file' };
    if (stat.size > MAX_BYTES) return { kind: 'too_large' };
    const bytes = Buffer.allocUnsafe(stat.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(descriptor, bytes, length, bytes.length - length, length);
    }
    return { kind: 'file', bytes: bytes.subarray(0, length), device: stat.dev };
  } finally {
    closeSync(descriptor);
  }
}

export interface HeldFolder {
  /** Leads to this folder, even if its name now leads elsewhere. */
  readonly path: string;
  /** The same for all holders of the same folder. */
  readonly id: string;
  close(): void;
}

const FOLDER_MODE = 0o750;

/** The folder where Linux names open files; undefined elsewhere. */
export const DESCRIPTORS = existsSync('/proc/self/fd/0') ? '/proc/self/fd' : undefined;

const OPEN = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Linux's O_PATH, which Node does not name: it needs no right to list a folder. */
const ONLY_PATH = DESCRIPTORS === undefined ? 0 : 0o10000000;
/** How often a sub-folder is opened that changes to something else and back. */
const TRIES = 3;

export function rootFolder(path: string): HeldFolder {
  return { path, id: path, close: () => undefined };
}

/** Doesn't follow a link. Undefined: there is no such folder. */
export function holdFolder(parent: HeldFolder, name: string): HeldFolder | undefined {
  const path = `${parent.path}/${name}`;
  const descriptor = openFolder(path, TRIES);
  if (descriptor === undefined) return undefined;
  // As a number, an inode of 64 bits, as on shares of Windows, would be rounded to that of another folder.
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  return {
    path: DESCRIPTORS === undefined ? path : `${DESCRIPTORS}/${descriptor}`,
    id: `${dev}:${ino}`,
    close: () => closeSync(descriptor),
  };
}

function openFolder(path: string, tries: number): number | undefined {
  try {
    return openSync(path, OPEN | ONLY_PATH);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === 'ENOENT') return undefined;
    if (code !== 'ENOTDIR' && code !== 'ELOOP') throw thrown;
    refuseOther(path);
    // By now it is a folder, or gone.
    if (tries === 1) throw thrown;
    return openFolder(path, tries - 1);
  }
}

/** Makes a sub-folder unless it is there, and returns whether it is new. */
export function makeFolder(parent: HeldFolder, name: string): boolean {
  const path = `${parent.path}/${name}`;
  try {
    mkdirSync(path, { mode: FOLDER_MODE });
  } catch (thrown) {
    if (systemCode(thrown) === 'EEXIST') return false;
    throw thrown;
  }
  const descriptor = openSync(path, OPEN);
  try {
    // mkdir() lets the umask take bits away that the packager's group needs. A set-group-id bit is inherited.
    const { mode } = fstatSync(descriptor);
    if ((mode & 0o777) !== FOLDER_MODE) fchmodSync(descriptor, FOLDER_MODE | (mode & 0o2000));
  } finally {
    closeSync(descriptor);
  }
  return true;
}

/**
 * Makes a folder, with those above it that are missing, and returns whether it is new. Node's own way never ends below /proc,
 * and calls a read-only file system a missing folder.
 */
export function makeFolders(path: string): boolean {
  if (fs.pathExistsSync(path)) return false;
  const above = dirname(path);
  makeFolders(above);
  return makeFolder(rootFolder(above), basename(path));
}

function refuseOther(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isSymbolicLink()) throw notAKeyFile('A sub-folder of this stream id is a symbolic link');
  if (stat && !stat.isDirectory()) throw notAKeyFile('A sub-folder of this stream id is a file');
}

export function notAKeyFile(what: string): HttpError {
  return apiError('not_a_key_file', `${what}; it is left unchanged. Remove it, or use another stream id.`);
}

const REASONS: Readonly<Record<string, string>> = {
  EROFS: 'the folder is mounted read-only',
  EACCES: 'the user of this service may not use the folder or the file',
  EPERM: 'the user of this service may not use the folder or the file',
  ENOENT: 'the folder is gone',
  ENODEV:
    'a different file system is at its path than at the start; mount the former one again, or restart the service if this is the right one',
  ENOTDIR: 'the path of the folder is not a folder',
  EIO: 'the disk reports an error',
  ESTALE: 'the network file system has lost the folder',
  ENOTCONN: 'the file system that was mounted there is gone',
  ETIMEDOUT: 'the network file system does not answer',
  EHOSTDOWN: 'the network file system does not answer',
  ENAMETOOLONG: 'the path is too long for the file system',
  ELOOP: 'the path holds a loop of links',
};

/** Turns a file system's error into its answer; an `HttpError` and other errors pass unchanged. */
export function toStorageError(doing: 'read' | 'write', thrown: unknown): unknown {
  // Node names some by their number alone, as EUCLEAN of a damaged file system.
  const code = systemCode(thrown) ?? textProperty(thrown, 'code');
  if (thrown instanceof HttpError || code === undefined) return thrown;
  const options = { cause: thrown };
  if (code === 'ENOSPC' || code === 'EDQUOT') return apiError('insufficient_storage', undefined, options);
  if (code === 'EMFILE' || code === 'ENFILE') return apiError('too_many_open_files', undefined, options);
  const isOfCall = textProperty(thrown, 'syscall') !== undefined;
  const reason = REASONS[code] ?? (isOfCall ? 'the file system reports an error' : undefined);
  if (reason === undefined) return thrown;
  const verb = doing === 'read' ? 'readable' : 'writable';
  const description = `The key-file folder is not ${verb}: ${reason} (${code}). Check PACKAGERDRMAPI_KEYFILESPATH, its mount and its owner.`;
  return apiError(`key_files_not_${verb}`, description, options);
}
