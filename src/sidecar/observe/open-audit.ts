import type { Writable } from 'node:stream';
import type { Log } from '../../http/log';
import type { Audit } from './audit';
import { openAuditFile } from './audit-file';
import { formatAuditLine } from './audit-line';
import { openAuditStream } from './audit-stream';
import type { AuditTimes } from './line-sink';
import { createStrangers } from './strangers';

export interface OpenAudit {
  readonly audit: Audit;
  /** Lines that are not written yet. */
  waiting(): number;
  /** Lines that are lost. */
  lost(): number;
  /**
   * Writes what waits. Resolves also when that fails, which the log tells. Entries that come later are written too, at
   * the end of the process at the latest.
   */
  close(): Promise<void>;
}

export interface AuditOptions extends Partial<AuditTimes> {
  readonly log: Log;
  readonly clock: () => Date;
  /** Where `stdout` goes. */
  readonly stdout: Writable;
}

const TIMES = { retryMs: 1000, closeMs: 2000, sumMs: 1000 };
/** As the log's. */
const STDOUT_BATCH_MS = 10;
/** A batch costs a file some hundred microseconds of processor time, however many its lines are. */
const FILE_BATCH_MS = 50;

/** Opens the audit. `target` is `off`, `stdout` or the path of a file. Never throws: what can't be written waits. */
export function openAudit(target: string, options: AuditOptions): OpenAudit {
  if (target === 'off')
    return { audit: () => undefined, waiting: () => 0, lost: () => 0, close: () => Promise.resolve() };
  const { log, clock, stdout } = options;
  const batchMs = target === 'stdout' ? STDOUT_BATCH_MS : FILE_BATCH_MS;
  const times: AuditTimes = { ...TIMES, batchMs, ...options };
  const sink = target === 'stdout' ? openAuditStream(stdout, times) : openAuditFile(target, log, times);
  const strangers = createStrangers(times.sumMs, clock, (entry, time) =>
    sink.write(formatAuditLine(entry, time), 'stranger'),
  );
  const flushNow = () => {
    strangers.flush();
    sink.flushNow();
  };
  flushes.add(flushNow);
  return {
    audit(entry) {
      if (entry.key === undefined) strangers.attempted(entry);
      else sink.write(formatAuditLine(entry, clock()), 'client');
    },
    waiting: sink.waiting,
    lost: sink.lost,
    async close() {
      strangers.flush();
      // A file system that hangs would hold up the end of the process as well.
      if (!(await within(times.closeMs, sink.close()))) flushes.delete(flushNow);
      const count = sink.waiting();
      if (count > 0) log.error('audit lines are lost: they could not be written before the stop', { count });
    },
  };
}

// Whatever ends the process, a failed start or a second signal, what waits is written.
const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) {
    try {
      flush();
    } catch {
      // Nobody is left to be told.
    }
  }
});

/** Waits for a promise, but no longer, and answers whether it was in time: a network file system may hang. */
async function within(ms: number, promise: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const inTime = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}
