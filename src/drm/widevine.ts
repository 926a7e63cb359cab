import {
  BYTE_ORDER_SUSPECTED,
  type Checked,
  decodeBase64,
  isZero,
  looksSwapped,
  refused,
  refusedAs,
  ZERO_KEY_ID,
} from './bytes';
import { error, type Finding, warning } from './finding';
import { boxOfSystem, looksLikePsshBox, parsePsshBox } from './pssh';

export const WIDEVINE_SYSTEM_ID = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';

/** The four schemes of ISO/IEC 23001-7, by the number that Widevine's field 9 carries: the four characters as u32be. */
export const PROTECTION_SCHEMES = {
  cenc: 0x63656e63,
  cens: 0x63656e73,
  cbc1: 0x63626331,
  cbcs: 0x63626373,
} as const;
export type ProtectionScheme = keyof typeof PROTECTION_SCHEMES;

/** The data of a Widevine `pssh` box (its `WidevinePsshData` message). Key ids are 16 bytes, big endian. */
export interface WidevinePsshData {
  readonly algorithm?: number | undefined;
  readonly keyIds: readonly Buffer[];
  readonly provider?: string | undefined;
  readonly contentId?: Buffer | undefined;
  readonly trackType?: string | undefined;
  readonly policy?: string | undefined;
  readonly cryptoPeriodIndex?: number | undefined;
  readonly groupedLicense?: Buffer | undefined;
  /** The four characters as a big-endian number; `schemeName` reads it. */
  readonly protectionScheme?: number | undefined;
  readonly cryptoPeriodSeconds?: number | undefined;
}

const FIELDS: readonly (
  | readonly [name: keyof WidevinePsshData, type: 'number' | 'text' | 'bytes']
  | undefined
)[] = [
  undefined,
  ['algorithm', 'number'],
  ['keyIds', 'bytes'],
  ['provider', 'text'],
  ['contentId', 'bytes'],
  ['trackType', 'text'],
  ['policy', 'text'],
  ['cryptoPeriodIndex', 'number'],
  ['groupedLicense', 'bytes'],
  ['protectionScheme', 'number'],
  ['cryptoPeriodSeconds', 'number'],
];

/** Key ids by the dozen have a tenth of it. */
export const MAX_PSSH_CHARACTERS = 16 * 1024;

/** Reads Widevine PSSH data. Fields that newer packagers add are passed over; a known field of another type is a fault. */
export function parseWidevinePsshData(bytes: Uint8Array): Checked<WidevinePsshData> {
  if (bytes.length === 0) return malformed('holds no Widevine PSSH data: it is empty');
  const message = parseProtobuf(bytes);
  if (!message.ok) return notWidevine(message.problem.description);
  const keyIds: Buffer[] = [];
  const read: Record<string, number | string | Buffer> = {};
  for (const { number, wireType, varint = 0, bytes: value } of message.value) {
    const [name, type] = FIELDS[number] ?? [];
    if (name === undefined) continue;
    if (wireType !== (type === 'number' ? 0 : 2))
      return notWidevine(`its field ${number} is of another type`);
    if (name !== 'keyIds')
      read[name] = type === 'number' ? varint : type === 'text' ? value.toString('utf8') : value;
    else if (value.length === 16) keyIds.push(value);
    else return malformed(`names a key id of ${value.length} bytes; key ids have 16`);
  }
  if (keyIds.length === 0 && Object.keys(read).length === 0) return notWidevine('it has none of its fields');
  return { ok: true, value: { ...read, keyIds } };
}

export function buildWidevinePsshData(data: WidevinePsshData): Buffer {
  const fields = FIELDS.flatMap((field, number) =>
    [field && data[field[0]]]
      .flat()
      .map((value) => encodeField(number, typeof value === 'string' ? Buffer.from(value) : value)),
  );
  return Buffer.concat(fields);
}

interface ReadPsshData {
  readonly payload: string;
  readonly data: WidevinePsshData;
  readonly unwrapped: boolean;
}

