import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import { foreignSystemOf } from './boxes';
import { cipherOf, compareTrack, type KeySignallingAt } from './protection';
import { type Claim, claimsOf, type Report } from './report';
import { checkAddress, inlineBase64, keyIdField, readByteText, readTwiceEncoded } from './values';

/** Nothing here runs beyond an end of a line for `^`, U+2028 included: many of these would take seconds. */
const KEY_LINE = /^[^\S\r\n\u2028\u2029]*#EXT-X-(?:SESSION-)?KEY:(.*)$/gm;
/** A name starts after another character: in a long run of letters, each would start one. */
const ATTRIBUTE = /(?<![A-Z0-9-])([A-Z0-9-]{1,50})=(?:"([^"]*)"|([^",]*))/g;

/** Values that may be shown: no key looks like that. Players except Apple's also take AES with 256 bits. */
const METHOD = /^(?:AES-128|AES-256(?:-CTR|-GCM)?|SAMPLE-AES|SAMPLE-AES-CTR)$/;
const KEY_FORMAT = /^(?:identity|com\.[a-z.]{1,60}|org\.w3\.clearkey|urn:uuid:[0-9a-f-]{36})$/i;

/** A tag that stands in a multivariant playlist alone (RFC 8216 § 4.3.4), and one of a media playlist (§ 4.3.2, 4.3.3). */
const OF_MULTIVARIANT = /^#EXT-X-(?:STREAM-INF|I-FRAME-STREAM-INF|MEDIA|SESSION-KEY|SESSION-DATA)\b(?!-)/m;
const OF_MEDIA = /^#(?:EXTINF|EXT-X-TARGETDURATION|EXT-X-MAP)\b/m;
/** The playlist behind a variant or a rendition: the line after one, and its attribute URI. */
const NEXT = /^#EXT-X-STREAM-INF:.*[\r\n]+([^#\s][^\r\n]*)|^#EXT-X-MEDIA:.*?\bURI="([^"\r\n]*)"/gm;
const MAX_NEXT = 20;

export function looksLikePlaylist(text: string): boolean {
  return /^#EXTM3U\b/.test(text) || text.search(KEY_LINE) >= 0;
}

type DescribeBytes = (report: Report, bytes: Buffer) => void;

interface LineContext {
  readonly isWhole: boolean;
  /** In hex, those in any line. shaka-packager writes the key id where a line without a DRM system has its key. */
  readonly keyIds: ReadonlySet<string>;
  readonly describeBytes: DescribeBytes;
}

