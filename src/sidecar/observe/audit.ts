import type { Writable } from 'node:stream';
import type { Log } from '../../http/log';
import { type AuditTimes, createLineQueue, type LineSink, openAuditFile } from './audit-file';

/** One change of a key file, or one attempt that was refused. Never key material. */
export interface AuditEntry {
  readonly action: 'put' | 'delete' | 'refused';
  /** The name of the API key; undefined for a caller without one. */
  readonly key: string | undefined;
  /** The address the request came from. */
  readonly address: string;
  readonly streamId: string | undefined;
  /** `created`, `changed`, `unchanged`, `deleted`, or the code of the error. */
  readonly result: string;
  /** Key ids as UUIDs: that of the file before, and that of the file now. */
  readonly oldKeyId: string | undefined;
  readonly newKeyId: string | undefined;
  readonly requestId: string;
  /** Set when the keys were not the provider's present answer. */
  readonly source?: 'provider_cache' | undefined;
  /** The packager of the fleet whose sidecar took the request, of a change that came from there. */
  readonly from?: string | undefined;
  /** Set when the file in this folder has not been changed: the change is the fleet's, and made elsewhere or later. */
  readonly isElsewhere?: boolean | undefined;
}

/** Takes an entry. Returns at once and never throws. */
export type Audit = (entry: AuditEntry) => void;