/** Reads a key file's Widevine value: base64 of the payload. A box of Widevine is unwrapped, another is a fault. */
export function readWidevinePsshData(text: string): Checked<ReadPsshData> {
  // Before decoding: it is copied and compared several times before it is in a key file.
  if (text.length > MAX_PSSH_CHARACTERS)
    return refused('too_long', `is longer than ${MAX_PSSH_CHARACTERS} characters`);
  const bytes = decodeBase64(text);
  if (!bytes.ok) return bytes;
  // A content id may spell `pssh` where a box has its type; but no payload starts with a zero byte, and a box's size does.
  if (bytes.value[0] !== 0 || !looksLikePsshBox(bytes.value)) {
    const data = parseWidevinePsshData(bytes.value);
    return data.ok ? { ok: true, value: { payload: text, data: data.value, unwrapped: false } } : data;
  }
  const box = parsePsshBox(boxOfSystem(bytes.value, WIDEVINE_SYSTEM_ID));
  if (!box.ok) return box;
  const ofOther = `is a pssh box of system ${box.value.systemId}, not of Widevine (${WIDEVINE_SYSTEM_ID})`;
  if (box.value.systemId !== WIDEVINE_SYSTEM_ID) return refused('box_of_other_system', ofOther);
  const data = parseWidevinePsshData(box.value.data);
  const payload = box.value.data.toString('base64');
  return data.ok ? { ok: true, value: { payload, data: data.value, unwrapped: true } } : data;
}

/** The payload, in base64, for one key id and content id. */
export function widevinePsshDataOf(
  keyId: Buffer,
  contentId: string | undefined,
  scheme: ProtectionScheme = 'cenc',
): string {
  return buildWidevinePsshData({
    keyIds: [keyId],
    ...(contentId === undefined ? {} : { contentId: Buffer.from(contentId, 'utf8') }),
    protectionScheme: PROTECTION_SCHEMES[scheme],
  }).toString('base64');
}

export function schemeName(scheme: number | undefined): ProtectionScheme | undefined {
  const names = Object.keys(PROTECTION_SCHEMES) as ProtectionScheme[];
  return names.find((name) => PROTECTION_SCHEMES[name] === scheme);
}

/** Faults of Widevine PSSH data by itself; `at` is the field that holds it, `''` where it stands alone. */
export function widevineFindings(data: WidevinePsshData, at: string): Finding[] {
  const { keyIds, contentId } = data;
  const name = (field: string) => (at === '' ? field : `${at}.${field}`);
  const findings = [
    ...keyIds.flatMap((keyId, index) => keyIdFindings(keyId, name(nameOfKeyId(data, index)))),
    ...(contentId ? contentIdFindings(contentId, name('content_id')) : []),
    ...schemeFindings(data, name('protection_scheme')),
  ];
  if (keyIds.length === 0 && (contentId === undefined || contentId.length === 0)) {
    const description =
      'names neither a key id nor a content id, by which license servers find the key; add one';
    findings.push(warning('names_nothing', at === '' ? { called: 'The data' } : at, description));
  }
  return findings;
}

export function nameOfKeyId({ keyIds }: WidevinePsshData, index: number): string {
  return `key_id${keyIds.length > 1 ? `[${index}]` : ''}`;
}

function keyIdFindings(keyId: Buffer, at: string): Finding[] {
  if (isZero(keyId)) return [error('all_zero', at, ZERO_KEY_ID)];
  return looksSwapped(keyId) ? [warning('key_id_byte_order_suspected', at, BYTE_ORDER_SUSPECTED)] : [];
}

function schemeFindings({ algorithm, protectionScheme }: WidevinePsshData, at: string): Finding[] {
  if (protectionScheme === undefined) return [];
  const known = schemeName(protectionScheme);
  if (known === undefined)
    return [error('unknown_scheme', at, 'is not cenc, cens, cbc1 or cbcs; write one as a big-endian number')];
  if (known === 'cens' || known === 'cbc1')
    return [warning('unsupported_scheme', at, `is ${known}, which the packager does not accept; use cenc`)];
  if (known !== 'cbcs' || algorithm !== 1) return [];
  return [warning('scheme_mismatch', at, 'is cbcs, but the algorithm says AESCTR; leave the algorithm out')];
}

