import { FULL_BOX } from './boxes';

/** How samples of a track, or of a group of it, are encrypted: `tenc` or `seig` (ISO/IEC 23001-7 § 8.2 and § 6). */
export interface SampleProtection {
  readonly isProtected: boolean;
  /** 16 bytes, big endian. */
  readonly keyId: Buffer;
  /** 0, 8 or 16 bytes. */
  readonly ivSize: number;
  /** 16 bytes; one of 8 is followed by zeros. */
  readonly constantIv: Buffer | undefined;
  readonly pattern: { readonly crypt: number; readonly skip: number } | undefined;
}

export function readTrackEncryption(body: Buffer): SampleProtection | undefined {
  if (body.length < FULL_BOX + 20) return undefined;
  // Version 0 has no pattern: the byte is reserved.
  return readProtection(body.subarray(FULL_BOX), body.readUInt8(0) > 0);
}

/** Reads the common part of `tenc` and an entry of `seig`, given from the reserved byte on. */
function readProtection(bytes: Buffer, hasPattern: boolean): SampleProtection | undefined {
  if (bytes.length < 20) return undefined;
  const pattern = { crypt: bytes.readUInt8(1) >> 4, skip: bytes.readUInt8(1) & 15 };
  const isProtected = bytes.readUInt8(2) === 1;
  const ivSize = bytes.readUInt8(3);
  const length = isProtected && ivSize === 0 ? (bytes[20] ?? 0) : 0;
  const iv = bytes.subarray(21, 21 + length);
  return {
    isProtected,
    keyId: bytes.subarray(4, 20),
    ivSize,
    constantIv: iv.length === 8 || iv.length === 16 ? padIv(iv) : undefined,
    // Blocks that are all encrypted, and 0:0 of whole samples, are no pattern.
    pattern: hasPattern && pattern.crypt > 0 && pattern.skip > 0 ? pattern : undefined,
  };
}

/** An IV of 8 bytes is the upper half of the counter (ISO/IEC 23001-7 § 9.2). */
export function padIv(iv: Buffer): Buffer {
  return iv.length === 16 ? iv : Buffer.concat([iv, Buffer.alloc(16)], 16);
}

/** No box has as many. */
const MAX_GROUPS = 1000;

/** The entries of a box `sgpd`, given from its version on, where it is of keys (`seig`, ISO/IEC 23001-7 § 6). */
export function readKeyGroups(body: Buffer): SampleProtection[] {
  if (body.length < 16 || body.toString('latin1', 4, 8) !== 'seig') return [];
  const version = body.readUInt8(0);
  const counted = version === 0 ? 8 : 12;
  const count = Math.min(body.readUInt32BE(counted), MAX_GROUPS);
  const fixed = version === 1 ? body.readUInt32BE(8) : 0;
  const groups: SampleProtection[] = [];
  for (let at = counted + 4; groups.length < count; ) {
    const hasLength = version === 1 && fixed === 0;
    const entry = body.subarray(hasLength ? at + 4 : at);
    const protection = readProtection(entry, true);
    if (!protection) break;
    groups.push(protection);
    const { isProtected, ivSize } = protection;
    const own = 20 + (isProtected && ivSize === 0 ? 1 + (entry[20] ?? 0) : 0);
    const length = hasLength ? body.readUInt32BE(at) : fixed || own;
    at += Math.max(20, length) + (hasLength ? 4 : 0);
  }
  return groups;
}
