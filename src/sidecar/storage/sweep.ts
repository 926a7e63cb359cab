import { opendir, unlink } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const openFolder = promisify(opendir);
const unlinkFile = promisify(unlink);

/**
 * How the names of temporaries begin. No key file's does (a stream id never starts with a dot), so that a sweep takes
 * nobody else's files.
 */
export const TEMPORARY_PREFIX = '.packagerdrmapi-';
const TEMPORARY = /^\.packagerdrmapi-[0-9a-f-]+\.tmp$/;

export interface Swept {
  /** How many temporaries were removed. */
  readonly temporaries: number;
  /** How many key files there are. */
  readonly keyFiles: number;
}

/**
 * Removes the temporaries in a folder and `depth` levels below it whose names don't begin with `except`, and counts the
 * key files. What can't be read is passed over.
 */
export async function sweepFolder(folder: string, depth: number, except: string): Promise<Swept> {
  let temporaries = 0;
  let keyFiles = 0;
  try {
    for await (const entry of await openFolder(folder)) {
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
        const below = await sweepFolder(path, depth - 1, except);
        temporaries += below.temporaries;
        keyFiles += below.keyFiles;
      }
    }
  } catch {
    // A folder that can't be read is no reason to refuse the start; /readyz tells when it can't be written.
  }
  return { temporaries, keyFiles };
}
