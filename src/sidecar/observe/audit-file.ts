import { describeThrown } from '../../kernel/errors';
import type { Log } from '../../kernel/log';
import { type AppendFile, createAppendFile, type Lines } from './append-file';
import type { AuditTimes, LineSink } from './line-sink';

/** What may wait in memory, in bytes: twice what a batch of 10,000 streams writes, and no memory without end. */
export const MOST_WAITING = 8 * 1024 * 1024;

interface Batch extends Lines {
  readonly count: number;
}

/**
 * Takes lines for a file and writes them in batches. While that fails they wait, up to `MOST_WAITING` bytes, and are
 * tried again and again; later ones are dropped and counted. The log tells when it begins and when it is over.
 */
export function openAuditFile(path: string, log: Log, { batchMs, retryMs }: AuditTimes): LineSink {
  const file: AppendFile = createAppendFile(path);
  let queued: string[] = [];
  let queuedBytes = 0;
  let batch: Batch | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lost = 0;
  /** How many lines were lost before the failure that lasts. */
  let lostBefore: number | undefined;

  const nextBatch = (): Batch => {
    const bytes = Buffer.from(queued.join(''), 'utf8');
    const count = queued.length;
    queued = [];
    queuedBytes = 0;
    return { bytes, count, written: 0 };
  };

  const flush = async (): Promise<void> => {
    try {
      do {
        batch ??= nextBatch();
        await file.append(batch);
        batch = undefined;
      } while (queued.length > 0);
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
  // So that a path that can't be used is told at the start, and not when the first line is due.
  later(batchMs);

  return {
    write(line) {
      const size = Buffer.byteLength(line);
      const unwritten = batch ? batch.bytes.length - batch.written : 0;
      if (queuedBytes + unwritten + size > MOST_WAITING) {
        lost += 1;
        return;
      }
      queued.push(line);
      queuedBytes += size;
      if (!running && !timer) later(batchMs);
    },
    waiting: () => queued.length + (batch?.count ?? 0),
    lost: () => lost,
    flushNow() {
      if (batch) file.appendNow(batch);
      if (queued.length > 0) file.appendNow(nextBatch());
    },
    async close() {
      await running;
      clearTimeout(timer);
      if (batch || queued.length > 0) await flush();
      clearTimeout(timer);
    },
  };
}
