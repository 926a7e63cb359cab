import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamId } from '../../api/stream-id';
import { refused } from '../../drm/bytes';
import { readPackagingKeys } from '../../drm/packaging';
import { systemCode } from '../../http/errors';
import { CLEAR, type StreamKeys } from './shaka-packager';

type Read = { readonly ok: true; readonly keys: StreamKeys } | ReturnType<typeof refused>;

/** A key file has about 1 KiB. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads a key file as a packager does when a stream starts. Without one the stream is clear; a faulty one is
 * a problem. Symbolic links below the folder are not followed: they must not choose which file is read.
 */
export function readKeys(folder: string, keyFile: StreamId | undefined): Read {
  if (keyFile === undefined) return { ok: true, keys: CLEAR };
  const name = `${keyFile}.key`;
  const fault = (code: string, sentence: string) => refused(code, `The key file ${name} ${sentence}.`);
  let text: string | undefined;
  try {
    text = readText(folder, name);
  } catch (thrown) {
    const code = systemCode(thrown) ?? 'unknown error';
    if (code === 'ENOENT' || code === 'ENOTDIR') return fault('key_file_missing', MISSING);
    const isForbidden = code === 'EACCES' || code === 'EPERM';
    return fault('key_file_unreadable', isForbidden ? FORBIDDEN : `can't be read (${code})`);
  }
  if (text === undefined) {
    const sentence = 'is a symbolic link, a folder or too large; put the key file itself there';
    return fault('not_a_key_file', sentence);
  }
  const read = readPackagingKeys(text);
  return read.ok ? read : fault(read.problem.code, read.problem.description);
}

const MISSING = 'does not exist; provision the stream; it then starts automatically';
const FORBIDDEN = 'may not be read by the user that the packager runs as; let it be in the group of the file';

function readText(folder: string, name: string): string | undefined {
  const parts = name.split('/');
  for (let depth = 1; depth < parts.length; depth += 1) {
    if (!lstatSync(join(folder, ...parts.slice(0, depth))).isDirectory()) return undefined;
  }
  let descriptor: number;
  try {
    // O_NONBLOCK: a pipe at this name must not hold up the process.
    descriptor = openSync(
      join(folder, name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
  } catch (thrown) {
    if (systemCode(thrown) === 'ELOOP' || systemCode(thrown) === 'ENXIO') return undefined;
    throw thrown;
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.size > MAX_BYTES) return undefined;
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}
