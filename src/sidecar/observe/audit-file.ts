import { describeThrown } from '../../http/errors';
import type { Log } from '../../http/log';
import { type AppendFile, createAppendFile, type Lines } from './append-file';
import { createLineQueue, type TakenLines } from './line-queue';
import type { AuditTimes, LineSink } from './line-sink';

/** What may wait in memory, in bytes: twice what a batch of 10,000 streams writes, and no memory without end. */
export const MAX_WAITING = 8 * 1024 * 1024;

type Batch = Lines & Pick<TakenLines, 'count' | 'done'>;

/**
 * Takes lines for a file and writes them in batches. While that fails they wait, those of clients up to `MAX_WAITING`
 * bytes, and are tried again and again; later ones are dropped and counted. The log tells when it begins and when it is
 * over.
 */
export function openAuditFile(path: string, log: Log, { batchMs, retryMs }: AuditTimes): LineSink {
  const file: AppendFile = createAppendFile(path);
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
  // So that a path that can't be used is told at the start, and not when the first line is due.
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
