import { type ProtectionScheme, schemeName, type WidevinePsshData } from '../widevine';
import { isZero, keyIdField, suspectByteOrder } from './block';
import { textOrHex } from './byte-text';
import type { Report } from './report';

/** Shows what Widevine PSSH data says, field by field, and what is wrong with it by itself. `at` begins each name. */
export function describeWidevineData(report: Report, at: string, data: WidevinePsshData): void {
  const { algorithm, keyIds, contentId, protectionScheme } = data;
  const show = (name: string, value: string | number | undefined, note?: string) => {
    if (value !== undefined) report.field(`${at}${name}`, String(value), note);
  };
  show('algorithm', algorithm === undefined ? undefined : (ALGORITHMS[algorithm] ?? algorithm));
  keyIds.forEach((keyId, index) => {
    const name = `${at}key_id${keyIds.length > 1 ? `[${index}]` : ''}`;
    keyIdField(report, name, keyId);
    report.claim({ of: 'box', at: name, keyId });
    if (!isZero(keyId)) suspectByteOrder(report, name, keyId);
  });
  show('provider', data.provider);
  if (contentId) {
    const { value, note } = textOrHex(contentId);
    show('content_id', value, note);
    checkContentId(report, `${at}content_id`, contentId);
    report.claim({ of: 'content_id', at: `${at}content_id`, contentId });
  }
  show('track_type', data.trackType);
  show('policy', data.policy);
  show('crypto_period_index', data.cryptoPeriodIndex);
  show('grouped_license', data.groupedLicense && `${data.groupedLicense.length} bytes`);
  if (protectionScheme !== undefined) {
    const name = schemeName(protectionScheme);
    show('protection_scheme', name ?? protectionScheme, name && `uint32 ${protectionScheme}`);
    checkScheme(report, `${at}protection_scheme`, name, algorithm);
  }
  show('crypto_period_seconds', data.cryptoPeriodSeconds);
  if (keyIds.length === 0 && (contentId === undefined || contentId.length === 0)) {
    report.warning(
      'names_nothing',
      at === '' ? 'The data' : at.slice(0, -1),
      'names neither a key id nor a content id, so a licence server cannot tell which key is meant; add one',
    );
  }
}

const ALGORITHMS: Readonly<Record<number, string>> = { 0: 'UNENCRYPTED', 1: 'AESCTR' };

function checkScheme(
  report: Report,
  name: string,
  known: ProtectionScheme | undefined,
  algorithm: number | undefined,
): void {
  if (known === undefined) {
    const sentence =
      'is none of cenc, cens, cbc1 and cbcs; it must be the four characters as one big-endian number';
    report.error('unknown_scheme', name, sentence);
  } else if (known === 'cens' || known === 'cbc1') {
    report.warning(
      'unsupported_scheme',
      name,
      `is ${known}, which the packager does not take; use cenc, or cbcs for CMAF`,
    );
  } else if (known === 'cbcs' && algorithm === 1) {
    report.warning(
      'scheme_mismatch',
      name,
      'is cbcs, but the algorithm field says AESCTR; leave the algorithm out',
    );
  }
}

/** A content id that was encoded once more than the licence server expects is another content id to it. */
function checkContentId(report: Report, name: string, contentId: Buffer): void {
  const text = contentId.toString('latin1');
  if (contentId.length === 0) report.warning('empty', name, 'is empty; leave it out or give one');
  else if (
    /^[A-Za-z0-9+/]+={1,2}$/.test(text) &&
    text.length % 4 === 0 &&
    isPlain(Buffer.from(text, 'base64'))
  ) {
    report.warning('encoded_twice', name, 'is base64 of a text; the content id itself belongs here');
  } else if (/^(?:[0-9a-fA-F]{2}){6,}$/.test(text) && isPlain(Buffer.from(text, 'hex'))) {
    report.warning('encoded_twice', name, 'is hex of a text; the content id itself belongs here');
  }
}

function isPlain(bytes: Buffer): boolean {
  return /^[\x20-\x7e]+$/.test(bytes.toString('latin1'));
}
