import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { addressOf } from '../../http/app';
import { describeThrown, type HttpError } from '../../http/errors';
import type { Log } from '../../http/log';
import { API } from '../api-key';
import { type Batch, openAppendFile, type Sink, type Sizes } from './append-file';

/** One change of a key file, or one attempt that was refused. Never key material. */
export interface AuditEntry {
  readonly action: 'put' | 'delete' | 'refused';
  /** The name of the API key; undefined for a caller without one. */
  readonly key: string | undefined;
  /** The address of the client. */
  readonly address: string;
  readonly streamId: string | undefined;
  /** `created`, `changed`, `unchanged`, `deleted`, or the code of the error. */
  readonly result: string;
  /** Key ids as UUIDs: that of the file before, and that of the file now. */
  readonly oldKeyId: string | undefined;
  readonly newKeyId: string | undefined;
  readonly requestId: string;
  /** Set when the keys are from an earlier answer of the provider. */
  readonly source?: 'provider_cache' | undefined;
  /** For a change from the fleet: the packager whose sidecar took the request. */
  readonly from?: string | undefined;
  /** Set when the fleet made the change, but the file in this folder was not changed, or not yet. */
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
   * Writes waiting lines. Resolves also when that fails, which is logged. Entries that come later are written too, at
   * the end of the process at the latest.
   */
  close(): Promise<void>;
}

/**
 * Times in milliseconds: how long lines are gathered, how long after a failure they are tried again, how long a close
 * may take, and how long the attempts of callers without an API key are summed up.
 */
export interface AuditOptions
  extends Partial<Readonly<Record<'batchMs' | 'retryMs' | 'closeMs' | 'sumMs', number>>> {
  readonly log: Log;
  readonly clock: () => Date;
  /** Where `stdout` goes. */
  readonly stdout: Writable;
}

/** A batch costs a file some hundred microseconds of processor time, however many its lines are. */
const BATCH_MS = 50;

/** Maximum bytes of clients' lines that wait for a file: twice the lines of a batch of 10,000 streams. */
export const MAX_WAITING = 8 * 1024 * 1024;
/** The same for standard output. */
const MAX_WAITING_STDOUT = 1024 * 1024;
/** The same of callers without an API key. It is separate, so that they displace no line of a client. */
export const MAX_UNAUTHENTICATED = 64 * 1024;

// Waiting lines are written at every end of the process, even after a second signal.
const flushes = new Set<() => void>();
process.once('exit', () => {
  for (const flush of flushes) {
    try {
      flush();
    } catch {
      // The process ends: there is no one to inform.
    }
  }
});

/**
 * Opens the audit. `target` is `off`, `stdout` or the path of a file. Lines are written in batches. While a file can't be
 * written they wait and are tried again; later ones are dropped and counted. The log says when that begins and ends.
 */
export function openAudit(target: string, options: AuditOptions): OpenAudit {
  if (target === 'off')
    return { audit: () => undefined, waiting: () => 0, lost: () => 0, close: () => Promise.resolve() };
  const isStdout = target === 'stdout';
  const { log, clock, stdout, batchMs = BATCH_MS, retryMs = 1000, closeMs = 2000, sumMs = 1000 } = options;
  const room: Sizes = {
    client: isStdout ? MAX_WAITING_STDOUT : MAX_WAITING,
    unauthenticated: MAX_UNAUTHENTICATED,
  };
  let lines: string[] = [];
  let sizes: Sizes = { client: 0, unauthenticated: 0 };
  let batch: Batch | undefined;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lost = 0;
  /** How many lines were lost before the failure that lasts. */
  let lostBefore: number | undefined;
  const sink = isStdout
    ? openStream(stdout, (count) => {
        lost += count;
      })
    : openAppendFile(target);

  const nextBatch = (): Batch => {
    const next = { bytes: Buffer.from(lines.join('')), count: lines.length, sizes, written: 0 };
    lines = [];
    sizes = { client: 0, unauthenticated: 0 };
    return next;
  };
  const flush = async (): Promise<void> => {
    try {
      do {
        batch ??= nextBatch();
        await sink.write(batch);
        room.client += batch.sizes.client;
        room.unauthenticated += batch.sizes.unauthenticated;
        batch = undefined;
      } while (lines.length > 0);
    } catch (thrown) {
      if (lostBefore === undefined) {
        lostBefore = lost;
        const cause = describeThrown(thrown);
        log.error('audit lines cannot be written; they wait in memory', { path: target, cause });
      }
      later(retryMs).unref();
      return;
    }
    if (lostBefore === undefined) return;
    log.warn('audit lines are written again', { path: target, dropped: lost - lostBefore });
    lostBefore = undefined;
  };
  const later = (ms: number) => {
    timer = setTimeout(() => {
      timer = undefined;
      running = flush().finally(() => {
        running = undefined;
      });
    }, ms);
    return timer;
  };
  const stopTimer = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const finish = async () => {
    await running;
    stopTimer();
    if (batch || lines.length > 0) await flush();
    // A failed write has set it again.
    stopTimer();
  };
  const push = (whose: keyof Sizes, line: string) => {
    const size = Buffer.byteLength(line);
    if (size > room[whose]) {
      lost += 1;
      return;
    }
    room[whose] -= size;
    sizes[whose] += size;
    lines.push(line);
    if (!running && !timer) later(batchMs);
  };
  const unauthenticated = createAttemptSums(sumMs, clock, (entry, time) =>
    push('unauthenticated', formatAuditLine(entry, time)),
  );
  const flushNow = () => {
    unauthenticated.flush();
    if (batch) sink.writeNow(batch);
    if (lines.length > 0) sink.writeNow(nextBatch());
  };
  flushes.add(flushNow);
  // So that a path that can't be used is logged at the start, and not when the first line is due.
  if (!isStdout) later(batchMs);
  const waiting = () => lines.length + (batch?.count ?? 0);
  return {
    audit(entry) {
      if (entry.key === undefined) unauthenticated.attempted(entry);
      else push('client', formatAuditLine(entry, clock()));
    },
    waiting,
    lost: () => lost,
    async close() {
      unauthenticated.flush();
      const inTime = await Promise.race([finish().then(() => true), wait(closeMs, false, { ref: false })]);
      // A file system that hangs would hold up the end of the process as well.
      if (!inTime) flushes.delete(flushNow);
      const count = waiting();
      if (count > 0) log.error('audit lines are lost: they could not be written before the stop', { count });
    },
  };
}

