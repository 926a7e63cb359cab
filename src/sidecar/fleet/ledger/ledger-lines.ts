import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { parseStreamId, type StreamId } from '../../../api/stream-id';
import { parseJson } from '../../../drm/bytes';

/** What this packager last took from the fleet of a stream. */
export interface LedgerRecord {
  /** The version of the entry. */
  readonly version: number;
  /** The engine's revision of the entry. */
  readonly revision: number;
  /** The entity tag of the key file that the fleet wants here; undefined: none, the stream was deleted. */
  readonly tag: string | undefined;
  /** The tag of the fleet's file before, which is still there if the change was interrupted. */
  readonly former?: string | undefined;
  /** The file here is not the fleet's, and stays until a newer entry replaces it. */
  readonly kept?: true;
}

/** What this packager knows of the fleet apart from the streams. */
export interface LedgerHead {
  /** Identifies this folder among all packagers; drawn when the ledger was created. */
  readonly id: string;
  /** The fleet that this packager joined; undefined: none yet. */
  readonly fleet?: string;
  /**
   * The stream-id prefixes, separated by commas, for which the packager has once had every key file; empty: all streams;
   * undefined: it never had.
   */
  readonly levelled?: string;
  /** The highest version that was ever seen. */
  readonly highest: number;
}

/** One line of the ledger. The last line of a stream, and the last head, are in force. */
type LedgerLine =
  | { readonly kind: 'head'; readonly head: LedgerHead }
  | { readonly kind: 'record'; readonly streamId: StreamId; readonly record: LedgerRecord }
  | { readonly kind: 'forgotten'; readonly streamId: StreamId };

/** `[1, id, highest, fleet, levelled]`; 1 is the format of the whole file. */
const FORMAT = 1;
/** Between the checksum and the rest of a line. */
const SPACE = 0x20;
const SUM_CHARACTERS = 8;

const whole = z.int().min(0);
const headFields = z.tuple([
  z.literal(FORMAT),
  z.string().min(1),
  whole,
  z.string().nullable(),
  z.string().nullable(),
]);

export function headLine({ id, highest, fleet, levelled }: LedgerHead): string {
  return summed([FORMAT, id, highest, fleet ?? null, levelled ?? null]);
}

/** `[stream, version, revision, tag, former, kept]`, without what is absent at its end. */
export function recordLine(
  streamId: StreamId,
  { version, revision, tag, former, kept }: LedgerRecord,
): string {
  const fields = [streamId, version, revision, tag ?? null, former ?? null, kept ? 1 : 0];
  if (!kept) fields.length = former === undefined ? 4 : 5;
  return summed(fields);
}

/** A line with the CRC-32 of its JSON before it, in hex: a disk may lose or turn single bytes. */
function summed(fields: readonly unknown[]): string {
  const json = JSON.stringify(fields);
  return `${crc32(json).toString(16).padStart(SUM_CHARACTERS, '0')} ${json}\n`;
}

/** Reads a line without its end; undefined: it is damaged. */
export function readLine(line: Buffer): LedgerLine | undefined {
  if (line[SUM_CHARACTERS] !== SPACE) return undefined;
  const json = line.subarray(SUM_CHARACTERS + 1);
  if (line.toString('latin1', 0, SUM_CHARACTERS) !== crc32(json).toString(16).padStart(SUM_CHARACTERS, '0'))
    return undefined;
  const fields = parseJson(json.toString());
  if (!Array.isArray(fields)) return undefined;
  return typeof fields[0] === 'string' ? readRecord(fields) : readHead(fields);
}

function readHead(fields: readonly unknown[]): LedgerLine | undefined {
  const read = headFields.safeParse(fields);
  if (!read.success) return undefined;
  const [, id, highest, fleet, levelled] = read.data;
  return {
    kind: 'head',
    head: { id, highest, ...(fleet !== null && { fleet }), ...(levelled !== null && { levelled }) },
  };
}

/** Without a schema: there are a hundred thousand at a start. */
function readRecord([stream, version, revision, tag, former, kept]: readonly unknown[]):
  | LedgerLine
  | undefined {
  const streamId = parseStreamId(String(stream));
  if (!streamId.ok) return undefined;
  // `[stream]`, which former releases wrote.
  if (version === undefined) return { kind: 'forgotten', streamId: streamId.value };
  if (!isWhole(version) || !isWhole(revision) || !isTag(tag) || !isTag(former)) return undefined;
  // All records have the same fields in the same order: that takes the least memory.
  const record = { version, revision, tag: tag ?? undefined, former: former ?? undefined };
  return {
    kind: 'record',
    streamId: streamId.value,
    record: kept === 1 ? { ...record, kept: true } : record,
  };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isTag(value: unknown): value is string | null | undefined {
  return typeof value === 'string' || value === null || value === undefined;
}
