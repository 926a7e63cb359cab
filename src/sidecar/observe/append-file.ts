import { closeSync, constants, fstatSync, mkdir, open, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { systemCode } from '../../http/errors';
import { writeBytes } from '../storage/write-bytes';

const openFile = promisify(open);
const makeFolder = promisify(mkdir);

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
// A pipe without a reader must fail, not hold a thread for ever.
const APPEND = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;
const FILE_MODE = 0o640;
const FOLDER_MODE = 0o750;
const BREAK = Buffer.from('\n');
/** Far longer than a write of some lines takes. */
const OTHERS_MS = 10;

/** Whole lines on their way to a file. */
export interface Lines {
  readonly bytes: Buffer;
  /** How many of the bytes are in the file. */
  written: number;
}

export interface AppendFile {
  /**
   * Appends lines to what has the path at the time, so that the file may be renamed or truncated by others. Rejects
   * with the system's error; called again with the same lines it goes on where it stood still.
   */
  append(lines: Lines): Promise<void>;
  /** The same at once, for the end of the process. */
  appendNow(lines: Lines): void;
}

/** A file that is appended to in whole lines, also after a disk was full in the middle of one. */
export function createAppendFile(path: string): AppendFile {
  /** The file as the last write left it. */
  let left: { readonly dev: number; readonly ino: number; readonly size: number } | undefined;

  /** Answers the file's size, and whether it ends in half a line of somebody else. */
  const begin = (descriptor: number, lines: Lines) => {
    const stat = fstatSync(descriptor);
    const { dev, ino, size } = stat;
    const asLeft = left?.dev === dev && left.ino === ino && left.size === size;
    // In another file, or behind the lines of others, half a line can't go on: it begins again.
    if (!asLeft) lines.written = lines.bytes.subarray(0, lines.written).lastIndexOf(BREAK) + 1;
    const torn = !asLeft && stat.isFile() && size > 0 && endsMidLine(path, size);
    return { dev, ino, size, torn };
  };

  return {
    async append(lines) {
      const descriptor = await openToAppend(path);
      try {
        let { dev, ino, size, torn } = begin(descriptor, lines);
        if (torn) {
          // Or half a line that another sidecar is writing now: a write grows a file page by page.
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
    appendNow(lines) {
      const descriptor = openSync(path, APPEND, FILE_MODE);
      if (begin(descriptor, lines).torn) writeSync(descriptor, BREAK, 0, 1);
      while (lines.written < lines.bytes.length)
        lines.written += writeSync(
          descriptor,
          lines.bytes,
          lines.written,
          lines.bytes.length - lines.written,
        );
      closeSync(descriptor);
    },
  };
}

async function openToAppend(path: string): Promise<number> {
  try {
    return await openFile(path, APPEND, FILE_MODE);
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
    await makeFolder(dirname(path), { recursive: true, mode: FOLDER_MODE });
    return openFile(path, APPEND, FILE_MODE);
  }
}

function endsMidLine(path: string, size: number): boolean {
  const last = Buffer.from(BREAK);
  try {
    const descriptor = openSync(path, O_RDONLY | O_NONBLOCK);
    readSync(descriptor, last, 0, 1, size - 1);
    closeSync(descriptor);
  } catch {
    // Who may write the file and not read it has it in another's care.
  }
  return !last.equals(BREAK);
}
