import type { Writable } from 'node:stream';
import type { Log } from '../../kernel/log';
import type { Audit } from './audit';
import { openAuditFile } from './audit-file';
import { formatAuditLine } from './audit-line';
import { openAuditStream } from './audit-stream';
import type { AuditTimes } from './line-sink';

export interface OpenAudit {
  readonly audit: Audit;
  /** Lines that are not written yet. */
  waiting(): number;
  /** Lines that are lost. */
  lost(): number;
  /** Writes what waits. Resolves also when that fails, which the log tells. */
  close(): Promise<void>;
}

export interface AuditOptions extends Partial<AuditTimes> {
  readonly log: Log;
  readonly clock: () => Date;
  /** Where `stdout` goes. */
  readonly stdout: Writable;
}

const TIMES = { retryMs: 1000, closeMs: 2000 };
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
  const flushNow = () => sink.flushNow();
  flushes.add(flushNow);
  return {
    audit: (entry) => sink.write(formatAuditLine(entry, clock())),
    waiting: sink.waiting,
    lost: sink.lost,
    async close() {
      await within(times.closeMs, sink.close());
      flushes.delete(flushNow);
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

/** Waits for a promise, but no longer: a network file system that hangs must not hold up the stop. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
