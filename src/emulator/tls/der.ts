/** The distinguished encoding rules of ASN.1 (X.690), as far as a certificate needs them. */

const LONG_FORM = 0x80;

function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < LONG_FORM) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = Buffer.from(length.toString(16).padStart(length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, LONG_FORM | bytes.length]), bytes, content]);
}

export const sequence = (...parts: readonly Buffer[]) => element(0x30, Buffer.concat(parts));
export const set = (...parts: readonly Buffer[]) => element(0x31, Buffer.concat(parts));
export const octets = (content: Buffer) => element(0x04, content);
export const text = (content: string) => element(0x0c, Buffer.from(content));
export const yes = element(0x01, Buffer.from([0xff]));

/** @param bytes big endian, without a sign. */
export function integer(bytes: Buffer): Buffer {
  const short = bytes.subarray(bytes.findIndex((byte, place) => byte !== 0 || place === bytes.length - 1));
  const isHigh = (short[0] ?? 0) >= 0x80;
  return element(0x02, isHigh ? Buffer.concat([Buffer.from([0]), short]) : short);
}

/** @param unused how many bits of the last byte don't count. */
export function bits(bytes: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.concat([Buffer.from([unused]), bytes]));
}

/** A field that is known by its number, around other elements or, as `plain`, around bytes. */
export function field(number: number, content: Buffer, kind: 'around' | 'plain'): Buffer {
  return element((kind === 'around' ? 0xa0 : 0x80) | number, content);
}

/** @param dotted such as 2.5.29.17. */
export function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return element(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]));
}

function base128(number: number): number[] {
  const digits = [number & 0x7f];
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

/** To the second, with the two digits of a year until 2049 and four from 2050 on (RFC 5280, 4.1.2.5). */
export function time(at: Date): Buffer {
  const digits = `${at.toISOString().slice(0, 19).replaceAll(/\D/g, '')}Z`;
  return at.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits));
}