export interface OpenAudit {
  readonly audit: Audit;
  /** Lines that are not written yet. */
  waiting(): number;
  /** Lines that are lost. */
  lost(): number;
  /**
   * Writes what waits. Resolves also when that fails, which is logged. Entries that come later are written too, at
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

// Whatever ends the process, a failed start or a second signal, what waits is written.
const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) {
    try {
      flush();
    } catch {
      // The process ends: no one can be informed.
    }
  }
});

/** Opens the audit. `target` is `off`, `stdout` or the path of a file. Never throws: what can't be written waits. */
export function openAudit(target: string, options: AuditOptions): OpenAudit {
  if (target === 'off')
    return { audit: () => undefined, waiting: () => 0, lost: () => 0, close: () => Promise.resolve() };
  const { log, clock, stdout } = options;
  const batchMs = target === 'stdout' ? STDOUT_BATCH_MS : FILE_BATCH_MS;
  const times: AuditTimes = { ...TIMES, batchMs, ...options };
  const sink = target === 'stdout' ? openAuditStream(stdout, times) : openAuditFile(target, log, times);
  const unauthenticated = createAttemptSums(times.sumMs, clock, (entry, time) =>
    sink.write(formatAuditLine(entry, time), 'unauthenticated'),
  );
  const flushNow = () => {
    unauthenticated.flush();
    sink.flushNow();
  };
  flushes.add(flushNow);
  return {
    audit(entry) {
      if (entry.key === undefined) unauthenticated.attempted(entry);
      else sink.write(formatAuditLine(entry, clock()), 'client');
    },
    waiting: sink.waiting,
    lost: sink.lost,
    async close() {
      unauthenticated.flush();
      // A file system that hangs would hold up the end of the process as well.
      if (!(await within(times.closeMs, sink.close()))) flushes.delete(flushNow);
      const count = sink.waiting();
      if (count > 0) log.error('audit lines are lost: they could not be written before the stop', { count });
    },
  };
}

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

/** Longer than any value that is in order; what anybody sends must not fill the disk. */
const MAX_CHARACTERS = 256;

// JSON leaves these as they are: the control characters of C1 and the line breaks of Unicode, which some readers obey.
const OBEYED = /[\u007f-\u009f\u2028\u2029]/g;

/** The content of a line: one entry, or `count` refused attempts. */
interface LineEntry extends Omit<AuditEntry, 'address' | 'requestId'> {
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  readonly count?: number;
}

/** An entry as a line of JSON, line break included. A field that has no value is null. */
export function formatAuditLine(entry: LineEntry, time: Date): string {
  const line = JSON.stringify({
    time: time.toISOString(),
    audit: true,
    action: entry.action,
    key: cut(entry.key),
    address: cut(entry.address),
    stream_id: cut(entry.streamId),
    result: cut(entry.result),
    old_key_id: cut(entry.oldKeyId),
    new_key_id: cut(entry.newKeyId),
    request_id: cut(entry.requestId),
    source: entry.source,
    fleet: entry.from?.slice(0, MAX_CHARACTERS),
    count: entry.count,
  });
  const safe = line.replaceAll(
    OBEYED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${safe}\n`;
}

function cut(text: string | undefined): string | null {
  return text === undefined ? null : text.slice(0, MAX_CHARACTERS);
}

/** Maximum number of attempts with lines of their own in one span; later ones are summed up. */
const MAX_LINES = 10;
/** Maximum number of addresses and results with sums of their own in one span. */
const MAX_SUMS = 10;

interface AttemptSums {
  /** Takes a refused attempt of somebody without an API key. */
  attempted(entry: AuditEntry): void;
  /** Hands on the sums so far. */
  flush(): void;
}

interface Sum {
  readonly first: AuditEntry;
  readonly address: string | undefined;
  readonly time: Date;
  count: number;
}

/**
 * Hands on what callers without an API key tried: the first `MAX_LINES` attempts of each `sumMs` as they are, and those beyond as sums,
 * by address and result, when the span ends. Who sends thousands a second fills no disk, and every attempt is counted.
 */
function createAttemptSums(
  sumMs: number,
  clock: () => Date,
  write: (entry: LineEntry, time: Date) => void,
): AttemptSums {
  const sums = new Map<string, Sum>();
  let lines = 0;
  let underWay = false;

  const flush = () => {
    for (const { first, address, time, count } of sums.values()) {
      if (count === 1) write(first, time);
      else write({ ...first, address, streamId: undefined, requestId: undefined, count }, time);
    }
    sums.clear();
  };

  const add = (entry: AuditEntry) => {
    const { address, result } = entry;
    const own = `${result} ${address}`;
    // Beyond the bound only the result is written, which is a code of this service.
    const isOwn = sums.has(own) || sums.size < MAX_SUMS;
    const name = isOwn ? own : result;
    const sum = sums.get(name);
    if (sum) sum.count += 1;
    else sums.set(name, { first: entry, address: isOwn ? address : undefined, time: clock(), count: 1 });
  };

  const beginSpan = () => {
    underWay = true;
    lines = 0;
    setTimeout(() => {
      underWay = false;
      flush();
    }, sumMs).unref();
  };

  return {
    attempted(entry) {
      if (!underWay) beginSpan();
      if (lines === MAX_LINES) {
        add(entry);
        return;
      }
      lines += 1;
      write(entry, clock());
    },
    flush,
  };
}

/** Maximum bytes that wait for a slow reader. The log's lines don't count. */
const MAX_WAITING = 1024 * 1024;

/** Takes lines for a stream, standard output, and writes them in batches, each whole, so that they mix with the log's by lines. */
function openAuditStream(stream: Writable, { batchMs }: Pick<AuditTimes, 'batchMs'>): LineSink {
  const queue = createLineQueue(MAX_WAITING);
  let underWay = 0;
  let lost = 0;
  // Every write has a callback that counts what is lost; an error without a listener would end the process.
  stream.on('error', () => undefined);

  const flush = (done: () => void = () => undefined): void => {
    if (queue.count() === 0) {
      done();
      return;
    }
    const { text, count, done: makeRoom } = queue.take();
    if (!stream.writable) {
      makeRoom();
      lost += count;
      done();
      return;
    }
    underWay += count;
    stream.write(text, (error) => {
      makeRoom();
      underWay -= count;
      if (error) lost += count;
      done();
    });
  };

  return {
    write(line, whose) {
      const isFirst = queue.count() === 0;
      if (!queue.push(line, whose)) lost += 1;
      else if (isFirst) setTimeout(flush, batchMs);
    },
    waiting: () => queue.count() + underWay,
    lost: () => lost,
    flushNow: () => flush(),
    close: () => new Promise(flush),
  };
}
