import type { StreamId } from '../../../api/stream-id';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { yieldToEventLoop } from '../../../http/semaphore';
import { LedgerFile } from './ledger-file';
import {
  forgottenLine,
  headLine,
  type LedgerHead,
  type LedgerRecord,
  readLine,
  recordLine,
} from './ledger-lines';

/**
 * Which files in the key-file folder are the fleet's: `<keys>/.packagerdrmapi-fleet/ledger`, without key material. The
 * last line of a stream counts. All records are also in memory: 100,000 streams take some 20 MB.
 */
export interface Ledger {
  readonly head: LedgerHead;
  get(streamId: StreamId): LedgerRecord | undefined;
  /** The number of records. */
  readonly size: number;
  records(): IterableIterator<readonly [StreamId, LedgerRecord]>;
  /**
   * Records an entry: visible at once; resolves when it survives a power cut. All calls during a sync share the next
   * one. If the tag changes, the previous one becomes `former` unless that is given. Rejects with the system's error, and
   * then the record before is visible again, unless a newer one was noted.
   */
  note(streamId: StreamId, record: LedgerRecord): Promise<void>;
  /** Removes a record. It need not survive a power cut. */
  forget(streamId: StreamId): void;
  /** Changes the head, as `note` does with a record. */
  noteHead(change: Partial<Omit<LedgerHead, 'id'>>): Promise<void>;
  /** Writes what is not written yet. Later notes are refused. */
  close(): Promise<void>;
}

interface LedgerOptions {
  /** Answers an unguessable UUID. */
  readonly newId: () => string;
  readonly log: Log;
}

/** The file is rewritten when it has this many lines more than twice the records. */
const SLACK_LINES = 10_000;
/** Lines between two turns of the event loop, about 2 ms. */
const SLICE = 1000;
const NEWLINE = 0x0a;
const CLOSED = new Error('The ledger is closed');

/** A line that is to be appended. */
interface Waiting {
  readonly line: string;
  readonly sync: boolean;
  /** Called with the system's error when it could not be appended. */
  readonly done: (failure?: unknown) => void;
}

/**
 * Opens the ledger of a key-file folder, or creates it. Damaged lines are logged and skipped.
 * @throws Error with a sentence for the operator when it is a link or locked by another process; the system's error.
 */
