import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { parseStreamId, type StreamId } from '../../../api/stream-id';
import type { LedgerHead, LedgerRecord } from './ledger';

/** What a line of the ledger says. The last line of a stream, and the last head, are in force. */
export type LedgerLine =
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

/** `[stream]`. */
export function forgottenLine(streamId: StreamId): string {
  return summed([streamId]);
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
  const fields = fieldsOf(json);
  if (fields === undefined) return undefined;
  return typeof fields[0] === 'string' ? readRecord(fields) : readHead(fields);
}

function fieldsOf(json: Buffer): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(json.toString());
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
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
  if (version === undefined) return { kind: 'forgotten', streamId: streamId.value };
  if (!isWhole(version) || !isWhole(revision) || !isTag(tag) || !isTag(former)) return undefined;
  const record = recordOf(version, revision, tag ?? undefined, former ?? undefined, kept === 1);
  return { kind: 'record', streamId: streamId.value, record };
}

/** Makes all records alike, which takes least memory. */
export function recordOf(
  version: number,
  revision: number,
  tag: string | undefined,
  former: string | undefined,
  kept: boolean,
): LedgerRecord {
  return kept ? { version, revision, tag, former, kept } : { version, revision, tag, former };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isTag(value: unknown): value is string | null | undefined {
  return typeof value === 'string' || value === null || value === undefined;
}
