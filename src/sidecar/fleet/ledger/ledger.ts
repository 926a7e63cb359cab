import type { StreamId } from '../../../api/stream-id';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { queueByName } from '../../storage/key-file-store';
import { LedgerFile } from './ledger-file';
import { headLine, type LedgerHead, type LedgerRecord, readLine, recordLine } from './ledger-lines';

/**
 * Which files in the key-file folder are the fleet's: `<keys>/.packagerdrmapi-fleet/ledger`, without key material. Lines
 * are appended, and the last line of a stream counts. All records are also in memory: 100,000 streams take some 20 MB.
 */
export type Ledger = Awaited<ReturnType<typeof openLedger>>;

interface LedgerOptions {
  /** Answers an unguessable UUID. */
  readonly newId: () => string;
  readonly log: Log;
}

/** The file is rewritten when so many lines more than there are records were appended to it. */
const SLACK_LINES = 10_000;
const NEWLINE = 0x0a;

/** A line that is to be appended. */
interface Waiting {
  readonly line: string;
  /** Called when it is durable, or with the system's error. */
  readonly done: (failure?: { readonly thrown: unknown } | undefined) => void;
}

/**
 * Opens the ledger of a key-file folder, or creates it. Damaged lines are logged and skipped.
 * @throws Error with a sentence for the operator when it is a link or locked by another process; the system's error.
 */
export async function openLedger(folder: string, { newId, log }: LedgerOptions) {
  const file = await LedgerFile.open(folder, newId);
  const { records, found, lines, damaged, highest: highestFound } = readLines(file.found);
  let head: Omit<LedgerHead, 'highest'> = found ?? { id: newId() };
  let highest = highestFound;
  if (damaged > 0) log.error('lines of the ledger of the fleet are damaged and ignored', { damaged });
  if (!file.place.lock)
    log.warn('the file system of the key files supports no lock; no second sidecar may use this folder');

  /** Lines since the file was rewritten, or could not be. */
  let appended = 0;
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;
  let isClosed = false;
  const inTurn = queueByName();

  const rewrite = async (): Promise<void> => {
    appended = 0;
    const text = [
      headLine({ ...head, highest }),
      ...[...records].map(([streamId, record]) => recordLine(streamId, record)),
    ];
    await file.replace(text.join('')).catch((cause: unknown) =>
      log.warn('the ledger of the fleet could not be rewritten and continues to grow', {
        error: describeThrown(cause),
      }),
    );
  };

  const write = async (): Promise<void> => {
    // Notes of this turn of the event loop share the first sync.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      const text = batch.map(({ line }) => line).join('');
      const failure = await file.append(text).then(
        () => undefined,
        (thrown: unknown) => ({ thrown }),
      );
      for (const { done } of batch) done(failure);
      appended += batch.length;
      if (appended > records.size + SLACK_LINES) await rewrite();
    }
    writing = undefined;
  };

  /** Appends a line, and takes over what it says when it is durable. */
  const durably = (line: string, takeOver: () => void): Promise<void> => {
    if (isClosed) return Promise.reject(new Error('The ledger is closed'));
    return new Promise((resolve, reject) => {
      const done: Waiting['done'] = (failure) => {
        if (failure) return reject(failure.thrown);
        takeOver();
        resolve();
      };
      waiting.push({ line, done });
      writing ??= write();
    });
  };

  try {
    if (!found) await file.append(headLine({ ...head, highest }));
  } catch (thrown) {
    await file.close();
    throw thrown;
  }
  if (lines > records.size + 1 || damaged > 0) await rewrite();

  return {
    get head(): LedgerHead {
      return { ...head, highest };
    },
    get: (streamId: StreamId) => records.get(streamId),
    records: (): IterableIterator<readonly [StreamId, LedgerRecord]> => records.entries(),
    /**
     * Records an entry: visible, and resolved, when it survives a power cut. All calls during a sync share the next one. If
     * the tag changes, the previous one becomes `former` unless that is given. Rejects with the system's error, and then
     * the record before stays. The records of one stream are noted one after the other.
     */
    note(streamId: StreamId, record: LedgerRecord): Promise<void> {
      const noted = withFormer(record, records.get(streamId));
      return durably(recordLine(streamId, noted), () => {
        records.set(streamId, noted);
        highest = Math.max(highest, noted.version);
      });
    },
    /** Removes a record. It is back after a restart, unless the file was rewritten since. */
    forget: (streamId: StreamId): void => void records.delete(streamId),
    /** Changes the head, as `note` does with a record. */
    noteHead: (change: Partial<Omit<LedgerHead, 'id'>>) =>
      inTurn('head', () => {
        highest = Math.max(highest, change.highest ?? 0);
        const noted = { ...head, ...change };
        return durably(headLine({ ...noted, highest }), () => {
          head = noted;
        });
      }),
    /** Writes what is not written yet. Later notes are refused. */
    async close(): Promise<void> {
      if (isClosed) return;
      isClosed = true;
      await writing;
      await file.close();
    },
  };
}

function readLines(bytes: Buffer) {
  const records = new Map<StreamId, LedgerRecord>();
  let found: LedgerHead | undefined;
  let [highest, lines, damaged, start] = [0, 0, 0, 0];
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    const line = readLine(bytes.subarray(start, end));
    start = end + 1;
    lines += 1;
    if (line === undefined) damaged += 1;
    else if (line.kind === 'forgotten') records.delete(line.streamId);
    else {
      if (line.kind === 'head') found = line.head;
      else records.set(line.streamId, line.record);
      highest = Math.max(highest, line.kind === 'head' ? line.head.highest : line.record.version);
    }
  }
  return { records, found, highest, lines, damaged };
}

/** A change that is interrupted after it was noted leaves the file before, which this tag identifies as the fleet's. */
function withFormer(record: LedgerRecord, present: LedgerRecord | undefined): LedgerRecord {
  const { version, revision, tag, kept } = record;
  const former = record.former ?? (present?.tag === tag ? undefined : present?.tag);
  return kept ? { version, revision, tag, former, kept } : { version, revision, tag, former };
}
