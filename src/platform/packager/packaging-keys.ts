import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamId } from '../../api/stream-id';
import { type PackagingKeys, readPackagingKeys } from '../../drm/packaging';
import { systemCode } from '../../http/errors';

/** Why a stream is not as it should be: `code` is stable and for programs, `description` is for a person. */
export interface StreamProblem {
  readonly code: string;
  readonly description: string;
}

type Read =
  | { readonly ok: true; readonly keys: PackagingKeys }
  | { readonly ok: false; readonly problem: StreamProblem };

/** A key file has about 1 KiB. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads a stream's key file as a packager does when a stream starts. Symbolic links below the folder are not followed:
 * who may write one must not choose which file is read. Whatever is wrong is answered, so that nothing is packaged then.
 */
export function readKeyFile(folder: string, streamId: StreamId): Read {
  const name = `${streamId}.key`;
  const refused = (code: string, sentence: string): Read => ({
    ok: false,
    problem: { code, description: `The key file ${name} ${sentence}.` },
  });
  let text: string | undefined;
  try {
    text = readText(folder, name);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === 'ENOENT' || code === 'ENOTDIR')
      return refused('key_file_missing', 'does not exist; provision the stream, then it starts by itself');
    if (code === 'EACCES' || code === 'EPERM') {
      const sentence =
        'may not be read by the user that the packager runs as; let it be in the group of the file';
      return refused('key_file_unreadable', sentence);
    }
    return refused('key_file_unreadable', `can't be read (${code ?? 'unknown error'})`);
  }
  if (text === undefined) {
    const sentence = 'is a symbolic link, a folder or too large; put the key file itself there';
    return refused('not_a_key_file', sentence);
  }
  const read = readPackagingKeys(text);
  return read.ok ? read : refused(read.problem.code, read.problem.description);
}

/** Undefined for what is no key file. @throws the system's error. */
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