/** Longer than any valid value; client data must not fill the disk. */
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

interface Sum {
  readonly first: AuditEntry;
  readonly address: string | undefined;
  readonly time: Date;
  count: number;
}

/**
 * Passes on attempts of callers without an API key: the first `MAX_LINES` of each `sumMs` as they are, and later ones as
 * sums by address and result when the span ends. A flood fills no disk, and every attempt is counted.
 */
function createAttemptSums(sumMs: number, clock: () => Date, write: (entry: LineEntry, time: Date) => void) {
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
  return {
    attempted(entry: AuditEntry) {
      if (!underWay) {
        underWay = true;
        lines = 0;
        setTimeout(() => {
          underWay = false;
          flush();
        }, sumMs).unref();
      }
      lines += 1;
      if (lines <= MAX_LINES) {
        write(entry, clock());
        return;
      }
      const { address, result } = entry;
      const own = `${result} ${address}`;
      // Beyond the bound only the result is written, which is a code of this service.
      const isOwn = sums.has(own) || sums.size < MAX_SUMS;
      const name = isOwn ? own : result;
      const sum = sums.get(name);
      if (sum) sum.count += 1;
      else sums.set(name, { first: entry, address: isOwn ? address : undefined, time: clock(), count: 1 });
    },
    flush,
  };
}

/** Standard output: each batch is written at once, so that it mixes with the log by lines. Lost lines are counted. */
function openStream(stream: Writable, lose: (count: number) => void): Sink {
  // Every write has a callback that counts lost lines; an error without a listener would end the process.
  stream.on('error', () => undefined);
  const write = (batch: Batch) =>
    new Promise<void>((resolve) => {
      const done = (isLost: boolean) => {
        if (isLost) lose(batch.count);
        resolve();
      };
      stream.write(String(batch.bytes), (error) => done(Boolean(error)));
      batch.written = batch.bytes.length;
    });
  return {
    write,
    writeNow: (batch) => {
      if (batch.written === 0) void write(batch);
    },
  };
}

/** A refused attempt, as far as the request was read. */
type Attempt = Pick<AuditEntry, 'key' | 'address' | 'streamId' | 'requestId'>;

export type Refusals = ReturnType<typeof createRefusals>;

const KEY_FILES = /^\/api\/keyfiles?(?:\/|$)/i;
const CHANGING = new Set(['POST', 'DELETE']);
/** The statuses that refuse the caller, not the request. */
const FOR_THE_CALLER = new Set([401, 403, 429]);

/**
 * Audits refused attempts: changes, except dry runs, and requests that the caller has no right to. Each is audited once:
 * at the answer of a request, and at the result of each stream of a batch.
 */
export function createRefusals(audit: Audit) {
  const refused = ({ problems }: HttpError, attempt: Attempt) =>
    audit({
      action: 'refused',
      ...attempt,
      result: problems[0]?.code ?? 'server_error',
      oldKeyId: undefined,
      newKeyId: undefined,
    });
  return {
    /** A request is answered with an error. The client and its request are read from `response.locals`. */
    answered(error: HttpError, request: Request, response: Response): void {
      const { path, method, query } = request;
      const isAttempt = FOR_THE_CALLER.has(error.status)
        ? API.test(path)
        : CHANGING.has(method) && KEY_FILES.test(path) && query.dryrun !== 'true';
      if (!isAttempt) return;
      const { apiKey, logFields, requestId } = response.locals;
      const streamId = logFields?.streamId;
      refused(error, {
        key: apiKey?.name,
        address: addressOf(request),
        streamId: typeof streamId === 'string' ? streamId : undefined,
        requestId,
      });
    },
    /** A stream of a batch failed. */
    failed(error: HttpError, attempt: Attempt, dryRun: boolean): void {
      if (!dryRun || FOR_THE_CALLER.has(error.status)) refused(error, attempt);
    },
  };
}
