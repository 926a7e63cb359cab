import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { parseStreamId, type StreamId } from '../../../api/stream-id';
import { etagOf, parseJson } from '../../../drm/bytes';
import { describeThrown } from '../../../http/errors';
import { type KeyFileStore, queueByName } from '../../storage/key-file-store';
import type { FleetHooks } from '../fleet';
import { openLedgerFile } from './ledger-file';

/**
 * `<keys>/.packagerdrmapi-fleet/ledger`: which files are the fleet's, without key material. Lines are
 * appended; the last one of a stream counts. In memory 100,000 streams take some 20 MB.
 */
export type Ledger = Awaited<ReturnType<typeof openLedger>>;

export interface LedgerRecord {
  readonly version: number;
  /** The engine's revision of the entry. */
  readonly revision: number;
  /** The entity tag of the key file that the fleet wants here; undefined: the stream was deleted. */
  readonly tag: string | undefined;
  /** The tag of the fleet's file before, which is still there if the change was interrupted. */
  readonly former?: string | undefined;
  /** The file here is not the fleet's, and stays until a newer entry replaces it. */
  readonly kept?: true;
}

export interface LedgerHead {
  /** Identifies this folder among all packagers; drawn when the ledger was created. */
  readonly id: string;
  readonly fleet?: string;
  /** Stream-id prefixes, with commas, of which it once had every key file; empty: all streams; undefined: never. */
  readonly levelled?: string;
  /** The highest version ever seen. */
  readonly highest: number;
}

type Hooks = Pick<FleetHooks, 'newId' | 'log'>;

interface Waiting {
  readonly line: string;
  /** Called when the line is durable, or with the system's error. */
  readonly done: (failure?: { readonly thrown: unknown } | undefined) => void;
}

/** It is rewritten at so many lines more than records. Damaged ones are logged and skipped. @throws as `openLedgerFile`. */
export async function openLedger(folder: string, { newId, log }: Hooks, slackLines = 10_000) {
  const file = await openLedgerFile(folder, newId);
  const { records, found, lines, damaged, highest: highestFound } = readLines(file.found);
  let head: Omit<LedgerHead, 'highest'> = found ?? { id: newId() };
  let highest = highestFound;
  if (damaged > 0) log.error('lines of the ledger of the fleet are damaged and ignored', { damaged });
  if (!file.isLocked)
    log.warn('the file system of the key files supports no lock; no second sidecar may use this folder');

  /** Lines since the file was last rewritten, or could not be. */
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
      if (appended > records.size + slackLines) await rewrite();
    }
    writing = undefined;
  };

  const durably = async (line: string, takeOver: () => void): Promise<void> => {
    if (isClosed) throw new Error('The ledger is closed');
    await new Promise<void>((resolve, reject) => {
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
     * Resolves, and `get` shows the record, when it survives a power cut. If the tag changes, the previous one becomes
     * `former`. After the system's error the record before stays. Calls during a sync share the next one; the caller
     * notes the records of one stream one after the other.
     */
    note(streamId: StreamId, record: LedgerRecord): Promise<void> {
      const noted = withFormer(record, records.get(streamId));
      return durably(recordLine(streamId, noted), () => {
        records.set(streamId, noted);
        highest = Math.max(highest, noted.version);
      });
    },
    /** The record is back after a restart, unless the file was rewritten since. */
    forget: (streamId: StreamId): void => void records.delete(streamId),
    /** Resolves and rejects as `note` does. */
    noteHead: (change: Partial<Omit<LedgerHead, 'id'>>) =>
      inTurn('head', () => {
        highest = Math.max(highest, change.highest ?? 0);
        const noted = { ...head, ...change };
        return durably(headLine({ ...noted, highest }), () => {
          head = noted;
        });
      }),
    /** Writes waiting lines. Later notes are refused. */
    async close(): Promise<void> {
      if (isClosed) return;
      isClosed = true;
      await writing;
      await file.close();
    },
  };
}

/** An interrupted change leaves the former file, which this tag identifies as the fleet's. */
function withFormer(record: LedgerRecord, present: LedgerRecord | undefined): LedgerRecord {
  const former = record.former ?? (present?.tag === record.tag ? undefined : present?.tag);
  return { ...record, former };
}

/** `[1, id, highest, fleet, levelled]`; 1 is the format of the whole file. */
const FORMAT = 1;
const headFields = z.tuple([
  z.literal(FORMAT),
  z.string().min(1),
  z.int().min(0),
  z.string().nullable(),
  z.string().nullable(),
]);

function headLine({ id, highest, fleet, levelled }: LedgerHead): string {
  return summed([FORMAT, id, highest, fleet ?? null, levelled ?? null]);
}

/** `[stream, version, revision, tag, former, kept]`, without absent values at the end. */
function recordLine(streamId: StreamId, { version, revision, tag, former, kept }: LedgerRecord): string {
  const fields = [streamId, version, revision, tag ?? null, former ?? null, kept ? 1 : 0];
  if (!kept) fields.length = former === undefined ? 4 : 5;
  return summed(fields);
}

/** The CRC-32 of the JSON comes before it, in hex: a disk may lose or turn single bytes. */
function summed(fields: readonly unknown[]): string {
  const json = JSON.stringify(fields);
  return `${sumOf(json)} ${json}\n`;
}

function sumOf(json: string | Buffer): string {
  return crc32(json).toString(16).padStart(8, '0');
}

const NEWLINE = 0x0a;

function readLines(bytes: Buffer) {
  const records = new Map<StreamId, LedgerRecord>();
  let found: LedgerHead | undefined;
  let [highest, lines, damaged, start] = [0, 0, 0, 0];
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    const fields = readLine(bytes.subarray(start, end));
    const streamId = fields && streamIdIn(fields);
    const head = fields && streamId === undefined ? headFields.safeParse(fields).data : undefined;
    const record = fields && readRecord(fields);
    start = end + 1;
    lines += 1;
    if (head) {
      const [, id, seen, fleet, levelled] = head;
      found = { id, highest: seen, ...(fleet !== null && { fleet }), ...(levelled !== null && { levelled }) };
      highest = Math.max(highest, seen);
    } else if (streamId !== undefined && record) {
      records.set(streamId, record);
      highest = Math.max(highest, record.version);
      // Former releases wrote `[stream]` to forget a record.
    } else if (streamId !== undefined && fields?.length === 1) records.delete(streamId);
    else damaged += 1;
  }
  return { records, found, highest, lines, damaged };
}

