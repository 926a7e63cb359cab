import {
  formatUuid,
  HEX_TEXT,
  isHexText,
  isJsonObject,
  type JsonObject,
  parseJson,
  parseUuid,
  swapKeyIdOrder,
} from '../bytes';
import { looksLikeCpix, looksLikeCpixBytes } from '../cpix/read';
import type { Subject } from '../finding';
import { looksLikePsshBox } from '../pssh';
import { parseWidevinePsshData, schemeName } from '../widevine';
import { describeBoxes, describeWidevineData } from './boxes';
import { checkCpix } from './cpix';
import { checkKeyFile, looksLikeKeyFile } from './key-file-text';
import { describeManifest, looksLikeManifest } from './manifest';
import { describePlaylist, looksLikePlaylist } from './playlist';
import {
  describeHeaderBytes,
  describePlayReadyHeader,
  describePlayReadyObject,
  isUtf16Xml,
  looksLikePlayReadyObject,
} from './playready';
import { type CheckKind, type CheckResult, type Claim, Report } from './report';
import { maskSecrets } from './secrets';
import { describeSegment, looksLikeSegment, looksLikeTransportStream } from './segment';
import {
  type ByteForm,
  type ByteText,
  checkAddress,
  inlineBase64,
  keyIdField,
  looksLikeAddress,
  readByteText,
  readTwiceEncoded,
  suspectByteOrder,
} from './values';

const MAX_CHARACTERS = 1024 * 1024;
const THE_VALUE: Subject = { called: 'The value' };

export interface CheckOptions {
  /** Checks a body of the key-file API; without it, a JSON object is of an unknown kind. */
  readonly checkRequest?: (report: Report, body: JsonObject) => void;
  readonly reveal?: boolean;
  /** The name of the file that has the text. One that ends with `.key` counts as a key file if it is nothing else. */
  readonly name?: string;
}

/** A result, and the claims of the input to compare with others. It holds key material. */
export interface CheckedInput {
  readonly name: string;
  readonly result: CheckResult;
  readonly claims: readonly Claim[];
  /** Texts that must not be shown; none if the caller asked to see them. */
  readonly secrets: ReadonlySet<string>;
}

/**
 * Checks a body of the key-file API (object or JSON), `{"value": text}`, a key file, CPIX, a piece of a
 * manifest or playlist, an address, or one value in base64, hex, as a UUID or bytes. Never throws.
 */
export function checkInput(input: unknown, options: CheckOptions = {}): CheckedInput {
  const { reveal = false, name } = options;
  const { report, kind } = readInput(input, options);
  const { fields, claims, secrets } = report;
  const found = { kind, fields, faults: report.findings };
  const hidden = reveal ? new Set<string>() : secrets;
  return { name: name ?? '', result: maskSecrets(found, hidden), claims, secrets: hidden };
}

function readInput(
  input: unknown,
  { name, checkRequest }: CheckOptions,
): { report: Report; kind: CheckKind } {
  const report = new Report();
  if ((Buffer.isBuffer(input) || typeof input === 'string') && input.length > MAX_CHARACTERS)
    return { report, kind: tooLong(report, Buffer.isBuffer(input) ? 'bytes' : 'characters') };
  if (Buffer.isBuffer(input)) return { report, kind: checkBytes(report, input) };
  if (typeof input !== 'string') return { report, kind: checkJson(report, input, checkRequest) };
  const kind = checkText(report, input, checkRequest);
  if (kind !== 'unknown' || !/\.key$/i.test(name ?? '')) return { report, kind };
  const ofKeyFile = new Report();
  checkKeyFile(ofKeyFile, input);
  return { report: ofKeyFile, kind: 'key_file' };
}

function tooLong(report: Report, units: 'bytes' | 'characters'): CheckKind {
  return unknown(report, 'too_long', `is longer than ${MAX_CHARACTERS} ${units}`);
}

function checkJson(report: Report, input: unknown, checkRequest: CheckOptions['checkRequest']): CheckKind {
  if (Array.isArray(input) && isNginxVodKey(input[0])) return exported(report, NGINX_VOD);
  if (!isJsonObject(input)) return unknown(report, 'wrong_type', 'must be a JSON object, or a text');
  if (Object.keys(input).join() === 'value') {
    return typeof input.value === 'string'
      ? checkText(report, input.value, checkRequest)
      : unknown(report, 'wrong_type', 'must be a string');
  }
  if (!checkRequest) return unrecognised(report);
  checkRequest(report, input);
  return 'request';
}

