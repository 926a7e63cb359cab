import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { systemCode } from '../../http/errors';

/** A key file has about 1 KiB; a megabyte under its name is something else. */
const MAX_BYTES = 1024 * 1024;

/** What stands where a key file belongs: its bytes, or something that is no key file. */
export type FoundFile =
  | {
      readonly kind: 'file';
      readonly bytes: Buffer;
      /** The file system it lies on. */
      readonly device: number;
    }
  | { readonly kind: 'link' | 'not_a_file' | 'too_large'; readonly device?: never };

// O_NONBLOCK: a pipe at this name must not hold up the process.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** 0 where the system has none. */
const NO_ACCESS_TIME = constants.O_NOATIME ?? 0;

/** Opens a file without a trace: its access time shows then when the packager has read it. */
function openQuietly(path: string): number {
  try {
    return openSync(path, FLAGS | NO_ACCESS_TIME);
  } catch (thrown) {
    // Who does not own a file may read it only with a trace.
    if (systemCode(thrown) !== 'EPERM') throw thrown;
    return openSync(path, FLAGS);
  }
}

/**
 * Reads a small file whole, without following a link at its name. Undefined when there is none.
 *
 * Synchronous on purpose: open, fstat, read and close of a cached kilobyte take 3 µs together; sent through Node's
 * thread pool they take some fifty times that, and wait there behind the writers' fdatasync.
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
