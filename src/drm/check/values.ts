import {
  BYTE_ORDER_SUSPECTED,
  decodeBase64,
  decodeBase64Block,
  decodeHexBlock,
  formatUuid,
  isZero,
  looksSwapped,
  parseUuid,
  swapKeyIdOrder,
  ZERO_KEY_ID,
} from '../bytes';
import { type Finding, finding } from '../finding';
import { type AddressOf, addressFindings, checkLicenseUrl } from '../key-file';
import { decodePlayReadyChecksum } from '../playready';
import type { Report } from './report';

export type ByteForm =
  | ('base64' | 'base64url' | 'unpadded' | 'not_canonical')
  | ('hex' | 'separated_hex')
  | 'uuid';

export interface ByteText {
  readonly form: ByteForm;
  readonly bytes: Buffer;
}

/** Reads bytes from a text in any usual form, without white space. Undefined for another text. */
export function readByteText(text: string): ByteText | undefined {
  const compact = text.replaceAll(/\s+/g, '');
  const uuid = parseUuid(compact.replace(/^urn:uuid:/i, ''));
  if (uuid.ok) return { form: 'uuid', bytes: uuid.value };
  const hex = readHex(compact);
  if (hex) return hex;
  const strict = decodeBase64(compact);
  if (strict.ok) return { form: 'base64', bytes: strict.value };
  return readLooseBase64(compact);
}

function readHex(text: string): ByteText | undefined {
  // Eight hex digits and fewer are rather base64 that happens to have no other letter.
  if (/^(?:[0-9a-fA-F]{2}){8,}$/.test(text)) return { form: 'hex', bytes: Buffer.from(text, 'hex') };
  const digits = text.replace(/^0x/i, '').replaceAll(/(?<=[0-9a-fA-F]{2})[:.,-](?=[0-9a-fA-F]{2})/g, '');
  if (digits === text || !/^(?:[0-9a-fA-F]{2})+$/.test(digits)) return undefined;
  return { form: 'separated_hex', bytes: Buffer.from(digits, 'hex') };
}

function readLooseBase64(text: string): ByteText | undefined {
  const [, standard = ''] = /^([A-Za-z0-9+/]+)=*$/.exec(text.replaceAll('-', '+').replaceAll('_', '/')) ?? [];
  if (standard === '' || standard.length % 4 === 1) return undefined;
  const bytes = Buffer.from(standard, 'base64');
  if (/[-_]/.test(text)) return { form: 'base64url', bytes };
  return { form: text.length % 4 === 0 ? 'not_canonical' : 'unpadded', bytes };
}

/** The base64 in a `data:` address (RFC 2397); undefined for another address. */
export function inlineBase64(address: string): string | undefined {
  return /^\s*data:[^,]{0,100}base64,(.*)$/is.exec(address)?.[1];
}

export function readTwiceEncoded(bytes: Uint8Array): ByteText | undefined {
  const text = Buffer.from(bytes).toString('latin1');
  return text.length >= 16 && /^[\x21-\x7e]+$/.test(text) ? readByteText(text) : undefined;
}

export function textOrHex(bytes: Uint8Array): { value: string; note?: string } {
  const text = Buffer.from(bytes).toString('utf8');
  const isText = /^[^\p{Cc}\p{Cs}\ufffd]+$/u.test(text);
  const value = isText ? text : Buffer.from(bytes).toString('hex');
  const shown = value.length > 400 ? `${value.slice(0, 400)}…` : value;
  return { value: shown, ...(!isText && { note: `hex, ${bytes.length} bytes` }) };
}

interface BlockRule {
  readonly wanted: 'base64' | 'hex';
  /** The severity of a key id that is written as a UUID; undefined: an error. */
  readonly uuid?: Finding['severity'];
}

/** Reads 16 bytes. A value in another form is a fault, but the intended bytes are returned. */
export function readBlock(report: Report, name: string, text: string, rule: BlockRule): Buffer | undefined {
  const { wanted, uuid = 'error' } = rule;
  const strict = wanted === 'base64' ? decodeBase64Block(text) : decodeHexBlock(text);
  if (strict.ok) return strict.value;
  const meant = readByteText(text);
  const twice = meant && meant.bytes.length !== 16 ? readTwiceEncoded(meant.bytes) : undefined;
  if (twice?.bytes.length === 16) {
    report.error('encoded_twice', name, 'was encoded twice; decode it once');
    return twice.bytes;
  }
  const severity = meant?.form === 'uuid' ? uuid : 'error';
  report.add(finding(severity, encodingFault(text, wanted), name, strict.problem.description));
  return meant?.bytes.length === 16 ? meant.bytes : undefined;
}

/** The code names the form that the text has instead. */
export function encodingFault(text: string, wanted: 'base64' | 'hex'): string {
  if (text === '') return 'empty';
  const meant = readByteText(text);
  if (!meant) return `not_${wanted}`;
  if (meant.form === 'uuid') return `uuid_for_${wanted}`;
  const isHex = meant.form === 'hex' || meant.form === 'separated_hex';
  if (isHex !== (wanted === 'hex')) return isHex ? 'hex_for_base64' : 'base64_for_hex';
  if (/\s/.test(text)) return 'white_space';
  return FORM_CODES[meant.form] ?? 'wrong_length';
}

const FORM_CODES: Partial<Record<ByteForm, string>> = {
  separated_hex: 'separators',
  unpadded: 'padding_missing',
  base64url: 'base64url',
  not_canonical: 'not_canonical',
};

export function readChecksum(report: Report, name: string, text: string): string | undefined {
  const decoded = decodePlayReadyChecksum(text);
  if (decoded.ok) return text;
  return void report.error(encodingFault(text, 'base64'), name, decoded.problem.description);
}

export function showKeyId(report: Report, name: string, keyId: Buffer): void {
  const base64 = keyId.toString('base64');
  const swapped = swapKeyIdOrder(keyId).toString('base64');
  report.field(name, formatUuid(keyId), `base64 ${base64}; in PlayReady's byte order ${swapped}`);
}

export function keyIdField(report: Report, name: string, keyId: Buffer): void {
  showKeyId(report, name, keyId);
  if (isZero(keyId)) report.error('all_zero', name, ZERO_KEY_ID);
}

/** Warns of a key id, in big endian, that reads as a random UUID in the other byte order alone. */
export function suspectByteOrder(report: Report, name: string, keyId: Buffer): void {
  if (looksSwapped(keyId)) report.warning('key_id_byte_order_suspected', name, BYTE_ORDER_SUSPECTED);
}

/** A part of a license address that may carry a secret: `token=…`, and `contentkey:…` of PlayReady's test server. */
const SECRET_PART = /((?:^|[?&;,(])[\w-]*(?:key|token|secret|passw|auth|sig)[\w-]*[:=])([^&;,)#]+)/gi;

export function looksLikeAddress(text: string): boolean {
  return /^(?:skd|https?):\/\/[^\r\n]*$/i.test(text);
}

export function checkAddress(
  report: Report,
  name: string,
  system: AddressOf,
  text: string,
  note?: string,
): void {
  const checked = checkLicenseUrl(system)(text);
  if (!checked.ok) report.problem(name, checked.problem);
  // For an invalid address, its form is reported, and faults that would return in the next one.
  report.add(...addressFindings(system, text, name).filter((one) => checked.ok || one.severity === 'error'));
  if (!checked.ok) return;
  for (const [, part = '', value = ''] of text.matchAll(SECRET_PART))
    if (!/key[_-]?id[:=]$/i.test(part)) report.secrets.add(value);
  report.field(name, text, note);
}
