import { closeSync, constants, fstatSync, open, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemCode } from '../../http/errors';
import { writeBytes } from '../storage/durable-file';
import { makeFolders } from '../storage/open-file';

/** Bytes, by whether the caller had an API key. */
export type Sizes = Record<'client' | 'unauthenticated', number>;

export interface Batch {
  readonly bytes: Buffer;
  readonly count: number;
  readonly sizes: Sizes;
  written: number;
}

export interface Sink {
  /** Rejects with the system's error; called again with the same lines, it continues where it stopped. */
  write(batch: Batch): Promise<void>;
  /** For the end of the process: writes the rest before it returns. May throw. */
  writeNow(batch: Batch): void;
}

const openAt = promisify(open);

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
// A pipe without a reader must fail instead of blocking a thread forever.
const APPEND = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
const FILE_MODE = 0o640;
const BREAK = Buffer.from('\n');
/** Far longer than a write of some lines takes. */
const OTHERS_MS = 10;

/** Appends whole lines, also after a full disk cut one. Each write opens the path: others may rename or truncate it. */
export function openAppendFile(path: string): Sink {
  let left: { readonly dev: number; readonly ino: number; readonly size: number } | undefined;

  /** `torn`: the file ends in half a line of another program. */
  const begin = (descriptor: number, lines: Batch) => {
    const { dev, ino, size } = fstatSync(descriptor);
    const asLeft = left?.dev === dev && left.ino === ino && left.size === size;
    // In another file, or behind the lines of others, half a line can't continue: it is written again.
    if (!asLeft) lines.written = lines.bytes.subarray(0, lines.written).lastIndexOf(BREAK) + 1;
    const torn = !asLeft && size > 0 && endsMidLine(path, size);
    return { dev, ino, size, torn };
  };

  return {
    async write(lines) {
      const descriptor = await openToAppend(path);
      try {
        let { dev, ino, size, torn } = begin(descriptor, lines);
        if (torn) {
          // Another sidecar may be writing this half now: a write grows a file page by page.
          await wait(OTHERS_MS);
          ({ dev, ino, size, torn } = begin(descriptor, lines));
        }
        if (torn) size += (await writeBytes(descriptor, BREAK, 0, 1)).bytesWritten;
        left = { dev, ino, size };
        while (lines.written < lines.bytes.length) {
          const rest = lines.bytes.length - lines.written;
          const { bytesWritten } = await writeBytes(descriptor, lines.bytes, lines.written, rest);
          lines.written += bytesWritten;
          size += bytesWritten;
          left = { dev, ino, size };
        }
      } finally {
        closeSync(descriptor);
      }
    },
    writeNow(lines) {
      const descriptor = openSync(path, APPEND, FILE_MODE);
      if (begin(descriptor, lines).torn) writeSync(descriptor, BREAK);
      // A pipe may take a part only.
      while (lines.written < lines.bytes.length)
        lines.written += writeSync(descriptor, lines.bytes, lines.written);
      closeSync(descriptor);
    },
  };
}

async function openToAppend(path: string): Promise<number> {
  try {
    return await openAt(path, APPEND, FILE_MODE);
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
    makeFolders(dirname(path));
    return openAt(path, APPEND, FILE_MODE);
  }
}

function endsMidLine(path: string, size: number): boolean {
  const last = Buffer.from(BREAK);
  try {
    const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
    try {
      readSync(descriptor, last, 0, 1, size - 1);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // A file that may be written and not read is another program's to complete.
  }
  return !last.equals(BREAK);
}
