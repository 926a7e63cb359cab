import { createHash, hash } from 'node:crypto';
import type { Problem } from './finding';

/** The value, or its fault; the description continues the name of the checked value. */
export type Checked<T> = { ok: true; value: T } | { ok: false; problem: Problem };

export function refused(code: string, description: string): { ok: false; problem: Problem } {
  return { ok: false, problem: { code, description } };
}

export function refusedAs(code: string): (description: string) => ReturnType<typeof refused> {
  return (description) => refused(code, description);
}

const HEX = /^[0-9a-fA-F]*$/;
const UUID = /^\{?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\}?$/;

/** Decodes base64 strictly (RFC 4648 § 4); `Buffer.from` would silently write another key than the one meant. */
export function decodeBase64(text: string): Checked<Buffer> {
  if (text === '') return refused('empty', 'is empty');
  if (/\s/.test(text)) return refused('white_space', 'holds white space; send base64 in one piece');
  if (/[-_]/.test(text) && /^[A-Za-z0-9_=-]*$/.test(text)) {
    return refused('base64url', 'is base64url; send standard base64 (+ and / for - and _, padded with =)');
  }
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return refused('not_base64', 'is not base64');
  const cut = 'is not complete base64: its length is not a multiple of 4; look for missing padding (=)';
  if (text.length % 4 !== 0) return refused('padding_missing', cut);
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text)
    return refused('not_canonical', 'is not canonical base64: bits are set after its last byte');
  return { ok: true, value: bytes };
}

/** All valid texts; after the 21st digit come four bits of zeros and the padding. */
const BASE64_OF_16 = /^[A-Za-z0-9+/]{21}[AQgw]==$/;

/** Decodes base64 of exactly 16 bytes (a key id or an AES-128 key). Hex and UUIDs are reported, never converted. */
export function decodeBase64Block(text: string): Checked<Buffer> {
  if (BASE64_OF_16.test(text)) return { ok: true, value: Buffer.from(text, 'base64') };
  if (UUID.test(text))
    return refused('uuid_for_base64', 'is a UUID; send the base64 of its 16 bytes, big endian');
  if (text.length === 32 && HEX.test(text))
    return refused('hex_for_base64', 'looks like hex; send the base64 of the 16 bytes');
  const decoded = decodeBase64(text);
  if (!decoded.ok) return decoded;
  return refused('wrong_length', `decodes to ${decoded.value.length} bytes; it must be base64 of 16 bytes`);
}

export function decodeHexBlock(text: string): Checked<Buffer> {
  if (text.length === 32 && HEX.test(text)) return { ok: true, value: Buffer.from(text, 'hex') };
  if (text === '') return refused('empty', 'is empty');
  if (/^0x/i.test(text)) return refused('separators', 'starts with 0x; send only the 32 hex digits');
  if (UUID.test(text)) return refused('uuid_for_hex', 'is a UUID; send its 32 hex digits without dashes');
  if (/\s/.test(text))
    return refused('white_space', 'holds white space; send the 32 hex digits in one piece');
  if (/^[0-9a-fA-F]{2}([:. -][0-9a-fA-F]{2})+$/.test(text))
    return refused('separators', 'has separators; send only the 32 hex digits');
  if (!HEX.test(text)) {
    const base64 = decodeBase64(text);
    if (base64.ok && base64.value.length === 16)
      return refused('base64_for_hex', 'looks like base64; send 32 hex digits');
    return refused('not_hex', 'is not hex; send 32 hex digits');
  }
  return refused('wrong_length', `has ${text.length} hex digits; it must have 32 (16 bytes)`);
}

/** Changes a 16-byte key id between big endian (RFC 4122) and PlayReady's GUID order. It is its own inverse. */
export function swapKeyIdOrder(keyId: Uint8Array): Buffer {
  const [a, b, c, d, e, f, g, h, ...rest] = keyId;
  return Buffer.from([d, c, b, a, f, e, h, g, ...rest] as number[]);
}

export function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

export function isAmong(bytes: Uint8Array, list: readonly Buffer[]): boolean {
  return list.some((one) => one.equals(bytes));
}

export const ZERO_KEY_ID = 'is all zeros; give the key its own id';

