import { isZero, looksSwapped, SUSPECTED, ZERO_KEY_ID } from './bytes';
import { schemeName, type WidevinePsshData } from './widevine';

/** Something that is wrong with Widevine PSSH data by itself. */
export interface WidevineSlip {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  /** The field of the data, such as `key_id`; empty: the data as a whole. */
  readonly at: string;
  /** Goes on after the name of the field. */
  readonly sentence: string;
}

/** What is wrong with Widevine PSSH data by itself. */
export function widevineSlips(data: WidevinePsshData): WidevineSlip[] {
  const { keyIds, contentId } = data;
  const slips = [
    ...keyIds.flatMap((keyId, index) => keyIdSlips(keyId, nameOfKeyId(data, index))),
    ...(contentId ? contentIdSlips(contentId) : []),
    ...schemeSlips(data),
  ];
  if (keyIds.length === 0 && (contentId === undefined || contentId.length === 0)) {
    const sentence =
      'names neither a key id nor a content id, so a license server cannot tell which key is meant; add one';
    slips.push(warning('names_nothing', '', sentence));
  }
  return slips;
}

/** What one of the key ids is called. */
export function nameOfKeyId({ keyIds }: WidevinePsshData, index: number): string {
  return `key_id${keyIds.length > 1 ? `[${index}]` : ''}`;
}

function keyIdSlips(keyId: Buffer, at: string): WidevineSlip[] {
  if (isZero(keyId)) return [{ severity: 'error', code: 'all_zero', at, sentence: ZERO_KEY_ID }];
  return looksSwapped(keyId) ? [warning('key_id_byte_order_suspected', at, SUSPECTED)] : [];
}

function schemeSlips({ algorithm, protectionScheme }: WidevinePsshData): WidevineSlip[] {
  if (protectionScheme === undefined) return [];
  const at = 'protection_scheme';
  const known = schemeName(protectionScheme);
  if (known === undefined) {
    const sentence =
      'is none of cenc, cens, cbc1 and cbcs; it must be the four characters as one big-endian number';
    return [{ severity: 'error', code: 'unknown_scheme', at, sentence }];
  }
  if (known === 'cens' || known === 'cbc1') {
    const sentence = `is ${known}, which the packager does not take; use cenc, or cbcs for CMAF`;
    return [warning('unsupported_scheme', at, sentence)];
  }
  if (known !== 'cbcs' || algorithm !== 1) return [];
  const sentence = 'is cbcs, but the algorithm field says AESCTR; leave the algorithm out';
  return [warning('scheme_mismatch', at, sentence)];
}

/** A content id that was encoded once more than the license server expects is another content id to it. */
function contentIdSlips(contentId: Buffer): WidevineSlip[] {
  const at = 'content_id';
  const text = contentId.toString('latin1');
  if (contentId.length === 0) return [warning('empty', at, 'is empty; leave it out or give one')];
  const isBase64 = /^[A-Za-z0-9+/]+={1,2}$/.test(text) && text.length % 4 === 0;
  if (isBase64 && isPlain(Buffer.from(text, 'base64')))
    return [warning('encoded_twice', at, 'is base64 of a text; the content id itself belongs here')];
  if (/^(?:[0-9a-fA-F]{2}){6,}$/.test(text) && isPlain(Buffer.from(text, 'hex')))
    return [warning('encoded_twice', at, 'is hex of a text; the content id itself belongs here')];
  return [];
}

function isPlain(bytes: Buffer): boolean {
  return /^[\x20-\x7e]+$/.test(bytes.toString('latin1'));
}

function warning(code: string, at: string, sentence: string): WidevineSlip {
  return { severity: 'warning', code, at, sentence };
}
