import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { ConfigError } from '../../http/config';
import { systemCode } from '../../http/errors';
import type { Problem } from '../../http/faults';
import { lockFolder } from '../../http/folder-lock';

const NAME = 'packager-media';

export type MediaFolder = Awaited<ReturnType<typeof openMediaFolder>>;

/** Takes a folder below `parent` for this process. @throws ConfigError if it can't be used, or is in use. */
export async function openMediaFolder(parent: string, newId: () => string) {
  const path = join(parent, NAME);
  try {
    fs.ensureDirSync(parent);
    if (existsSync(path)) refuseForeign(path);
    // Not recursive: that calls a read-only file system a missing folder.
    else mkdirSync(path, { mode: 0o700 });
    // Stays open: the path of a socket may have some 100 bytes alone.
    const held = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
    const short = process.platform === 'linux' ? `/proc/self/fd/${held}` : path;
    const lock = await lockFolder(short, newId);
    if (lock === 'taken')
      throw new ConfigError([`PACKAGER_FOLDER: another packager uses ${path}; choose another folder`]);
    const temporary = join(path, 'temporary');
    const removeTemporary = () => {
      endReaders(temporary);
      rmSync(temporary, { recursive: true, force: true, maxRetries: 10 });
    };
    removeTemporary();
    mkdirSync(temporary, { mode: 0o700 });
    const streams = join(path, 'streams');
    fs.ensureDirSync(streams, 0o700);
    return {
      /** For files of the packager and its programs: on the same file system, and removed at the end or the next start. */
      temporary,
      isLocked: lock !== undefined,
      ids: () => readdirSync(streams),
      of: (id: string) => join(streams, id),
      release: async () => {
        removeTemporary();
        await lock?.release();
      },
    };
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === undefined) throw thrown;
    throw new ConfigError([`PACKAGER_FOLDER: ${path} can't be used (${code}); choose another folder`]);
  }
}

/**
 * A process of shaka-packager that was about to open its FIFO when the packager was killed waits for a writer
 * for ever. A writer that comes and goes lets it read the end of its input.
 */
function endReaders(temporary: string): void {
  if (!existsSync(temporary)) return;
  for (const entry of readdirSync(temporary, { withFileTypes: true })) {
    if (!entry.isFIFO()) continue;
    try {
      closeSync(openSync(join(temporary, entry.name), constants.O_WRONLY | constants.O_NONBLOCK));
    } catch (thrown) {
      // It has no reader.
      if (systemCode(thrown) !== 'ENXIO') throw thrown;
    }
  }
}

/** In a folder that all may write to, another user may have created one with our name. */
function refuseForeign(path: string): void {
  const stat = lstatSync(path);
  if (!stat.isDirectory() || (process.getuid && stat.uid !== process.getuid()))
    throw new ConfigError([
      `PACKAGER_FOLDER: ${path} is not a folder of the user that the packager runs as; choose another folder`,
    ]);
}

/** Replaces a small file atomically. @throws the system's error. */
export function writeWhole(path: string, text: string): void {
  const temporary = `${path}.new`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, path);
}

/** Why nothing can be written below a folder; undefined when there is room for a segment. */
export function problemOfFolder(folder: string): Problem | undefined {
  const path = join(folder, 'probe');
  try {
    writeFileSync(path, Buffer.alloc(64 * 1024));
    return undefined;
  } catch (thrown) {
    const why = systemCode(thrown) ?? 'ERROR';
    if (why === 'ENOSPC' || why === 'EDQUOT') return DISK_FULL;
    const description = `Nothing can be written to the folder of the packager (${why}). Correct this; the stream then continues.`;
    return { code: 'folder_not_writable', description };
  } finally {
    rmSync(path, { force: true });
  }
}

const DISK_FULL: Problem = {
  code: 'disk_full',
  description:
    'The disk of the packager is full. Make room, or choose another PACKAGER_FOLDER; the stream then continues.',
};
