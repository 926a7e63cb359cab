import { type Checked, decodeBase64, fault } from './bytes';
import { encodeField, type ProtobufField, parseProtobuf } from './protobuf';
import { looksLikePsshBox, parsePsshBox } from './pssh';

/** Widevine's system id in `pssh` boxes and key files. */
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
  /** The scheme's number; `schemeName` gives its four characters. */
  readonly protectionScheme?: number | undefined;
  readonly cryptoPeriodSeconds?: number | undefined;
}

/** Key ids by the dozen have a tenth of it. */
export const MAX_PSSH_CHARACTERS = 16 * 1024;

const VARINT = 0;
const BYTES = 2;
const WIRE_TYPES: Readonly<Record<number, number>> = {
  1: VARINT,
  2: BYTES,
  3: BYTES,
  4: BYTES,
  5: BYTES,
  6: BYTES,
  7: VARINT,
  8: BYTES,
  9: VARINT,
  10: VARINT,
};

/** Reads Widevine PSSH data. Fields that newer packagers add are passed over; a known field of another type is a fault. */
export function parseWidevinePsshData(bytes: Uint8Array): Checked<WidevinePsshData> {
  if (bytes.length === 0) return fault('holds no Widevine PSSH data: it is empty');
  const message = parseProtobuf(bytes);
  if (!message.ok) return fault(`is not Widevine PSSH data: ${message.fault}`);
  const keyIds: Buffer[] = [];
  const last = new Map<number, ProtobufField>();
  for (const field of message.value) {
    const expected = WIRE_TYPES[field.number];
    if (expected !== undefined && expected !== field.wireType) {
      return fault(`is not Widevine PSSH data: its field ${field.number} has another type`);
    }
    if (field.number === 2) {
      if (field.bytes.length !== 16)
        return fault(`names a key id of ${field.bytes.length} bytes; key ids have 16`);
      keyIds.push(field.bytes);
    }
    last.set(field.number, field);
  }
  if (!message.value.some((field) => field.number in WIRE_TYPES)) {
    return fault('is not Widevine PSSH data: it has none of its fields');
  }
  const text = (field: ProtobufField | undefined) => field?.bytes.toString('utf8');
  const data: WidevinePsshData = {
    algorithm: last.get(1)?.varint,
    keyIds,
    provider: text(last.get(3)),
    contentId: last.get(4)?.bytes,
    trackType: text(last.get(5)),
    policy: text(last.get(6)),
    cryptoPeriodIndex: last.get(7)?.varint,
    groupedLicense: last.get(8)?.bytes,
    protectionScheme: last.get(9)?.varint,
    cryptoPeriodSeconds: last.get(10)?.varint,
  };
  return { ok: true, value: data };
}

/** Writes Widevine PSSH data, fields in the order of their numbers. */
export function buildWidevinePsshData(data: WidevinePsshData): Buffer {
  const text = (value: string | undefined) => (value === undefined ? undefined : Buffer.from(value, 'utf8'));
  return Buffer.concat([
    encodeField(1, data.algorithm),
    ...data.keyIds.map((keyId) => encodeField(2, keyId)),
    encodeField(3, text(data.provider)),
    encodeField(4, data.contentId),
    encodeField(5, text(data.trackType)),
    encodeField(6, text(data.policy)),
    encodeField(7, data.cryptoPeriodIndex),
    encodeField(8, data.groupedLicense),
    encodeField(9, data.protectionScheme),
    encodeField(10, data.cryptoPeriodSeconds),
  ]);
}

/** What a base64 value turned out to hold: the payload to write, and whether it came in a whole box. */
export interface ReadPsshData {
  readonly payload: string;
  readonly data: WidevinePsshData;
  readonly unwrapped: boolean;
}

/**
 * Reads a key file's Widevine value: base64 of the payload, as it is; a whole Widevine box is unwrapped, since a
 * packager puts its own box around the value. A box of another system is a fault.
 */
export function readWidevinePsshData(text: string): Checked<ReadPsshData> {
  if (text !== last.text) last = { text, read: readAnew(text) };
  return last.read;
}

/** A value is read when its form is checked, and again when it is held against the others. */
let last: { readonly text: string; readonly read: Checked<ReadPsshData> } = {
  text: '',
  read: fault('is empty'),
};

function readAnew(text: string): Checked<ReadPsshData> {
  // Before it is decoded: it is copied and compared some times on its way to a key file.
  if (text.length > MAX_PSSH_CHARACTERS) return fault(`is longer than ${MAX_PSSH_CHARACTERS} characters`);
  const bytes = decodeBase64(text);
  if (!bytes.ok) return bytes;
  // A content id may spell `pssh` where a box has its type; but no payload starts with a zero byte, and a box's size does.
  if (bytes.value[0] !== 0 || !looksLikePsshBox(bytes.value)) {
    const data = parseWidevinePsshData(bytes.value);
    return data.ok ? { ok: true, value: { payload: text, data: data.value, unwrapped: false } } : data;
  }
  const box = parsePsshBox(bytes.value);
  if (!box.ok) return box;
  if (box.value.systemId !== WIDEVINE_SYSTEM_ID) {
    return fault(`is a pssh box of system ${box.value.systemId}, not of Widevine (${WIDEVINE_SYSTEM_ID})`);
  }
  const data = parseWidevinePsshData(box.value.data);
  if (!data.ok) return data;
  return {
    ok: true,
    value: { payload: box.value.data.toString('base64'), data: data.value, unwrapped: true },
  };
}

/** The payload, in base64, for one key id and content id under `cenc`, the scheme of AESCTR. */
export function widevinePsshDataOf(keyId: Buffer, contentId: string | undefined): string {
  return buildWidevinePsshData({
    keyIds: [keyId],
    ...(contentId === undefined ? {} : { contentId: Buffer.from(contentId, 'utf8') }),
    protectionScheme: PROTECTION_SCHEMES.cenc,
  }).toString('base64');
}

/**
 * The same payload under another scheme: field 9 says it, and field 1, which knows AES-CTR alone, is left out with
 * `cbc1` and `cbcs`. All other fields stay as they are. Base64 in and out; what is no Widevine data stays unchanged.
 */
export function withProtectionScheme(payload: string, scheme: ProtectionScheme): string {
  const message = parseProtobuf(Buffer.from(payload, 'base64'));
  if (!message.ok) return payload;
  const dropped = scheme === 'cbc1' || scheme === 'cbcs' ? [1, 9] : [9];
  const kept = message.value.filter(({ number }) => !dropped.includes(number)).map(({ raw }) => raw);
  return Buffer.concat([...kept, encodeField(9, PROTECTION_SCHEMES[scheme])]).toString('base64');
}

/** The four characters of a scheme's number, or undefined for a number that is no scheme. */
export function schemeName(scheme: number): ProtectionScheme | undefined {
  const names = Object.keys(PROTECTION_SCHEMES) as ProtectionScheme[];
  return names.find((name) => PROTECTION_SCHEMES[name] === scheme);
}
