import { type Checked, formatUuid, parseUuid, refusedAs } from './bytes';

const malformed = refusedAs('malformed_box');

/** A `pssh` box (ISO/IEC 23001-7 § 8.1). Version 1 lists key ids, 16 bytes each, big endian. */
export interface PsshBox {
  readonly version: 0 | 1;
  readonly systemId: string;
  readonly keyIds: readonly Buffer[];
  readonly data: Buffer;
}

/** The W3C common system id: a version 1 box that any key system may read. */
export const COMMON_SYSTEM_ID = '1077efec-c0b2-4d02-ace3-3c1e52e2fb4b';

export function looksLikePsshBox(bytes: Uint8Array): boolean {
  return bytes.length >= 8 && Buffer.from(bytes.subarray(4, 8)).toString('latin1') === 'pssh';
}

/** Of boxes one after another, the one of a system; all the bytes where that is not exactly one. `systemId` is a UUID's text. */
export function boxOfSystem(bytes: Buffer, systemId: string): Buffer {
  const own: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at);
    const box = looksLikePsshBox(rest) ? rest.subarray(0, rest.readUInt32BE(0)) : rest;
    const parsed = parsePsshBox(box);
    if (!parsed.ok) return bytes;
    if (parsed.value.systemId === systemId) own.push(box);
    at += box.length;
  }
  return own.length === 1 && own[0] ? own[0] : bytes;
}

/** Reads one box. Its size must be that of the bytes: a box cut short or followed by more is refused. */
export function parsePsshBox(bytes: Uint8Array): Checked<PsshBox> {
  const box = Buffer.from(bytes);
  if (!looksLikePsshBox(box)) return malformed('is not a pssh box');
  if (box.length < 32) return malformed(`is a pssh box cut short: ${box.length} bytes`);
  const size = box.readUInt32BE(0);
  if (size !== box.length)
    return malformed(`is a pssh box that says it is ${size} bytes but is ${box.length}`);
  const version = box.readUInt8(8);
  if (version !== 0 && version !== 1) return malformed(`is a pssh box of version ${version}; 0 and 1 exist`);
  const count = version === 1 ? box.readUInt32BE(28) : 0;
  const at = version === 1 ? 32 + 16 * count : 28;
  if (at + 4 > box.length) return malformed(`is a pssh box that ends before its ${count} key ids do`);
  const keyIds = Array.from({ length: count }, (_, index) => box.subarray(32 + 16 * index, 48 + 16 * index));
  const dataSize = box.readUInt32BE(at);
  if (at + 4 + dataSize !== box.length) {
    return malformed(`is a pssh box whose data should be ${dataSize} bytes but is ${box.length - at - 4}`);
  }
  const value = {
    version,
    systemId: formatUuid(box.subarray(12, 28)),
    keyIds,
    data: box.subarray(at + 4),
  } as const;
  return { ok: true, value };
}

/** Writes a box: version 1 when there are key ids, else version 0. `systemId` is a UUID's text. */
export function buildPsshBox(systemId: string, data: Uint8Array, keyIds: readonly Uint8Array[] = []): Buffer {
  const id = parseUuid(systemId);
  if (!id.ok) throw new TypeError(`The system id ${id.problem.description}`);
  const version = keyIds.length > 0 ? 1 : 0;
  const ids = version === 1 ? [u32(keyIds.length), ...keyIds] : [];
  const body = Buffer.concat([
    Buffer.from('pssh'),
    u32(version << 24),
    id.value,
    ...ids,
    u32(data.length),
    data,
  ]);
  return Buffer.concat([u32(body.length + 4), body]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