/** Whether 16 bytes are the text of 16 hex digits: the text was used in place of the bytes that it encodes. */
export function isHexText(bytes: Uint8Array): boolean {
  return /^[0-9a-fA-F]{16}$/.test(Buffer.from(bytes).toString('latin1'));
}

export const HEX_TEXT =
  'is 16 hex digits as text, which a random value never is; ask its source whether it encoded the hex digits ' +
  'in place of the bytes';

/** Whether 16 bytes read as a random (version 4) UUID, big endian. */
export function isRandomUuid(bytes: Buffer): boolean {
  return isUuidOfVersion(4, bytes);
}

function isUuidOfVersion(version: number, bytes: Buffer): boolean {
  return bytes.length === 16 && bytes.readUInt8(6) >> 4 === version && bytes.readUInt8(8) >> 6 === 2;
}

/** The version 5 UUID of a name in a namespace (RFC 9562 § 5.5), big endian. */
export function uuidOfName(namespace: Uint8Array, name: string): Buffer {
  const uuid = createHash('sha1').update(namespace).update(name, 'utf8').digest().subarray(0, 16);
  uuid.writeUInt8((uuid.readUInt8(6) & 0x0f) | 0x50, 6);
  uuid.writeUInt8((uuid.readUInt8(8) & 0x3f) | 0x80, 8);
  return uuid;
}

/** Whether a key id reads as random in the other byte order alone. Ids made of a name do so by chance: one in sixteen. */
export function looksSwapped(keyId: Buffer): boolean {
  return ![4, 5].some((version) => isUuidOfVersion(version, keyId)) && isRandomUuid(swapKeyIdOrder(keyId));
}

export const BYTE_ORDER_SUSPECTED =
  "is a random (version 4) UUID only with bytes 0-3, 4-5 and 6-7 reversed: it may be in PlayReady's byte order " +
  'instead of big endian, or the reverse';

/** A big-endian key id as the usual 8-4-4-4-12 lower-case text. */
export function formatUuid(keyId: Uint8Array): string {
  const hex = Buffer.from(keyId.buffer, keyId.byteOffset, keyId.length).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function formsOfBytes(bytes: Buffer): string[] {
  const base64 = bytes.toString('base64');
  const unpadded = base64.replace(/=+$/, '');
  return [
    base64,
    encodeURIComponent(base64),
    unpadded,
    encodeURIComponent(unpadded),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    ...(bytes.length === 16 ? [formatUuid(bytes)] : []),
  ];
}

/** Text in UTF-16LE, without half a character at its end: with one, Node 24 writes past its memory at odd addresses. */
export function utf16Text(bytes: Buffer): string {
  return bytes.toString('utf16le', 0, bytes.length - (bytes.length % 2));
}

export function containsBytes(text: string, bytes: Buffer): boolean {
  const lower = text.toLowerCase();
  return formsOfBytes(bytes).some((form) => lower.includes(form.toLowerCase()));
}

/** The 16 bytes of a UUID's text, big endian. */
export function parseUuid(text: string): Checked<Buffer> {
  if (!UUID.test(text)) return refused('not_uuid', 'is not a UUID (8-4-4-4-12 hex digits)');
  return { ok: true, value: Buffer.from(text.replaceAll(/[{}-]/g, ''), 'hex') };
}

export function groupedBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a field is there; `null` counts as left out. */
export function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined;
}

/** Undefined: the text is no JSON. */
export function parseJson(text: string, revive?: Parameters<typeof JSON.parse>[1]): unknown {
  try {
    return JSON.parse(text, revive);
  } catch {
    return undefined;
  }
}

/** The strong entity tag of some bytes, quotes included: it changes with every byte, and with nothing else. */
export function etagOf(bytes: Buffer): string {
  return `"${hash('sha256', bytes, 'base64url').slice(0, 27)}"`;
}

/** Whether the value of `If-Match` has an entity tag, or is `*`, by strong comparison (RFC 9110 § 8.8.3.2). */
export function isStrongMatch(header: string, etag: string): boolean {
  const tags = header.split(',').map((tag) => tag.trim());
  return header.trim() === '*' || tags.includes(etag);
}
