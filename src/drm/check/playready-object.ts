import { parsePlayReadyObject } from '../playready';
import { joinNamed, type Named, NOTHING_NAMED } from './named';
import { describePlayReadyHeader } from './playready-header';
import type { Report } from './report';

const HEADER_RECORD = 1;
const LICENSE_STORE_RECORD = 3;
const MAX_BYTES = 15 * 1024;

/** Whether bytes are a PlayReady object: they start with their own length, or with a record that holds a header. */
export function looksLikePlayReadyObject(bytes: Buffer): boolean {
  if (bytes.length < 10) return false;
  return (
    bytes.readUInt32LE(0) === bytes.length ||
    (bytes.readUInt16LE(6) === HEADER_RECORD && isUtf16Xml(bytes.subarray(10)))
  );
}

/** Whether bytes are a PlayReady header by itself, in UTF-16LE. */
export function isUtf16Xml(bytes: Buffer): boolean {
  const start = bytes.length > 1 && bytes.readUInt16LE(0) === 0xfeff ? 2 : 0;
  return bytes.length > start + 3 && bytes.readUInt16LE(start) === 0x3c && bytes.readUInt8(start + 3) === 0;
}

/** Shows a PlayReady object's records and their headers; answers what they name. */
export function describePlayReadyObject(report: Report, at: string, bytes: Buffer): Named {
  const object = at === '' ? 'The object' : at.slice(0, -1);
  const records = parsePlayReadyObject(bytes);
  if (!records.ok) {
    report.error('malformed_object', object, records.fault);
    return NOTHING_NAMED;
  }
  report.field(`${at}records`, String(records.value.length));
  if (bytes.length > MAX_BYTES)
    report.warning('too_long', object, 'is longer than the 15 KB that PlayReady asks for');
  const headers = records.value.filter(({ type }) => type === HEADER_RECORD);
  if (headers.length !== 1) {
    report.error('header_count', object, `has ${headers.length} header records (type 1); it must have one`);
  }
  if (records.value.some(({ type }) => type !== HEADER_RECORD && type !== LICENSE_STORE_RECORD)) {
    report.warning(
      'unknown_record',
      object,
      'has a record of a type that is neither 1 (header) nor 3 (license store)',
    );
  }
  return joinNamed(headers.map(({ value }) => describeHeaderBytes(report, `${at}header.`, value)));
}

/** Shows a header that comes as bytes: they must be UTF-16LE. */
export function describeHeaderBytes(report: Report, at: string, bytes: Buffer): Named {
  const header = at === '' ? 'The header' : at.slice(0, -1);
  if (isUtf16Xml(bytes)) {
    if (bytes.length % 2 === 1)
      report.error('cut_short', header, 'ends inside a character of UTF-16; it was cut short');
    return describePlayReadyHeader(report, at, bytes.toString('utf16le'));
  }
  report.error('not_utf16', header, 'must be UTF-16LE; encode its XML so');
  const text = bytes.toString('utf8');
  return /^\ufeff?\s*</.test(text) ? describePlayReadyHeader(report, at, text) : NOTHING_NAMED;
}
