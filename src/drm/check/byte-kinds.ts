import { formatUuid, swapKeyIdOrder } from '../bytes';
import { looksLikePsshBox } from '../pssh';
import { parseWidevinePsshData, schemeName } from '../widevine';
import { keyIdField, suspectByteOrder } from './block';
import { describeBoxes } from './boxes';
import { readTwiceEncoded } from './byte-text';
import {
  describeHeaderBytes,
  describePlayReadyObject,
  isUtf16Xml,
  looksLikePlayReadyObject,
} from './playready-object';
import type { CheckKind, Report } from './report';
import { describeSegment, looksLikeSegment } from './segment-report';
import { describeWidevineData } from './widevine-data';

/** Tells what a single value's bytes are, and checks them as that. */
export function checkBytes(report: Report, bytes: Buffer, isInner = false): CheckKind {
  if (looksLikePsshBox(bytes)) {
    describeBoxes(report, bytes);
    return 'pssh_box';
  }
  if (looksLikeSegment(bytes)) return describeSegment(report, bytes);
  if (looksLikePlayReadyObject(bytes)) {
    describePlayReadyObject(report, '', bytes);
    return 'playready_object';
  }
  if (isXml(bytes)) {
    describeHeaderBytes(report, '', bytes);
    return 'playready_header';
  }
  if (bytes.length === 16 && !isSurelyWidevine(bytes)) return checkKeyId(report, bytes);
  const twice = isInner ? undefined : readTwiceEncoded(bytes);
  if (twice) {
    report.error('encoded_twice', 'The value', 'was encoded twice; decode it once');
    return checkBytes(report, twice.bytes, true);
  }
  return checkWidevineData(report, bytes);
}

/** The tags of fields 1, 2, 3, 4, 6 and 9 of Widevine PSSH data, one of which begins it. */
const FIRST_BYTES = [0x08, 0x12, 0x1a, 0x22, 0x32, 0x48];

/** A value of 16 bytes: most likely a key id. */
export function checkKeyId(report: Report, bytes: Buffer): CheckKind {
  keyIdField(report, 'key_id', bytes);
  report.field('hex', bytes.toString('hex'));
  report.field(
    'base64',
    bytes.toString('base64'),
    'as the key-file API, key files and Widevine take it: big endian',
  );
  const swapped = swapKeyIdOrder(bytes);
  report.field('playready_base64', swapped.toString('base64'), 'as a PlayReady header takes it');
  report.field(
    'if_playready_order',
    formatUuid(swapped),
    "the UUID, if these bytes were in PlayReady's order",
  );
  suspectByteOrder(report, 'key_id', bytes);
  return 'key_id';
}

function checkWidevineData(report: Report, bytes: Buffer): CheckKind {
  const data = parseWidevinePsshData(bytes);
  if (data.ok) {
    describeWidevineData(report, '', data.value);
    return 'widevine_pssh_data';
  }
  if (FIRST_BYTES.includes(bytes[0] ?? 0)) {
    report.error('malformed_data', 'The value', `${data.fault}; look whether it was cut short`);
    return 'widevine_pssh_data';
  }
  const sentence =
    bytes.length < 64
      ? `decodes to ${bytes.length} bytes; a key id has 16, and it is nothing else that is known here`
      : 'decodes to bytes that are neither a box nor Widevine data nor a PlayReady object or header';
  report.error(bytes.length < 64 ? 'wrong_length' : 'unrecognised', 'The value', sentence);
  return 'unknown';
}

/** Data that can't be a random key id: it names a real scheme. */
function isSurelyWidevine(bytes: Buffer): boolean {
  const data = parseWidevinePsshData(bytes);
  return (
    data.ok &&
    data.value.protectionScheme !== undefined &&
    schemeName(data.value.protectionScheme) !== undefined
  );
}

function isXml(bytes: Buffer): boolean {
  const isBigEndian = bytes.length > 3 && bytes.readUInt16BE(0) === 0x3c;
  return (
    isUtf16Xml(bytes) ||
    isBigEndian ||
    /^(?:\xef\xbb\xbf)?\s*<[A-Za-z?!]/.test(bytes.toString('latin1', 0, 200))
  );
}
