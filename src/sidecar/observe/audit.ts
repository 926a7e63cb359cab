import type { Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { addressOf } from '../../http/app';
import { describeThrown, type HttpError } from '../../http/errors';
import type { Log } from '../../http/log';
import { API } from '../api-key';
import { type Batch, openAppendFile, type Sink, type Sizes } from './append-file';

/** Never has key material. */
export interface AuditEntry {
  readonly action: 'put' | 'delete' | 'refused';
  /** The name of the API key; undefined: the caller has none. */
  readonly key: string | undefined;
  readonly address: string;
  readonly streamId: string | undefined;
  /** `created`, `changed`, `unchanged`, `deleted`, or the code of the error. */
  readonly result: string;
  /** UUIDs: that of the file before, and that of the file now. */
  readonly oldKeyId: string | undefined;
  readonly newKeyId: string | undefined;
  readonly requestId: string;
  readonly source?: 'provider_cache' | undefined;
  /** For a change from the fleet: the packager whose sidecar took the request. */
  readonly from?: string | undefined;
}

/** Returns at once and never throws. */
export type Audit = (entry: AuditEntry) => void;

export type OpenAudit = ReturnType<typeof openAudit>;

/**
 * In milliseconds: how long lines are gathered, how long after a failure they are tried again, how long a close may
 * take, and how long attempts of callers without an API key are summed up.
 */
export interface AuditOptions
  extends Partial<Readonly<Record<'batchMs' | 'retryMs' | 'closeMs' | 'sumMs', number>>> {
  readonly log: Log;
  readonly clock: () => Date;
  readonly stdout: Writable;
}

/** A batch costs a file some hundred microseconds of processor time, however many its lines are. */
const BATCH_MS = 50;

/** Bytes of clients' lines that wait for a file: twice the lines of a batch of 10,000 streams. */
export const MAX_WAITING = 8 * 1024 * 1024;
const MAX_WAITING_STDOUT = 1024 * 1024;
/** For callers without an API key, who must not displace lines of clients. */
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

/** `target`: `off`, `stdout` or a path. While that can't be written, lines wait; beyond the limit they are counted. */
export function openAudit(target: string, options: AuditOptions) {
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
  /** Lines that were lost before the present failure; undefined: there is none. */
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
      if (lostBefore !== undefined)
        log.warn('audit lines are written again', { path: target, dropped: lost - lostBefore });
      lostBefore = undefined;
    } catch (thrown) {
      if (lostBefore === undefined) {
        lostBefore = lost;
        const cause = describeThrown(thrown);
        log.error('audit lines cannot be written; they wait in memory', { path: target, cause });
      }
      later(retryMs).unref();
    } finally {
      // In the same turn as the last look at the lines: one that comes then is written by a timer.
      running = undefined;
    }
  };
  const later = (ms: number) => {
    timer = setTimeout(() => {
      timer = undefined;
      running = flush();
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
    if (batch || lines.length > 0) running = flush();
    await running;
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
  // A path that can't be used is logged at the start, not when the first line is due.
  if (!isStdout) later(batchMs);
  const waiting = () => lines.length + (batch?.count ?? 0);
  return {
    audit(entry: AuditEntry) {
      if (entry.key === undefined) unauthenticated.attempted(entry);
      else push('client', formatAuditLine(entry, clock()));
    },
    waiting,
    lost: () => lost,
    /** Resolves also when the last write fails, which is logged. Later entries are written by the end of the process. */
    async close() {
      unauthenticated.flush();
      const inTime = await Promise.race([finish().then(() => true), wait(closeMs, false, { ref: false })]);
      // A file system that hangs would hold up the end of the process, too.
      if (!inTime) flushes.delete(flushNow);
      const count = waiting();
      if (count > 0) log.error('audit lines are lost: they could not be written before the stop', { count });
    },
  };
}

/** Longer than any valid value; client data must not fill the disk. */
const MAX_CHARACTERS = 256;

// JSON leaves C1 control characters and Unicode line breaks as they are, and some readers obey them.
const CONTROL_CHARACTERS = /[\u007f-\u009f\u2028\u2029]/g;

interface LineEntry extends Omit<AuditEntry, 'address' | 'requestId'> {
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  readonly count?: number;
}

/** The line break is included. A field without a value is null. */
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
    CONTROL_CHARACTERS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${safe}\n`;
}

function cut(text: string | undefined): string | null {
  return text === undefined ? null : text.slice(0, MAX_CHARACTERS);
}

const MAX_LINES = 10;
/** Sums by address and result in one span; beyond them, sums are by result alone. */
const MAX_SUMS = 10;

interface Sum {
  readonly first: AuditEntry;
  readonly address: string | undefined;
  readonly time: Date;
  count: number;
}

/** A flood fills no disk, and every attempt counts: those after `MAX_LINES` of each `sumMs` are summed up. */
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
      // The result is a code of this service, so that sums by it are few.
      const isOwn = sums.has(own) || sums.size < MAX_SUMS;
      const name = isOwn ? own : result;
      const sum = sums.get(name);
      if (sum) sum.count += 1;
      else sums.set(name, { first: entry, address: isOwn ? address : undefined, time: clock(), count: 1 });
    },
    flush,
  };
}

/** Each batch is one write, so that it mixes with the log by lines. */
function openStream(stream: Writable, lose: (count: number) => void): Sink {
  // Callbacks count lost lines; an error without a listener would end the process.
  stream.on('error', () => undefined);
  const write = (batch: Batch) =>
    new Promise<void>((resolve) => {
      stream.write(String(batch.bytes), (error) => {
        if (error) lose(batch.count);
        resolve();
      });
      batch.written = batch.bytes.length;
    });
  return {
    write,
    writeNow: (batch) => {
      if (batch.written === 0) void write(batch);
    },
  };
}

type Attempt = Pick<AuditEntry, 'key' | 'address' | 'streamId' | 'requestId'>;

export type Refusals = ReturnType<typeof createRefusals>;

const KEY_FILES = /^\/api\/keyfiles?(?:\/|$)/i;
const CHANGING = new Set(['POST', 'DELETE']);
/** They refuse the caller, not the request. */
const FOR_THE_CALLER = new Set([401, 403, 429]);

/**
 * Audits refused changes, except dry runs, and requests that the caller has no right to. Each is audited once: at the
 * answer of a request, or at the result of a stream of a batch.
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
    failed(error: HttpError, attempt: Attempt, dryRun: boolean): void {
      if (!dryRun || FOR_THE_CALLER.has(error.status)) refused(error, attempt);
    },
  };
}
