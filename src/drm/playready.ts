import { createCipheriv } from 'node:crypto';
import { type Checked, decodeBase64, refused, refusedAs, swapKeyIdOrder } from './bytes';
import type { XmlElement } from './xml';

const malformed = refusedAs('malformed_object');

export const PLAYREADY_SYSTEM_ID = '9a04f079-9840-4286-ab92-e65be0885f95';

/**
 * The PlayReady checksum of an AESCTR key, base64: the first 8 bytes of AES-128-ECB of the key id (given big
 * endian) in GUID order under the content key (Microsoft, "PlayReady Header Specification").
 */
export function playReadyChecksum(keyId: Uint8Array, contentKey: Uint8Array): string {
  return encryptedHead(swapKeyIdOrder(keyId), contentKey);
}

export function playReadyChecksumOf(cenc: { readonly keyId: string; readonly contentKey: string }): string {
  return playReadyChecksum(Buffer.from(cenc.keyId, 'base64'), Buffer.from(cenc.contentKey, 'base64'));
}

export function decodePlayReadyChecksum(text: string): Checked<Buffer> {
  const decoded = decodeBase64(text);
  if (!decoded.ok || decoded.value.length === 8) return decoded;
  return refused('wrong_length', `decodes to ${decoded.value.length} bytes; a PlayReady checksum has 8`);
}

type ChecksumVerdict = 'match' | 'key_id_byte_order' | 'other_key';

/** Compares a checksum (base64) with the one of a key, and finds whether a key id in the wrong byte order explains it. */
export function checkPlayReadyChecksum(
  checksum: string,
  keyId: Uint8Array,
  contentKey: Uint8Array,
): ChecksumVerdict {
  if (checksum === playReadyChecksum(keyId, contentKey)) return 'match';
  return checksum === encryptedHead(keyId, contentKey) ? 'key_id_byte_order' : 'other_key';
}

function encryptedHead(block: Uint8Array, key: Uint8Array): string {
  const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  return cipher.update(block).subarray(0, 8).toString('base64');
}

/** A record of a PlayReady object; type 1 is the rights management header, UTF-16LE XML. */
interface PlayReadyRecord {
  readonly type: number;
  readonly value: Buffer;
}

/** Reads a PlayReady object: u32le total length, u16le record count, then records of u16le type, u16le length, value. */
export function parsePlayReadyObject(bytes: Uint8Array): Checked<PlayReadyRecord[]> {
  const object = Buffer.from(bytes);
  if (object.length < 6) return malformed(`is ${object.length} bytes; a PlayReady object has at least 6`);
  const total = object.readUInt32LE(0);
  if (total !== object.length) return malformed(`says it is ${total} bytes but is ${object.length}`);
  const count = object.readUInt16LE(4);
  const records: PlayReadyRecord[] = [];
  let at = 6;
  while (records.length < count) {
    if (at + 4 > object.length) return malformed(`ends before record ${records.length + 1} of ${count}`);
    const end = at + 4 + object.readUInt16LE(at + 2);
    if (end > object.length) return malformed(`ends inside record ${records.length + 1} of ${count}`);
    records.push({ type: object.readUInt16LE(at), value: object.subarray(at + 4, end) });
    at = end;
  }
  if (at !== object.length) return malformed(`has ${object.length - at} bytes after its last record`);
  return { ok: true, value: records };
}

export function buildPlayReadyObject(records: readonly PlayReadyRecord[]): Buffer {
  const parts = records.map(({ type, value }) => {
    const head = Buffer.alloc(4);
    head.writeUInt16LE(type, 0);
    head.writeUInt16LE(value.length, 2);
    return Buffer.concat([head, value]);
  });
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(6);
  head.writeUInt32LE(6 + body.length, 0);
  head.writeUInt16LE(records.length, 4);
  return Buffer.concat([head, body]);
}

/** A version 4.0.0.0 header for one AESCTR key, as an object. The key id is 16 bytes, big endian; the checksum base64. */
export function playReadyObjectOf(
  keyId: Uint8Array,
  contentKey: Uint8Array,
  licenseUrl: string,
  checksum = playReadyChecksum(keyId, contentKey),
): Buffer {
  return headerObject(
    '4.0.0.0',
    '<PROTECTINFO><KEYLEN>16</KEYLEN><ALGID>AESCTR</ALGID></PROTECTINFO>' +
      `<KID>${swapKeyIdOrder(keyId).toString('base64')}</KID>` +
      `<CHECKSUM>${checksum}</CHECKSUM>`,
    licenseUrl,
  );
}

/** A version 4.3.0.0 header for one AESCBC key, which has no checksum, as an object. */
export function playReadyCbcObjectOf(keyId: Uint8Array, licenseUrl: string): Buffer {
  const kid = swapKeyIdOrder(keyId).toString('base64');
  const keys = `<PROTECTINFO><KIDS><KID ALGID="AESCBC" VALUE="${kid}"></KID></KIDS></PROTECTINFO>`;
  return headerObject('4.3.0.0', keys, licenseUrl);
}

function headerObject(version: string, keys: string, licenseUrl: string): Buffer {
  const url = licenseUrl.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const xml =
    `<WRMHEADER xmlns="http://schemas.microsoft.com/DRM/2007/03/PlayReadyHeader" version="${version}"><DATA>` +
    `${keys}<LA_URL>${url}</LA_URL></DATA></WRMHEADER>`;
  return buildPlayReadyObject([{ type: 1, value: Buffer.from(xml, 'utf16le') }]);
}

/** A key of a PlayReady header as it stands there. `attributes` are the names of its KID's, in their order. */
export interface HeaderKey {
  readonly place: 'DATA/KID' | 'PROTECTINFO/KID' | 'PROTECTINFO/KIDS/KID';
  readonly value: string;
  readonly algorithm: string | undefined;
  readonly checksum: string | undefined;
  readonly attributes: readonly string[];
}

export function headerKeys(root: XmlElement): HeaderKey[] {
  const data = child(root, 'DATA');
  const info = child(data, 'PROTECTINFO');
  const old = children(data, 'KID').map((kid) => ({
    place: 'DATA/KID' as const,
    value: kid.text,
    algorithm: child(info, 'ALGID')?.text.trim(),
    checksum: child(data, 'CHECKSUM')?.text.trim(),
    attributes: [],
  }));
  const place = (kids: XmlElement[], where: HeaderKey['place']) =>
    kids.map(({ attributes }) => ({
      place: where,
      value: attributes.VALUE ?? '',
      algorithm: attributes.ALGID,
      checksum: attributes.CHECKSUM,
      attributes: Object.keys(attributes),
    }));
  return [
    ...old,
    ...place(children(info, 'KID'), 'PROTECTINFO/KID'),
    ...place(children(child(info, 'KIDS'), 'KID'), 'PROTECTINFO/KIDS/KID'),
  ];
}

/** The license address of a header as it stands there, white space and all; undefined where it is missing or empty. */
export function headerAddress(root: XmlElement): string | undefined {
  return child(child(root, 'DATA'), 'LA_URL')?.text || undefined;
}

export function child(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((candidate) => candidate.name === name);
}

function children(element: XmlElement | undefined, name: string): XmlElement[] {
  return element?.children.filter((candidate) => candidate.name === name) ?? [];
}