/** Undefined: the line is damaged. */
function readLine(line: Buffer): readonly unknown[] | undefined {
  const [sum, json] = [line.toString('latin1', 0, 9), line.subarray(9)];
  const fields = sum === `${sumOf(json)} ` ? parseJson(json.toString()) : undefined;
  return Array.isArray(fields) ? fields : undefined;
}

function streamIdIn([stream]: readonly unknown[]): StreamId | undefined {
  const parsed = parseStreamId(typeof stream === 'string' ? stream : '');
  return parsed.ok ? parsed.value : undefined;
}

/** Without a schema: there are a hundred thousand at a start. */
function readRecord(fields: readonly unknown[]): LedgerRecord | undefined {
  const [, version, revision, tag, former, kept] = fields;
  if (!isWhole(version) || !isWhole(revision) || !isTag(tag) || !isTag(former)) return undefined;
  // All records have the same fields in the same order: that takes the least memory.
  const record = { version, revision, tag: tag ?? undefined, former: former ?? undefined };
  return kept === 1 ? { ...record, kept: true } : record;
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isTag(value: unknown): value is string | null | undefined {
  return typeof value === 'string' || value === null || value === undefined;
}

/** Checks the next `count` files at each call. Returns the streams whose files were removed, edited or made by hand. */
export function createFolderCheck(
  { records }: Pick<Ledger, 'records'>,
  { read }: Pick<KeyFileStore, 'read'>,
) {
  let left = records();
  return (count: number): readonly StreamId[] => {
    const found: StreamId[] = [];
    for (let step = 0; step < count; step += 1) {
      const { value, done } = left.next();
      if (done) {
        left = records();
        return found;
      }
      const [streamId, record] = value;
      try {
        if (isOther(record, read(streamId))) found.push(streamId);
      } catch {
        // The other files are checked all the same.
      }
    }
    return found;
  };
}

function isOther({ tag, kept }: LedgerRecord, bytes: Buffer | undefined): boolean {
  const present = bytes && etagOf(bytes);
  // A kept file is known not to be the fleet's: only its removal, or the fleet's content in it, is news.
  return kept ? present === undefined || present === tag : present !== tag;
}