/** Shows a playlist's key lines (RFC 8216 § 4.3.2.4), each once; `describeBytes` takes their inline data. */
export function describePlaylist(
  report: Report,
  text: string,
  describeBytes: DescribeBytes,
  called = 'key',
): void {
  const isMultivariant = OF_MULTIVARIANT.test(text) && !OF_MEDIA.test(text);
  const isWhole = /^#EXTM3U\b/.test(text);
  if (isWhole) report.field('type', isMultivariant ? 'HLS multivariant playlist' : 'HLS media playlist');
  const lines = keyLinesOf(text);
  checkVersion(report, text, lines);
  const variables = variablesOf(text);
  const encrypted = lines.filter((line) => attributesOf(line).get('METHOD') !== 'NONE');
  const keyIds = encrypted.flatMap((line) => hexOf(attributesOf(line).get('KEYID') ?? '') ?? []);
  const context = { isWhole, keyIds: new Set(keyIds.map((keyId) => keyId.toString('hex'))), describeBytes };
  encrypted.forEach((line, index) => {
    const at = encrypted.length > 1 ? `${called}[${index}]` : called;
    if (!report.isFull) describeLine(report, at, withValues(line, variables), context);
  });
  if (isWhole && isMultivariant) {
    describeVariants(report, text, encrypted.length > 0);
  } else if (isWhole && (encrypted.length === 0 || !/^[^\S\r\n]*#EXT-X-KEY:/m.test(text))) {
    report.claim({ of: 'clear', at: 'playlist' });
    const sentence = 'has no EXT-X-KEY line: its segments are not protected';
    report.warning('not_protected', { called: 'The playlist' }, sentence);
  }
}

/** RFC 8216bis § 4.4.2.3: `{$name}`. A value that another playlist or the address has is not known here. */
const VARIABLE = /\{\$([\w-]{1,50})\}/g;

function variablesOf(text: string): Map<string, string> {
  const lines = [...text.matchAll(/^#EXT-X-DEFINE:(.*)$/gm)].map(([, line = '']) => attributesOf(line));
  return new Map(lines.map((line) => [line.get('NAME') ?? '', (line.get('VALUE') ?? '').slice(0, 200)]));
}

function withValues(line: string, variables: ReadonlyMap<string, string>): string {
  if (line.length > 10_000) return line;
  return line.replaceAll(VARIABLE, (name, of: string) => variables.get(of) || name);
}

/** RFC 8216 § 7: KEYFORMAT needs version 5. Without the tag, some packagers mean the newest. */
function checkVersion(report: Report, text: string, lines: readonly string[]): void {
  const version = /^#EXT-X-VERSION:(\d{1,3})\b/m.exec(text)?.[1];
  if (version === undefined || Number(version) >= 5) return;
  if (!lines.some((line) => attributesOf(line).has('KEYFORMAT'))) return;
  const sentence = `says EXT-X-VERSION:${version}, but KEYFORMAT needs at least 5`;
  report.warning('version_too_low', { called: 'The playlist' }, sentence);
}

function describeVariants(report: Report, text: string, hasSessionKeys: boolean): void {
  if (!hasSessionKeys)
    report.field('protection', 'not stated here', 'the keys are in the media playlists; check these next');
  // A query may hold a token, and is not needed here.
  const withoutQuery = (address: string) =>
    address
      .trim()
      .replace(/[?#].*$/s, '')
      .slice(0, 300);
  const next = new Set([...text.matchAll(NEXT)].map(([, line, uri]) => withoutQuery(line ?? uri ?? '')));
  for (const [index, address] of [...next].slice(0, MAX_NEXT).entries())
    report.field(`playlist[${index}]`, address);
  if (next.size > MAX_NEXT) report.field('playlists', String(next.size), `the first ${MAX_NEXT} are shown`);
}

export function keyLinesOf(text: string): string[] {
  return [...new Set([...text.matchAll(KEY_LINE)].map(([, line = '']) => line.trim()))];
}

export function attributesOf(line: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name = '', quoted, plain = ''] of line.matchAll(ATTRIBUTE))
    attributes.set(name, quoted ?? plain.trim());
  return attributes;
}

function describeLine(report: Report, at: string, line: string, context: LineContext): void {
  const attributes = attributesOf(line);
  if (line.search(VARIABLE) >= 0) {
    report.field(at, 'not checked', 'has a variable whose value another playlist or the address has');
    return;
  }
  const method = attributes.get('METHOD') ?? '';
  if (METHOD.test(method)) report.field(`${at}.method`, method);
  else report.warning('unknown_method', `${at}.method`, 'is not AES-128, SAMPLE-AES or SAMPLE-AES-CTR');
  const format = attributes.get('KEYFORMAT') ?? 'identity';
  if (KEY_FORMAT.test(format)) report.field(`${at}.keyformat`, format);
  const address = attributes.get('URI');
  if (/(?:^|,)URI=[^"]/.test(line)) report.error('not_quoted', `${at}.uri`, 'must stand in double quotes');
  const before = report.claims.length;
  if (address === undefined)
    report.error('missing', `${at}.uri`, 'is missing; players ask for the key there');
  else describeAddress(report, at, method, format, address, context);
  const named = signallingIn(report.claims.slice(before), `${at}.uri`);
  const keyId = attributes.get('KEYID');
  // The older format com.widevine has the key ids in the address alone.
  if (context.isWhole && keyId === undefined && format.toLowerCase() === `urn:uuid:${WIDEVINE_SYSTEM_ID}`)
    report.warning('missing', `${at}.keyid`, 'is missing; players of Widevine choose the key by it');
  describeKeyId(report, at, method, keyId, named);
  compareMethod(report, at, method, named);
  const iv = attributes.get('IV');
  if (iv !== undefined && !/^0x[0-9a-f]{1,32}$/i.test(iv))
    report.warning('not_hex', `${at}.iv`, 'is not 0x and up to 32 hex digits');
  if (format !== FAIRPLAY_KEY_FORMAT || iv === undefined) return;
  const sentence = 'should not be there: Apple wants no IV in a FairPlay playlist, the license contains it';
  report.warning('iv_in_playlist', `${at}.iv`, sentence);
  const bytes = hexOf(iv);
  if (bytes) report.claim({ of: 'iv', at: `${at}.iv`, iv: bytes });
}

const SYSTEM_OF_FORMAT: Readonly<Record<string, string>> = {
  'com.microsoft.playready': PLAYREADY_SYSTEM_ID,
  'com.widevine': WIDEVINE_SYSTEM_ID,
  [`urn:uuid:${PLAYREADY_SYSTEM_ID}`]: PLAYREADY_SYSTEM_ID,
  [`urn:uuid:${WIDEVINE_SYSTEM_ID}`]: WIDEVINE_SYSTEM_ID,
};

const SCHEMES: Readonly<Record<string, string>> = { 'SAMPLE-AES': 'cbcs', 'SAMPLE-AES-CTR': 'cenc' };

function signallingIn(claims: readonly Claim[], at: string): KeySignallingAt {
  return {
    at,
    keyIds: claimsOf(claims, 'box').map(({ keyId }) => keyId),
    ciphers: claimsOf(claims, 'cipher').map(({ cipher }) => cipher),
  };
}

/** Widevine's attribute, in hex and big endian. */
function describeKeyId(
  report: Report,
  at: string,
  method: string,
  text: string | undefined,
  named: KeySignallingAt,
): void {
  if (text === undefined) return;
  const name = `${at}.keyid`;
  const keyId = hexOf(text);
  if (!keyId) {
    report.warning('not_hex', name, 'is not 0x and 32 hex digits; write the key id so, big endian');
    return;
  }
  keyIdField(report, name, keyId);
  report.claim({ of: 'track', at: name, scheme: SCHEMES[method], keyId });
  if (named.keyIds.length > 0) compareTrack(report, name, keyId, named, 'error');
}

function compareMethod(report: Report, at: string, method: string, { ciphers }: KeySignallingAt): void {
  const cipher = cipherOf(SCHEMES[method]);
  if (cipher === undefined || ciphers.length === 0 || ciphers.includes(cipher)) return;
  const sentence = `is ${method} (${cipher}), but the data in ${at}.uri are for ${ciphers[0]}; make them agree`;
  report.warning('scheme_mismatch', `${at}.method`, sentence);
}

const HAS_KEY = 'contains the key, so that everyone has it';

function hexOf(text: string): Buffer | undefined {
  const digits = /^0x([0-9a-f]{32})$/i.exec(text)?.[1];
  return digits === undefined ? undefined : Buffer.from(digits, 'hex');
}

function describeAddress(
  report: Report,
  at: string,
  method: string,
  format: string,
  address: string,
  { keyIds, describeBytes }: LineContext,
): void {
  const isFairPlay = format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(address);
  const inline = inlineBase64(address);
  const bytes = inline === undefined ? undefined : readByteText(inline)?.bytes;
  const isKeyId = bytes !== undefined && keyIds.has(bytes.toString('hex'));
  if (isFairPlay) {
    if (format !== FAIRPLAY_KEY_FORMAT)
      report.error('wrong_constant', `${at}.keyformat`, `must be ${FAIRPLAY_KEY_FORMAT} for FairPlay`);
    if (method !== 'SAMPLE-AES')
      report.error('wrong_constant', `${at}.method`, 'must be SAMPLE-AES for FairPlay');
    checkAddress(report, `${at}.uri`, 'fairplay', address);
    report.claim({ of: 'address', at: `${at}.uri`, system: 'fairplay', address });
    report.claim({ of: 'track', at: `${at}.method`, scheme: SCHEMES[method], keyId: undefined });
  } else if (format === 'identity') {
    // The content of such an address, or the address itself, is the key: it is not shown.
    const own = `is identity, so that the key itself is fetched; FairPlay has ${FAIRPLAY_KEY_FORMAT}`;
    if (/^http:/i.test(address))
      report.warning('plain_http', `${at}.uri`, 'is plain http, so that others may read the key on its way');
    if (inline !== undefined && !isKeyId) report.warning('content_key_in_address', `${at}.uri`, HAS_KEY);
    if (method === 'SAMPLE-AES' && /fairplay|\bfps\b/i.test(address))
      report.warning('not_fairplay', `${at}.keyformat`, own);
  } else if (inline !== undefined) {
    const systemId = SYSTEM_OF_FORMAT[format.toLowerCase()];
    const read = bytes && [bytes, readTwiceEncoded(bytes)?.bytes];
    const hasKey = bytes?.includes('"k"') || read?.some((each) => each?.length === 16);
    const other = bytes && systemId && foreignSystemOf(bytes, systemId);
    if (other)
      report.error('system_mismatch', `${at}.uri`, `has a box of ${other}, but the key format is ${format}`);
    if (!bytes) report.error('not_base64', `${at}.uri`, 'holds data that is not base64');
    else if (!systemId && !isKeyId && hasKey)
      // A key for ClearKey, or its license: it is not shown.
      report.warning('content_key_in_address', `${at}.uri`, HAS_KEY);
    else if (bytes.toString('latin1', 0, 1) === '{')
      report.field(`${at}.uri`, 'JSON', 'not read; the older key format of Widevine has the key ids in it');
    else describeBytes(report, bytes);
  } else checkAddress(report, `${at}.uri`, 'playready', address);
}
