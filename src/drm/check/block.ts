import {
  decodeBase64,
  decodeBase64Block,
  decodeHexBlock,
  formatUuid,
  isZero,
  looksSwapped,
  SUSPECTED,
  swapKeyIdOrder,
  ZERO_KEY_ID,
} from '../bytes';
import { readByteText, readTwiceEncoded } from './byte-text';
import type { CheckFault, Report } from './report';

/** How a block of bytes should be written, and how bad it is when a key id is written as a UUID. */
export interface BlockRule {
  readonly wanted: 'base64' | 'hex';
  readonly uuid?: CheckFault['severity'];
}

/**
 * Reads 16 bytes (a key id, a key, an initialisation vector). A value in another form is a fault, and still answers the
 * bytes that were meant, so that the other checks can go on.
 */
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
  const code = slipOf(text, wanted);
  report.fault({ severity, code, field: name, description: `${name} ${strict.fault}.` });
  return meant?.bytes.length === 16 ? meant.bytes : undefined;
}

/** The code of what is wrong with a text that should be base64 or hex. */
export function slipOf(text: string, wanted: 'base64' | 'hex'): string {
  if (text === '') return 'empty';
  const meant = readByteText(text);
  if (!meant) return wanted === 'base64' ? 'not_base64' : 'not_hex';
  if (meant.form === 'uuid') return `uuid_for_${wanted}`;
  const isHex = meant.form === 'hex' || meant.form === 'separated_hex';
  if (isHex !== (wanted === 'hex')) return isHex ? 'hex_for_base64' : 'base64_for_hex';
  if (/\s/.test(text)) return 'white_space';
  switch (meant.form) {
    case 'separated_hex':
      return 'separators';
    case 'unpadded':
      return 'padding_missing';
    case 'base64url':
    case 'not_canonical':
      return meant.form;
    default:
      return 'wrong_length';
  }
}

/** Reads a PlayReady checksum: base64 of 8 bytes. */
export function readChecksum(report: Report, name: string, text: string): string | undefined {
  const decoded = decodeBase64(text);
  if (decoded.ok && decoded.value.length === 8) return text;
  const sentence = decoded.ok
    ? `decodes to ${decoded.value.length} bytes; a PlayReady checksum has 8`
    : decoded.fault;
  report.error(slipOf(text, 'base64'), name, sentence);
  return undefined;
}

/** Shows a key id in the three forms in which it is met. */
export function showKeyId(report: Report, name: string, keyId: Buffer): void {
  const base64 = keyId.toString('base64');
  const swapped = swapKeyIdOrder(keyId).toString('base64');
  report.field(name, formatUuid(keyId), `base64 ${base64}; in PlayReady's byte order ${swapped}`);
}

/** The same, and says when it is a placeholder. */
export function keyIdField(report: Report, name: string, keyId: Buffer): void {
  showKeyId(report, name, keyId);
  if (isZero(keyId)) report.error('all_zero', name, ZERO_KEY_ID);
}

/** Warns of a key id that reads as a random UUID in the other byte order alone; `name` is where it should be big endian. */
export function suspectByteOrder(report: Report, name: string, keyId: Buffer): void {
  if (looksSwapped(keyId)) report.warning('key_id_byte_order_suspected', name, SUSPECTED);
}
