import type { StreamId } from '../../../api/stream-id';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { openLedgerFile } from './ledger-file';
import { forgottenLine, headLine, readLine, recordLine, recordOf } from './ledger-lines';

/** What this packager last took from the fleet of a stream. */
export interface LedgerRecord {
  /** The version of the entry. */
  readonly version: number;
  /** The engine's revision of the entry. */
  readonly revision: number;
  /** The entity tag of the key file that the fleet wants here; undefined: none, it was deleted. */
  readonly tag: string | undefined;
  /**
   * The tag of the fleet's file before, which stands there still when the change was interrupted; undefined: none, or
   * it is of no use any more.
   */
  readonly former?: string | undefined;
  /** Set when the file here is somebody else's and stays until a newer entry replaces it. */
  readonly kept?: true;
}

/** What is known of the fleet beside the streams. */
export interface LedgerHead {
  /** Names this folder among all packagers: it was drawn when the ledger was made. */
  readonly id: string;
  /** The fleet that this packager joined; undefined: none yet. */
  readonly fleet?: string;
  /**
   * Set when it has once had every key file that the fleet wanted here: the beginnings of stream ids that it took then, with
   * commas between; empty: all streams.
   */
  readonly levelled?: string;
  /** The highest version that was ever seen: that of a record, or noted here. */
  readonly highest: number;
}

/**
 * What the files in the folder are the fleet's, on disk: `<keys>/.packagerdrmapi-fleet/ledger`, without key material.
 * Held in memory as a whole; 100,000 streams take some 20 MB.
 */
export interface Ledger {
  readonly head: LedgerHead;
  get(streamId: StreamId): LedgerRecord | undefined;
  /** How many streams have a record. */
  readonly size: number;
  records(): IterableIterator<readonly [StreamId, LedgerRecord]>;
  /**
   * Notes a record, at once for readers; resolves when it would survive a power cut. Who asks while a sync is under way shares
   * the next one. Where the tag is another one than before, the one before becomes `former` if that isn't given. Rejects
   * with the system's error; readers see then the last record that is on disk, unless another one was noted since.
   */
  note(streamId: StreamId, record: LedgerRecord): Promise<void>;
  /** Forgets a record; it need not survive a power cut. */
  forget(streamId: StreamId): void;
  /** Notes what changes of the head, as `note` does. */
  noteHead(change: Partial<Omit<LedgerHead, 'id'>>): Promise<void>;
  /** Writes what is not written yet. Nothing can be noted after that. */
  close(): Promise<void>;
}

interface LedgerOptions {
  /** Answers an unguessable UUID. */
  readonly newId: () => string;
  readonly log: Log;
}

/** So many lines more than twice the records make the file be written anew. */
const SLACK_LINES = 10_000;
/** Lines that are made in about 2 ms. */
const SLICE = 1000;

/** A line that is to be written. */
interface Waiting {
  readonly line: string;
  /** The line takes effect. */
  readonly written: () => void;
  /** It does not. */
  readonly failed: (cause: unknown) => void;
  readonly sync: boolean;
}

/** A record that is in memory, and not yet on disk. */
interface Unwritten {
  /** What is on disk, as far as it is known. */
  durable: LedgerRecord | undefined;
  /** How many lines of the stream wait. */
  lines: number;
}

/**
 * Opens the ledger of a key-file folder, or makes it. What is damaged in it is told in the log, and all else is in force.
 * @throws Error in words for people when it is a link, or another process of this machine has it; the system's error.
 */
