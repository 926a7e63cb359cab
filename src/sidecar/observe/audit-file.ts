import { closeSync, constants, fstatSync, mkdir, open, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describeThrown, systemCode } from '../../http/errors';
import type { Log } from '../../http/log';
import { writeBytes } from '../storage/durable-file';

/**
 * In milliseconds: how long lines are gathered, how long after a failure they are tried again, what a close may take,
 * and how long the attempts of callers without an API key are summed up.
 */
export interface AuditTimes {
  readonly batchMs: number;
  readonly retryMs: number;
  readonly closeMs: number;
  readonly sumMs: number;
}

/** Where audit lines go. */
export interface LineSink {
  write(line: string, whose: Whose): void;
  waiting(): number;
  lost(): number;
  /** Writes what waits before it returns, as far as that is possible, for the end of the process. May throw. */
  flushNow(): void;
  /** Writes what waits. Lines that come later are still taken. */
  close(): Promise<void>;
}

/** Whether the caller of a line's attempt had an API key. */
type Whose = 'client' | 'unauthenticated';

/** Room for the lines of callers without an API key, in bytes. It's their own: whatever they send, none of the clients' lines gives way. */
export const MAX_UNAUTHENTICATED = 64 * 1024;

/** Lines that were taken out together. Their room is free again once they are done with. */
interface TakenLines {
  readonly text: string;
  readonly count: number;
  done(): void;
}

interface LineQueue {
  /** Takes a line in, or answers false when there is no room for it. */
  push(line: string, whose: Whose): boolean;
  /** Takes all lines out, in their order. */
  take(): TakenLines;
  count(): number;
}

/** Lines that wait, of the clients `most` bytes at most. */
export function createLineQueue(most: number): LineQueue {
  const room = { client: most, unauthenticated: MAX_UNAUTHENTICATED };
  let lines: string[] = [];
  let held = { client: 0, unauthenticated: 0 };
  return {
    push(line, whose) {
      const size = Buffer.byteLength(line);
      if (size > room[whose]) return false;
      room[whose] -= size;
      held[whose] += size;
      lines.push(line);
      return true;
    },
    take() {
      const { client, unauthenticated } = held;
      const taken = lines;
      lines = [];
      held = { client: 0, unauthenticated: 0 };
      return {
        text: taken.join(''),
        count: taken.length,
        done() {
          room.client += client;
          room.unauthenticated += unauthenticated;
        },
      };
    },
    count: () => lines.length,
  };
}

/** Maximum bytes that wait in memory: twice the lines of a batch of 10,000 streams. */
export const MAX_WAITING = 8 * 1024 * 1024;

type Batch = Lines & Pick<TakenLines, 'count' | 'done'>;

/**
 * Takes lines for a file and writes them in batches. While that fails they wait, those of clients up to `MAX_WAITING`
 * bytes, and are tried again and again; later ones are dropped and counted. The log says when it begins and when it is
 * over.
 */
export function openAuditFile(path: string, log: Log, { batchMs, retryMs }: AuditTimes): LineSink {
  const file = createAppendFile(path);
  const queue = createLineQueue(MAX_WAITING);
  let batch: Batch | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lost = 0;
  /** How many lines were lost before the failure that lasts. */
  let lostBefore: number | undefined;

  const nextBatch = (): Batch => {
    const { text, count, done } = queue.take();
    return { bytes: Buffer.from(text, 'utf8'), count, done, written: 0 };
  };

  const flush = async (): Promise<void> => {
    try {
      do {
        batch ??= nextBatch();
        await file.append(batch);
        batch.done();
        batch = undefined;
      } while (queue.count() > 0);
    } catch (thrown) {
      if (lostBefore === undefined) {
        lostBefore = lost;
        log.error('audit lines cannot be written; they wait in memory', {
          path,
          cause: describeThrown(thrown),
        });
      }
      later(retryMs).unref();
      return;
    }
    if (lostBefore === undefined) return;
    log.warn('audit lines are written again', { path, dropped: lost - lostBefore });
    lostBefore = undefined;
  };

  const run = () => {
    timer = undefined;
    running = flush().finally(() => {
      running = undefined;
    });
  };
  const later = (ms: number) => {
    timer = setTimeout(run, ms);
    return timer;
  };
  const stopTimer = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  // So that a path that can't be used is logged at the start, and not when the first line is due.
  later(batchMs);

  return {
    write(line, whose) {
      if (!queue.push(line, whose)) lost += 1;
      else if (!running && !timer) later(batchMs);
    },
    waiting: () => queue.count() + (batch?.count ?? 0),
    lost: () => lost,
    flushNow() {
      if (batch) file.appendNow(batch);
      if (queue.count() > 0) file.appendNow(nextBatch());
    },
    async close() {
      await running;
      stopTimer();
      if (batch || queue.count() > 0) await flush();
      stopTimer();
    },
  };
}

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
interface Lines {
  readonly bytes: Buffer;
  /** How many of the bytes are in the file. */
  written: number;
}

interface AppendFile {
  /**
   * Appends lines to what has the path at the time, so that the file may be renamed or truncated by others. Rejects
   * with the system's error; called again with the same lines it goes on where it stood still.
   */
  append(lines: Lines): Promise<void>;
  /** The same at once, for the end of the process. */
  appendNow(lines: Lines): void;
}

/** A file that is appended to in whole lines, also after a disk was full in the middle of one. */
function createAppendFile(path: string): AppendFile {
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
    // A file that may be written and not read is another program's to complete.
  }
  return !last.equals(BREAK);
}