function checkText(report: Report, input: string, checkRequest: CheckOptions['checkRequest']): CheckKind {
  if (input.length > MAX_CHARACTERS) return tooLong(report, 'characters');
  const text = input.trim();
  if (!text.startsWith('#EXTM3U') && looksLikeKeyFile(input)) {
    checkKeyFile(report, input);
    return 'key_file';
  }
  const inner = unwrapped(text);
  if (text === '') return unknown(report, 'empty', 'is empty');
  const known = EXPORTS.find(([, pattern]) => pattern.test(text.slice(0, 2000)))?.[0];
  if (known !== undefined) return exported(report, known);
  if (/^[[{]/.test(text) && !parseUuid(text).ok) return checkJsonText(report, text, checkRequest);
  if (looksLikePlaylist(text)) {
    describePlaylist(report, text, checkBytes);
    return 'manifest';
  }
  if (looksLikeAddress(inner)) {
    checkAddress(report, 'address', /^skd:/i.test(inner) ? 'fairplay' : 'playready', inner);
    return 'license_address';
  }
  if (inner.startsWith('<')) return checkXml(report, inner);
  const read = readByteText(inner);
  return read ? checkByteText(report, input, inner, read) : unrecognised(report);
}

/** The sidecar's text exports for other packagers, except CPIX. */
const EXPORTS: readonly [called: string, pattern: RegExp][] = [
  ['a file of flags for shaka-packager', /^--(?:enable_raw_key_encryption|keys=)/m],
  ["a file of options for Bento4's mp4-dash", /^--encryption-(?:key|cenc-scheme)=/m],
  ['a part of a pipeline of shaka-streamer', /^ +encryption_mode: raw$/m],
  ['a DRM file for GPAC', /<GPACDRM\b/],
  ['a file of options for ffmpeg', /^encryption_(?:scheme|key)=/m],
  ['a key info file for ffmpeg', /^https?:.*\ndata:[^,\n]*;base64,[\w+/]{22}==$/m],
];
const NGINX_VOD = 'the key object of nginx-vod-module';

function isNginxVodKey(value: unknown): boolean {
  return isJsonObject(value) && typeof value.key === 'string' && typeof value.key_id === 'string';
}

function exported(report: Report, called: string): CheckKind {
  const sentence = `is ${called}, which is not read; check the key file that it was made of`;
  return unknown(report, 'export_not_checked', sentence);
}

function checkXml(report: Report, xml: string): CheckKind {
  if (looksLikeCpix(xml)) {
    checkCpix(report, xml);
    return 'cpix';
  }
  if (looksLikeManifest(xml)) {
    describeManifest(report, xml);
    return 'manifest';
  }
  if (!/<(?:wrmheader|data|protectinfo|kid|la_url)\b/i.test(xml)) return unrecognised(report);
  describePlayReadyHeader(report, '', xml);
  return 'playready_header';
}

function checkByteText(report: Report, input: string, inner: string, read: ByteText): CheckKind {
  if (inner !== input.trim())
    report.warning('wrapped', THE_VALUE, 'is in quotes, an element or a data: address; that was left out');
  if (/\s/.test(inner) || /[^\S\r\n]$/m.test(input))
    report.warning('white_space', THE_VALUE, 'has white space in it or after it; write it in one piece');
  const [code, sentence] = ENCODINGS[read.form] ?? [];
  if (code && sentence) report.warning(code, THE_VALUE, sentence);
  if (read.form === 'uuid') return checkKeyId(report, read.bytes);
  return checkBytes(report, read.bytes);
}

function checkJsonText(report: Report, text: string, checkRequest: CheckOptions['checkRequest']): CheckKind {
  const parsed = parseJson(text);
  return parsed === undefined
    ? unknown(report, 'malformed_json', 'is not valid JSON; look for a missing quote or comma')
    : checkJson(report, parsed, checkRequest);
}

/** A value without parts that are often copied with it: quotes, the element of a manifest, `data:…;base64,`. */
function unwrapped(text: string): string {
  const element = /^<(?:\w{1,20}:)?(?:pssh|pro)\b[^<>]{0,500}>([^<>]*)<\/[\w:]{1,30}>$/.exec(text)?.[1];
  const quoted = /^(["'])([^"']*)\1$/.exec(text)?.[2];
  const value = (element ?? quoted ?? text).trim();
  return inlineBase64(value) ?? value;
}

const ENCODINGS: Partial<Record<ByteForm, [code: string, sentence: string]>> = {
  base64url: ['base64url', 'is base64url; key files and the API take standard base64 (+ and /, with =)'],
  unpadded: ['padding_missing', 'is base64 without its padding (=); check whether it is cut short'],
  not_canonical: ['not_canonical', 'is not canonical base64: bits are set after its last byte'],
  separated_hex: ['separators', 'is hex with separators or 0x; key files and the API accept only the digits'],
};

function unrecognised(report: Report): CheckKind {
  const sentence =
    'is not recognized; send a key file, a body of the key-file API, a CPIX document, a license address, a manifest or ' +
    'playlist, or a box, PSSH data, PlayReady object or header, or key id in base64, hex or as a UUID';
  return unknown(report, 'unrecognised', sentence);
}

function unknown(report: Report, code: string, sentence: string): CheckKind {
  report.error(code, THE_VALUE, sentence);
  return 'unknown';
}

function checkBytes(report: Report, bytes: Buffer, isInner = false): CheckKind {
  if (looksLikePsshBox(bytes)) {
    describeBoxes(report, bytes);
    return 'pssh_box';
  }
  if (looksLikeSegment(bytes)) return describeSegment(report, bytes);
  if (looksLikePlayReadyObject(bytes)) {
    describePlayReadyObject(report, '', bytes);
    return 'playready_object';
  }
  if (looksLikeCpixBytes(bytes)) {
    checkCpix(report, bytes);
    return 'cpix';
  }
  if (isXml(bytes)) {
    describeHeaderBytes(report, '', bytes);
    return 'playready_header';
  }
  if (bytes.length === 16 && !isSurelyWidevine(bytes)) return checkKeyId(report, bytes);
  const twice = isInner ? undefined : readTwiceEncoded(bytes);
  if (twice) {
    report.error('encoded_twice', THE_VALUE, 'was encoded twice; decode it once');
    return checkBytes(report, twice.bytes, true);
  }
  return checkWidevineData(report, bytes);
}

/** The tags of fields 1, 2, 3, 4, 6 and 9 of Widevine PSSH data, one of which begins it. */
const FIRST_BYTES = [0x08, 0x12, 0x1a, 0x22, 0x32, 0x48];

export function checkKeyId(report: Report, bytes: Buffer): CheckKind {
  keyIdField(report, 'key_id', bytes);
  report.field('hex', bytes.toString('hex'));
  report.field('base64', bytes.toString('base64'), 'big endian, for the API, key files and Widevine');
  const swapped = swapKeyIdOrder(bytes);
  report.field('playready_base64', swapped.toString('base64'), 'for a PlayReady header');
  report.field('if_playready_order', formatUuid(swapped), "the UUID, if this is PlayReady's order");
  if (isHexText(bytes)) report.warning('hex_text', 'key_id', HEX_TEXT);
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
    report.error(data.problem.code, THE_VALUE, `${data.problem.description}; check whether it was cut short`);
    return 'widevine_pssh_data';
  }
  if (looksLikeTransportStream(bytes)) {
    report.error(
      'unrecognised',
      THE_VALUE,
      'is a transport stream, which packager-drm verify tests by its playlist',
    );
    return 'unknown';
  }
  const sentence =
    bytes.length < 64
      ? `decodes to ${bytes.length} bytes; a key id has 16, and nothing else of this form is known`
      : 'decodes to bytes that are neither a box nor Widevine data nor a PlayReady object or header';
  report.error(bytes.length < 64 ? 'wrong_length' : 'unrecognised', THE_VALUE, sentence);
  return 'unknown';
}

/** Data that can't be a random key id: it names a real scheme. */
function isSurelyWidevine(bytes: Buffer): boolean {
  const data = parseWidevinePsshData(bytes);
  return data.ok && schemeName(data.value.protectionScheme) !== undefined;
}

function isXml(bytes: Buffer): boolean {
  // In UTF-16 of either byte order, or in UTF-8.
  return (
    isUtf16Xml(bytes) || /^(?:\0<..|(?:\xef\xbb\xbf)?\s*<[A-Za-z?!])/s.test(bytes.toString('latin1', 0, 200))
  );
}
