import { decodeBase64, parseUuid } from '../bytes';

export type ByteForm =
  | 'base64'
  | 'base64url'
  | 'unpadded'
  | 'not_canonical'
  | 'hex'
  | 'separated_hex'
  | 'uuid';

export interface ByteText {
  readonly form: ByteForm;
  readonly bytes: Buffer;
}

/** Reads bytes from a text in whatever form people write them; white space is passed over. Undefined when it is none. */
export function readByteText(text: string): ByteText | undefined {
  const compact = text.replaceAll(/\s+/g, '');
  if (compact === '') return undefined;
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
  const standard = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
  if (!/^[A-Za-z0-9+/]+$/.test(standard) || standard.length % 4 === 1) return undefined;
  const bytes = Buffer.from(standard, 'base64');
  if (/[-_]/.test(text)) return { form: 'base64url', bytes };
  return { form: text.length % 4 === 0 ? 'not_canonical' : 'unpadded', bytes };
}

/** What bytes hold when they are themselves a text of bytes: something was encoded twice. */
export function readTwiceEncoded(bytes: Uint8Array): ByteText | undefined {
  const text = Buffer.from(bytes).toString('latin1');
  return text.length >= 16 && /^[\x20-\x7e]+$/.test(text) ? readByteText(text) : undefined;
}

/** Bytes as text when that is what they are, else in hex. */
export function textOrHex(bytes: Uint8Array): { value: string; note?: string } {
  const text = Buffer.from(bytes).toString('utf8');
  const isText = /^[^\p{Cc}\p{Cs}\ufffd]+$/u.test(text);
  const value = isText ? text : Buffer.from(bytes).toString('hex');
  const shown = value.length > 400 ? `${value.slice(0, 400)}…` : value;
  return { value: shown, ...(!isText && { note: `hex, ${bytes.length} bytes` }) };
}