export async function openLedger(folder: string, { newId, log }: LedgerOptions): Promise<Ledger> {
  const records = new Map<StreamId, LedgerRecord>();
  const unwritten = new Map<StreamId, Unwritten>();
  let found: LedgerHead | undefined;
  let highest = 0;
  let damaged = 0;
  const { file, isLocked } = await openLedgerFile(folder, newId, (bytes) => {
    const line = readLine(bytes);
    if (line === undefined) damaged += 1;
    else if (line.kind === 'forgotten') records.delete(line.streamId);
    else if (line.kind === 'record') {
      records.set(line.streamId, line.record);
      highest = Math.max(highest, line.record.version);
    } else found = line.head;
  });
  if (damaged > 0)
    log.error('lines of the ledger of the fleet are damaged; all others are in force', { damaged });
  if (!isLocked)
    log.warn('the file system of the key files takes no lock; no second sidecar may use this folder');

  let head: LedgerHead = { ...(found ?? { id: newId() }), highest: Math.max(highest, found?.highest ?? 0) };
  let durableHead = head;
  let headLines = 0;
  let waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  /** Lines that were written since a replacement was begun. */
  let since: string[] | undefined;
  let replacing: Promise<void> | undefined;
  /** Runs when nothing is being written. */
  let finish: (() => Promise<void>) | undefined;
  let mostLines = 0;
  /** Whether the file holds a record that was forgotten. */
  let isStale = false;
  let isClosed = false;

  const setLimit = () => {
    mostLines = Math.max(2 * records.size, file.lines) + SLACK_LINES;
  };
  const write = async () => {
    // Whoever notes within this turn of the event loop shares the first sync, too.
    await Promise.resolve();
    while (waiting.length > 0 || finish) {
      const alone = finish;
      finish = undefined;
      await alone?.();
      if (waiting.length > 0) await writeBatch();
    }
    running = undefined;
  };
  const writeBatch = async () => {
    const batch = waiting;
    waiting = [];
    const lines = batch.map(({ line }) => line);
    try {
      await file.append(
        lines,
        batch.some(({ sync }) => sync),
      );
    } catch (cause) {
      for (const { failed } of batch) failed(cause);
      return;
    }
    since?.push(...lines);
    for (const { written } of batch) written();
    if (isStale || file.lines > Math.max(mostLines, 2 * records.size + SLACK_LINES)) replace();
  };
  const start = () => {
    running ??= write();
  };
  const enqueue = (entry: Waiting) => {
    waiting.push(entry);
    start();
  };

  /** Writes the file anew without what is no longer in force. Notes go on meanwhile, into the former file. */
  const writeAnew = async (alone: (finish: () => Promise<void>) => Promise<void>) => {
    since = [];
    isStale = false;
    const replacement = await file.replacement();
    try {
      await replacement.write([headLine({ ...durableHead, highest: head.highest })]);
      let lines: string[] = [];
      for (const [streamId, inMemory] of records) {
        const state = unwritten.get(streamId);
        const record = state ? state.durable : inMemory;
        if (record) lines.push(recordLine(streamId, record));
        if (lines.length < SLICE) continue;
        await replacement.write(lines);
        lines = [];
        if (isClosed) return;
      }
      await replacement.write(lines);
      await replacement.sync();
      await alone(async () => {
        await replacement.write(since ?? []);
        await replacement.finish();
      });
    } finally {
      since = undefined;
      await replacement.abandon();
    }
  };
  const replace = () => {
    const alone = (action: () => Promise<void>) =>
      new Promise<void>((resolve, reject) => {
        finish = () => action().then(resolve, reject);
        start();
      });
    replacing ??= writeAnew(alone)
      .catch((cause: unknown) =>
        log.warn('the ledger of the fleet could not be written anew; it goes on growing', {
          error: describeThrown(cause),
        }),
      )
      .finally(() => {
        replacing = undefined;
        setLimit();
      });
  };

  const stateOf = (streamId: StreamId): Unwritten => {
    const state = unwritten.get(streamId) ?? { durable: records.get(streamId), lines: 0 };
    unwritten.set(streamId, state);
    state.lines += 1;
    return state;
  };
  const settle = (streamId: StreamId, state: Unwritten, isWritten: boolean) => {
    state.lines -= 1;
    if (state.lines > 0) return;
    unwritten.delete(streamId);
    if (isWritten) return;
    if (state.durable) records.set(streamId, state.durable);
    else records.delete(streamId);
  };

  const hasSurplus = file.lines > records.size + 1 || damaged > 0;
  if (!found) await file.append([headLine(head)], true);
  if (hasSurplus)
    await writeAnew((action) => action()).catch((cause: unknown) =>
      log.warn('the ledger of the fleet could not be written anew; it goes on growing', {
        error: describeThrown(cause),
      }),
    );
  setLimit();

  return {
    get head() {
      return head;
    },
    get: (streamId) => records.get(streamId),
    get size() {
      return records.size;
    },
    records: () => records.entries(),
    note(streamId, record) {
      if (isClosed) return Promise.reject(new Error('The ledger is closed'));
      const noted = withFormer(record, records.get(streamId));
      const state = stateOf(streamId);
      records.set(streamId, noted);
      if (noted.version > head.highest) head = { ...head, highest: noted.version };
      return new Promise((resolve, reject) => {
        enqueue({
          line: recordLine(streamId, noted),
          sync: true,
          written() {
            state.durable = noted;
            settle(streamId, state, true);
            resolve();
          },
          failed(cause) {
            settle(streamId, state, false);
            reject(cause);
          },
        });
      });
    },
    forget(streamId) {
      if (isClosed || !(records.has(streamId) || unwritten.has(streamId))) return;
      const state = stateOf(streamId);
      records.delete(streamId);
      const done = (isWritten: boolean) => {
        state.durable = undefined;
        settle(streamId, state, isWritten);
      };
      enqueue({
        line: forgottenLine(streamId),
        sync: false,
        written: () => done(true),
        failed() {
          done(false);
          // Else it would be there again after a restart.
          isStale = true;
        },
      });
    },
    noteHead(change) {
      if (isClosed) return Promise.reject(new Error('The ledger is closed'));
      const noted = { ...head, ...change, highest: Math.max(head.highest, change.highest ?? 0) };
      head = noted;
      headLines += 1;
      return new Promise((resolve, reject) => {
        const done = () => {
          headLines -= 1;
          if (headLines === 0) head = { ...durableHead, highest: head.highest };
        };
        enqueue({
          line: headLine(noted),
          sync: true,
          written() {
            durableHead = noted;
            done();
            resolve();
          },
          failed(cause) {
            done();
            reject(cause);
          },
        });
      });
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      while (running || replacing) await (running ?? replacing);
      await file.close();
    },
  };
}

/** A change that is interrupted after it was noted leaves the file before: it is known as the fleet's by its tag. */
function withFormer(record: LedgerRecord, present: LedgerRecord | undefined): LedgerRecord {
  const { version, revision, tag, kept } = record;
  const former = record.former ?? (present?.tag === tag ? undefined : present?.tag);
  return recordOf(version, revision, tag, former, kept === true);
}