export async function openLedger(folder: string, { newId, log }: LedgerOptions): Promise<Ledger> {
  const file = await LedgerFile.open(folder, newId);
  const {
    records,
    head: found,
    highest: highestFound,
    lines: linesFound,
    damaged,
  } = await readLines(file.found);
  if (damaged > 0) log.error('lines of the ledger of the fleet are damaged and ignored', { damaged });
  if (!file.place.lock)
    log.warn('the file system of the key files supports no lock; no second sidecar may use this folder');

  let head: LedgerHead = found ?? { id: newId(), highest: 0 };
  let highest = Math.max(highestFound, head.highest);
  /** What is noted but not written yet; undefined: forgotten. `records` and `head` are what is on disk. */
  const unwritten = new Map<StreamId, LedgerRecord | undefined>();
  let unwrittenHead: LedgerHead | undefined;
  let lines = linesFound;
  let mostLines = 0;
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;
  /** Whether the file holds a record that was forgotten. */
  let isStale = false;
  let isClosed = false;

  const get = (streamId: StreamId) =>
    unwritten.has(streamId) ? unwritten.get(streamId) : records.get(streamId);

  const rewrite = async (): Promise<void> => {
    isStale = false;
    try {
      await file.replace(partsOf({ ...head, highest }, records));
      lines = records.size + 1;
    } catch (cause) {
      log.warn('the ledger of the fleet could not be rewritten and continues to grow', {
        error: describeThrown(cause),
      });
    }
    mostLines = Math.max(lines, 2 * records.size) + SLACK_LINES;
  };

  const append = async (batch: readonly Waiting[]): Promise<void> => {
    let failure: unknown;
    try {
      const sync = batch.some((each) => each.sync);
      await file.append(
        batch.map(({ line }) => line),
        sync,
      );
      lines += batch.length;
    } catch (thrown) {
      failure = thrown ?? new Error('The lines could not be appended');
    }
    for (const { done } of batch) done(failure);
  };

  const write = async (): Promise<void> => {
    // Notes of this turn of the event loop share the first sync.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await append(batch);
      if (isStale || lines > Math.max(mostLines, 2 * records.size + SLACK_LINES)) await rewrite();
    }
    writing = undefined;
  };

  const enqueue = (line: string, sync: boolean, done: Waiting['done']) => {
    waiting.push({ line, sync, done });
    writing ??= write();
  };
  /** Appends a line and resolves when it is durable; `settle` takes it over into what is on disk. */
  const durably = (line: string, settle: (isWritten: boolean) => void): Promise<void> =>
    new Promise((resolve, reject) => {
      enqueue(line, true, (failure) => {
        settle(failure === undefined);
        if (failure === undefined) resolve();
        else reject(failure);
      });
    });

  try {
    if (!found) await file.append([headLine({ ...head, highest })], true);
  } catch (thrown) {
    await file.close();
    throw thrown;
  }
  lines += found ? 0 : 1;
  mostLines = Math.max(lines, 2 * records.size) + SLACK_LINES;
  if (linesFound > records.size + 1 || damaged > 0) await rewrite();

  return {
    get head() {
      return { ...(unwrittenHead ?? head), highest };
    },
    get,
    get size() {
      let size = records.size;
      for (const [streamId, record] of unwritten)
        size += Number(record !== undefined) - Number(records.has(streamId));
      return size;
    },
    *records() {
      for (const [streamId] of records) {
        const record = get(streamId);
        if (record) yield [streamId, record];
      }
      for (const [streamId, record] of unwritten)
        if (record && !records.has(streamId)) yield [streamId, record];
    },
    note(streamId, record) {
      if (isClosed) return Promise.reject(CLOSED);
      const noted = withFormer(record, get(streamId));
      unwritten.set(streamId, noted);
      highest = Math.max(highest, noted.version);
      return durably(recordLine(streamId, noted), (isWritten) => {
        if (isWritten) records.set(streamId, noted);
        if (unwritten.get(streamId) === noted) unwritten.delete(streamId);
      });
    },
    forget(streamId) {
      if (isClosed || !get(streamId)) return;
      unwritten.set(streamId, undefined);
      enqueue(forgottenLine(streamId), false, (failure) => {
        records.delete(streamId);
        if (unwritten.has(streamId) && !unwritten.get(streamId)) unwritten.delete(streamId);
        // Otherwise it would be back after a restart.
        if (failure !== undefined) isStale = true;
      });
    },
    noteHead(change) {
      if (isClosed) return Promise.reject(CLOSED);
      highest = Math.max(highest, change.highest ?? 0);
      const noted: LedgerHead = { ...(unwrittenHead ?? head), ...change, highest };
      unwrittenHead = noted;
      return durably(headLine(noted), (isWritten) => {
        if (isWritten) head = noted;
        if (unwrittenHead === noted) unwrittenHead = undefined;
      });
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await writing;
      await file.close();
    },
  };
}

async function readLines(bytes: Buffer) {
  const records = new Map<StreamId, LedgerRecord>();
  let head: LedgerHead | undefined;
  let [highest, lines, damaged, start] = [0, 0, 0, 0];
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    const line = readLine(bytes.subarray(start, end));
    start = end + 1;
    lines += 1;
    if (line === undefined) damaged += 1;
    else if (line.kind === 'head') head = line.head;
    else if (line.kind === 'forgotten') records.delete(line.streamId);
    else {
      records.set(line.streamId, line.record);
      highest = Math.max(highest, line.record.version);
    }
    if (lines % SLICE === 0) await yieldToEventLoop();
  }
  return { records, head, highest, lines, damaged };
}

/** The text of a file without outdated lines, in parts. */
function* partsOf(head: LedgerHead, records: ReadonlyMap<StreamId, LedgerRecord>): Generator<string> {
  let part = [headLine(head)];
  for (const [streamId, record] of records) {
    part.push(recordLine(streamId, record));
    if (part.length < SLICE) continue;
    yield part.join('');
    part = [];
  }
  yield part.join('');
}

/** A change that is interrupted after it was noted leaves the file before, which this tag identifies as the fleet's. */
function withFormer(record: LedgerRecord, present: LedgerRecord | undefined): LedgerRecord {
  const { version, revision, tag, kept } = record;
  const former = record.former ?? (present?.tag === tag ? undefined : present?.tag);
  return kept ? { version, revision, tag, former, kept } : { version, revision, tag, former };
}