/** A content id that was encoded once more than the license server expects is another content id to it. */
function contentIdFindings(contentId: Buffer, at: string): Finding[] {
  const text = contentId.toString('latin1');
  if (contentId.length === 0) return [warning('empty', at, 'is empty; leave it out or give one')];
  const isBase64 = /^[A-Za-z0-9+/]+={1,2}$/.test(text) && text.length % 4 === 0;
  if (!isBase64 && !/^(?:[0-9a-fA-F]{2}){6,}$/.test(text)) return [];
  const encoding = isBase64 ? 'base64' : 'hex';
  if (!/^[\x20-\x7e]+$/.test(Buffer.from(text, encoding).toString('latin1'))) return [];
  return [warning('encoded_twice', at, `is ${encoding} of a text; write the content id itself`)];
}

const malformed = refusedAs('malformed_data');
const notWidevine = (why: string) => malformed(`is not Widevine PSSH data: ${why}`);

/** One field of a protobuf message as it stands on the wire. `varint` is set for type 0, `bytes` for types 1, 2 and 5. */
interface ProtobufField {
  readonly number: number;
  readonly wireType: number;
  readonly varint?: number;
  readonly bytes: Buffer;
}

const FIXED_LENGTHS: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
const NOTHING = Buffer.alloc(0);
/** Widevine's message has ten, and a key id may be there some times; each takes far more memory than it has bytes. */
const MAX_FIELDS = 1000;

/** Reads the fields of a message without a schema. Varints above 2^53-1 are refused: no field of Widevine's is so large. */
export function parseProtobuf(message: Uint8Array): Checked<ProtobufField[]> {
  const bytes = Buffer.from(message);
  const fields: ProtobufField[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (fields.length === MAX_FIELDS) return malformed(`it has more than ${MAX_FIELDS} fields`);
    const tag = readVarint(bytes, at);
    if (!tag) return malformed('it ends inside a field');
    at = tag.end;
    const number = Math.floor(tag.value / 8);
    const wireType = tag.value % 8;
    if (number < 1 || number > 0x1fffffff) return malformed('it has a field without a valid number');
    if (wireType === 0) {
      const value = readVarint(bytes, at);
      if (!value) return malformed(`it ends inside field ${number}`);
      fields.push({ number, wireType, varint: value.value, bytes: NOTHING });
      at = value.end;
      continue;
    }
    const fixed = FIXED_LENGTHS[wireType];
    const length = fixed === undefined ? wireType === 2 && readVarint(bytes, at) : { value: fixed, end: at };
    if (!length) return malformed(`its field ${number} can't be read`);
    const end = length.end + length.value;
    if (end > bytes.length) return malformed(`its field ${number} is cut short`);
    fields.push({ number, wireType, bytes: bytes.subarray(length.end, end) });
    at = end;
  }
  return { ok: true, value: fields };
}

/** Encodes one field: a number as a varint (0 to 2^53-1), bytes length-delimited; nothing for `undefined`. */
export function encodeField(number: number, value: number | Uint8Array | undefined): Buffer {
  if (value === undefined) return NOTHING;
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  return Buffer.concat([varint(number * 8 + 2), varint(value.length), value]);
}

function readVarint(bytes: Buffer, from: number): { value: number; end: number } | undefined {
  const end = from + bytes.subarray(from, from + 8).findIndex((byte) => byte < 0x80) + 1;
  const value = bytes.subarray(from, end).reduceRight((sum, byte) => sum * 0x80 + (byte & 0x7f), 0);
  return end === from || value > Number.MAX_SAFE_INTEGER ? undefined : { value, end };
}

function varint(value: number): Buffer {
  if (value < 0x80) return Buffer.from([value]);
  return Buffer.concat([Buffer.from([(value % 0x80) + 0x80]), varint(Math.floor(value / 0x80))]);
}
