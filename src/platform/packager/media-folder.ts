import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { ConfigError } from '../../http/config';
import { systemCode } from '../../http/errors';
import type { Problem } from '../../http/faults';
import { isRunning } from '../../http/other-process';

/** The packager's own folder below the configured one. */
const NAME = 'packager-media';
const LOCK = 'lock.json';
/** How often the lock is made new, and how old that of a packager on another machine may be. */
const LOCK_RENEWED_MS = 3000;
const LOCK_EXPIRED_MS = 15_000;

export type MediaFolder = ReturnType<typeof openMediaFolder>;

/**
 * Takes the folder with the media of all streams for this process, and finds what one before it has left. Another packager
 * that runs keeps it: one that was killed, does not.
 * @throws ConfigError when it can't be used.
 */
export function openMediaFolder(parent: string, nowMs: () => number) {
  const path = join(parent, NAME);
  try {
    mkdirSync(parent, { recursive: true });
    if (mkdirSync(path, { recursive: true, mode: 0o700 }) === undefined) refuseForeign(path);
    takeLock(path, nowMs());
    const temporary = join(path, 'temporary');
    endReaders(temporary);
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { mode: 0o700 });
    const streams = join(path, 'streams');
    mkdirSync(streams, { recursive: true, mode: 0o700 });
    const renewing = setInterval(() => renew(path, nowMs()), LOCK_RENEWED_MS);
    renewing.unref();
    return {
      path,
      /** For files of the packager and its programs: on the same file system, and emptied at each start. */
      temporary,
      /** The ids of the streams that have a folder. */
      ids: () => readdirSync(streams),
      /** The folder of a stream, which need not exist. */
      of: (id: string) => join(streams, id),
      /** Lets another packager use the folder. */
      release: () => {
        clearInterval(renewing);
        rmSync(join(path, LOCK), { force: true });
      },
    };
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === undefined) throw thrown;
    throw new ConfigError([`PACKAGER_FOLDER: ${path} can't be used (${code}); choose another folder`]);
  }
}

/**
 * A process of shaka-packager that was about to open its FIFO when the packager was killed waits for a writer for ever.
 * One that comes and goes lets it read the end of its input.
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

/** In a folder that all may write to, another user may have put one at our name. */
function refuseForeign(path: string): void {
  const stat = lstatSync(path);
  if (!stat.isDirectory() || (process.getuid && stat.uid !== process.getuid()))
    throw new ConfigError([
      `PACKAGER_FOLDER: ${path} is not a folder of the user that the packager runs as; choose another folder`,
    ]);
}

const HOLDER = z.object({ pid: z.int(), host: z.string() });
type Holder = z.output<typeof HOLDER>;

function takeLock(path: string, nowMs: number): void {
  const file = join(path, LOCK);
  const holder = existsSync(file) ? readLock(file) : undefined;
  if (holder && isHeld(holder, file, nowMs)) {
    const who =
      holder.host === hostname() ? `process ${holder.pid}` : `process ${holder.pid} of ${holder.host}`;
    throw new ConfigError([`PACKAGER_FOLDER: another packager (${who}) uses ${path}; choose another folder`]);
  }
  rmSync(file, { force: true });
  // Of two that start at once, one fails here.
  writeFileSync(file, JSON.stringify({ pid: process.pid, host: hostname() } satisfies Holder), {
    flag: 'wx',
  });
}

/** Undefined for a lock that was torn. */
function readLock(file: string): Holder | undefined {
  try {
    return HOLDER.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Its holder renews it all the time. One that was killed on this machine is known at once. */
function isHeld({ pid, host }: Holder, file: string, nowMs: number): boolean {
  if (nowMs - statSync(file).mtimeMs > LOCK_EXPIRED_MS) return false;
  // In a container, the process before had the same number.
  return host !== hostname() || (pid !== process.pid && isRunning(pid));
}

function renew(path: string, nowMs: number): void {
  try {
    utimesSync(join(path, LOCK), nowMs / 1000, nowMs / 1000);
  } catch {
    // What cleans up temporary folders took it away; the streams fail by themselves then.
  }
}

/** Writes a small file so that who reads it finds it whole, before or after. @throws the system's error. */
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
