import { formatUuid, swapKeyIdOrder } from '../bytes';
import { NO_CMAF_CBCS } from '../cmaf-cbcs';
import type { KeyValues, ValueNames, ValuesContext } from '../cross-check';
import { type Finding, finding, type Subject } from '../finding';
import {
  ALGORITHM,
  CMAF,
  DASH,
  FAIRPLAY_KEY_FORMAT,
  FOREIGN_LINE,
  HLS,
  isLineText,
  KNOWN_LINES,
  parseKeyFile,
} from '../key-file';
import { nearestName, type UnknownName, unknownName } from '../nearest';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID, type WidevinePsshData } from '../widevine';
import { checkParts, type Parts, type PartsContext, reportNoSystem } from './part-values';
import { Report, subjectOf } from './report';
import { holdsSecret } from './secrets';
import { textOrHex } from './values';

export interface KeyFileSummary {
  /** Of `cenc`, `widevine`, `playready`, `fairplay`, `aes` and `cmaf`, those that the file has lines of. */
  readonly parts: readonly string[];
  /** A UUID's text. */
  readonly keyId: string | undefined;
  readonly contentId: string | undefined;
  readonly faults: readonly Finding[];
}

export function summariseKeyFile(text: string): KeyFileSummary {
  const report = new Report();
  const { parts, keyId, contentId } = checkKeyFile(report, text);
  const unlessSecret = (value: string | undefined) =>
    value !== undefined && holdsSecret(value, report.secrets) ? undefined : value;
  return { parts, keyId: unlessSecret(keyId), contentId: unlessSecret(contentId), faults: report.findings };
}

export function checkKeyFile(report: Report, text: string): Omit<KeyFileSummary, 'faults'> {
  const lines = readLines(report, text);
  const has = (prefix: string) => [...lines.keys()].some((name) => name.startsWith(`${prefix}-`));
  if (lines.size === 0 && !parseKeyFile(text).lines.some(({ name }) => mayProtect(name)))
    report.error('no_lines', THE_FILE, 'has no line that the packager knows; it protects nothing');
  const hls = has(HLS) ? hlsParts(report, lines) : {};
  const dash = readFamily(report, lines, DASH);
  const cmaf = has(CMAF) ? readFamily(report, lines, CMAF) : undefined;
  const values = checkParts(report, { ...dash.parts, ...hls }, dash);
  const cmafValues = cmaf && checkParts(report, cmaf.parts, cmaf);
  if (cmafValues) compareFamilies(report, lines, values, cmafValues);
  const isPlayReady = PLAYREADY_METHODS.includes(lines.get(`${HLS}-method`) ?? '');
  if ((dash.parts.cenc || cmaf) && !hls.fairplay && !isPlayReady && ![dash, cmaf].some(hasSystem))
    reportNoSystem(report, THE_FILE);
  const keyId = values.keyId ?? cmafValues?.keyId;
  const contentId = (values.widevine ?? cmafValues?.widevine)?.contentId;
  const isPart = (name: keyof Parts) => dash.parts[name] !== undefined || cmaf?.parts[name] !== undefined;
  return {
    parts: [
      ...(['cenc', 'widevine', 'playready'] as const).filter(isPart),
      ...(hls.fairplay ? ['fairplay'] : []),
      ...(hls.aes && !isPlayReady ? ['aes'] : []),
      ...(cmaf ? ['cmaf'] : []),
    ],
    keyId: keyId && formatUuid(keyId),
    contentId: contentId && textOrHex(contentId).value,
  };
}

/** Whether an unknown line is one that the packager may know: a file of such lines alone can protect a stream. */
function mayProtect(name: string): boolean {
  return FOREIGN_LINE.test(name) || (name.startsWith('cmafstreaming-') && !unknownLine(name).near);
}

function hasSystem(family: Family | undefined): boolean {
  return family?.parts.widevine !== undefined || family?.parts.playready !== undefined;
}

interface Family extends PartsContext {
  readonly parts: Parts;
}

function readFamily(report: Report, lines: Lines, prefix: string): Family {
  const get = (name: string) => lines.get(`${prefix}-${name}`);
  const has = [...lines.keys()].some((name) => name.startsWith(`${prefix}-`));
  const scheme = readScheme(report, prefix, get('algorithm'));
  const context = { source: 'key_file', scheme, names: valueNames(prefix) } as const;
  if (!has) return { ...context, parts: {} };
  for (const name of ['key-id', 'content-key', 'algorithm']) {
    if (get(name) === undefined) missing(report, `${prefix}-${name}`, `the other ${prefix} lines need it`);
  }
  const widevine = isOn(report, lines, prefix, 'widevine');
  const playready = isOn(report, lines, prefix, 'playready');
  const checksum = get('keyserver-playready-checksum');
  if (playready && scheme === 'cenc' && checksum === undefined)
    report.warning('missing_line', context.names['playready.checksum'], 'is missing; some players need it');
  const parts: Parts = {
    cenc: { keyid: get('key-id'), contentkey: get('content-key') },
    ...(widevine && { widevine: { psshdata: get('keyserver-widevine-pssh-data') } }),
    ...(playready && { playready: { laurl: get('keyserver-playready-license-url'), checksum } }),
  };
  return { ...context, parts };
}

function valueNames(prefix: string): ValueNames {
  return {
    'cenc.keyid': `${prefix}-key-id`,
    'cenc.contentkey': `${prefix}-content-key`,
    'widevine.psshdata': `${prefix}-keyserver-widevine-pssh-data`,
    'playready.laurl': `${prefix}-keyserver-playready-license-url`,
    'playready.checksum': `${prefix}-keyserver-playready-checksum`,
    'fairplay.laurl': `${HLS}-url`,
    'fairplay.key': `${HLS}-key`,
    'fairplay.iv': `${HLS}-iv`,
    'aes.url': `${HLS}-url`,
    'aes.key': `${HLS}-key`,
    'aes.iv': `${HLS}-iv`,
  };
}

/** In the CMAF lines of some existing key files; this service wrote it, too. */
const AESCBC = 'AESCBC';

function readScheme(report: Report, prefix: string, algorithm: string | undefined): ValuesContext['scheme'] {
  if (algorithm === undefined && prefix === CMAF) return undefined;
  if (algorithm === undefined || algorithm === ALGORITHM) return 'cenc';
  const name = `${prefix}-algorithm`;
  if (algorithm !== AESCBC || prefix === DASH) report.error('wrong_constant', name, `must be ${ALGORITHM}`);
  else {
    const sentence = `is AESCBC (cbcs), but ${NO_CMAF_CBCS}; use FairPlay's lines for that, and ${ALGORITHM} here`;
    report.warning('unsupported_scheme', name, sentence);
  }
  return algorithm === AESCBC ? 'cbcs' : 'cenc';
}

const SYSTEMS = {
  widevine: { id: WIDEVINE_SYSTEM_ID, needed: 'pssh-data' },
  playready: { id: PLAYREADY_SYSTEM_ID, needed: 'license-url' },
} as const;

function isOn(report: Report, lines: Lines, prefix: string, system: keyof typeof SYSTEMS): boolean {
  const { id, needed } = SYSTEMS[system];
  const name = `${prefix}-keyserver-${system}`;
  const value = lines.get(name);
  if (value === 'false' || ![...lines.keys()].some((line) => line.startsWith(name))) return false;
  if (value === undefined) missing(report, name, `without it the other ${name} lines do nothing`, ': true');
  else if (value !== 'true') report.error('wrong_constant', name, 'must be true, in lower case');
  for (const line of [`${name}-system-id`, `${name}-${needed}`]) {
    if (!lines.has(line)) missing(report, line, `${name} needs it`);
  }
  const given = lines.get(`${name}-system-id`);
  if (given !== undefined && given !== '' && given.toLowerCase() !== id) {
    report.error('wrong_constant', `${name}-system-id`, `must be ${id}`);
  }
  return true;
}

function missing(report: Report, name: string, why: string, value = ''): void {
  report.error('missing_line', name, `is missing; add ${value === '' ? 'it' : `${name}${value}`}, ${why}`);
}

const PSSH_DATA = 'keyserver-widevine-pssh-data';
const COMPARED = ['key-id', 'content-key', 'keyserver-playready-license-url', PSSH_DATA];

/** The DASH and CMAF lines of a stream usually have one key; the same key id with two keys never plays. */
function compareFamilies(report: Report, lines: Lines, dash: KeyValues, cmaf: KeyValues): void {
  const isSameId = dash.keyId && cmaf.keyId?.equals(dash.keyId);
  const isSameKey = dash.contentKey && cmaf.contentKey?.equals(dash.contentKey);
  const isSwapped = isSameKey && dash.keyId && cmaf.keyId?.equals(swapKeyIdOrder(dash.keyId)) && !isSameId;
  const isOtherKey = isSameId && dash.contentKey && cmaf.contentKey && !isSameKey;
  if (isSwapped) {
    const sentence = `is ${DASH}-key-id in the other byte order; both must be big endian (as in a UUID)`;
    report.error('key_id_byte_order', `${CMAF}-key-id`, sentence);
  } else if (isOtherKey) {
    const sentence = `differs from ${DASH}-content-key though the key id is the same; give both the key of that key id`;
    report.error('cmaf_disagrees', `${CMAF}-content-key`, sentence);
  }
  for (const name of isSwapped || isOtherKey ? [] : COMPARED) {
    const [one, other] = [lines.get(`${DASH}-${name}`), lines.get(`${CMAF}-${name}`)];
    if (one === undefined || other === undefined || one === other) continue;
    if (name === PSSH_DATA && isOfSameContent(dash.widevine, cmaf.widevine)) continue;
    const sentence = `differs from ${DASH}-${name}; check whether this is intended`;
    report.warning('cmaf_disagrees', `${CMAF}-${name}`, sentence);
  }
}

/** Whether Widevine data differ in nothing but their scheme, in which the two families may well differ. */
function isOfSameContent(one: WidevinePsshData | undefined, other: WidevinePsshData | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  const [content, expected] = [one, other].map((data) =>
    buildWidevinePsshData({ ...data, algorithm: undefined, protectionScheme: undefined }).toString('hex'),
  );
  return content === expected;
}

/** How the packager protects HLS with PlayReady (Wowza, "Secure HLS streaming using DRM encryption"). */
const PLAYREADY_METHODS: readonly string[] = ['ENVELOPE-PLAYREADY', 'CHUNK-PLAYREADY'];

/** FairPlay's lines, or those of a key with an address: AES-128, other key formats, PlayReady's methods. */
export function hlsParts(report: Report, lines: Lines): Pick<Parts, 'fairplay' | 'aes'> {
  const get = (name: string) => lines.get(`${HLS}-${name}`);
  const [method, url, format] = [get('method'), get('url'), get('key-format')];
  const isAsked = format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(url ?? '');
  const part = { url, key: get('key'), iv: get('iv') };
  if (!isAsked && method !== undefined && PLAYREADY_METHODS.includes(method)) {
    report.field(`${HLS}-method`, method, 'PlayReady over HLS');
    return { aes: part };
  }
  const isAes = !isAsked && (method ?? 'AES-128') === 'AES-128' && (format ?? 'identity') === 'identity';
  if (isAes || (!isAsked && method === 'SAMPLE-AES')) {
    checkFetchedKey(report, lines, isAes);
    return { aes: part };
  }
  constant(report, `${HLS}-method`, method, 'SAMPLE-AES', 'error');
  // An app may load the keys of such addresses itself, in any format.
  const severity = method === 'SAMPLE-AES' ? 'warning' : 'error';
  constant(report, `${HLS}-key-format`, format, FAIRPLAY_KEY_FORMAT, severity);
  constant(report, `${HLS}-key-format-version`, get('key-format-version'), '1', 'warning');
  for (const name of ['url', 'key', 'iv']) {
    if (get(name) === undefined) missing(report, `${HLS}-${name}`, 'FairPlay needs it');
  }
  if (get('iv-include-in-chunklist') !== 'false') {
    const sentence = 'should be false: Apple wants no IV in a FairPlay playlist, the license contains it';
    report.warning('iv_in_playlist', `${HLS}-iv-include-in-chunklist`, sentence);
  }
  return { fairplay: { key: part.key, iv: part.iv, laurl: url } };
}

function checkFetchedKey(report: Report, lines: Lines, isAes: boolean): void {
  const get = (name: string) => lines.get(`${HLS}-${name}`);
  for (const name of ['url', 'key']) {
    if (get(name) === undefined) missing(report, `${HLS}-${name}`, 'the other lines of HLS need it');
  }
  const [format, include] = [get('key-format'), get('iv-include-in-chunklist')];
  const isFormatMissing = format === undefined && get('key-format-version') !== undefined;
  const isOther = format !== undefined && format !== 'identity';
  const isAddressOfFairPlay = /fairplay|\bfps\b/i.test(get('url') ?? '');
  if (!isAes && (isFormatMissing || isOther || isAddressOfFairPlay || include === 'false')) {
    const fault = format === undefined ? 'is missing' : `is not ${FAIRPLAY_KEY_FORMAT}`;
    const sentence = `${fault}, though the other lines of HLS look like FairPlay's; write ${FAIRPLAY_KEY_FORMAT}, unless players fetch the key itself`;
    report.warning('not_fairplay', `${HLS}-key-format`, sentence);
  } else if (get('iv') !== undefined && include === 'false') {
    const sentence = 'should be true: players that find no IV in the playlist take the number of the segment';
    report.warning('iv_not_in_playlist', `${HLS}-iv-include-in-chunklist`, sentence);
  }
}

function constant(
  report: Report,
  name: string,
  value: string | undefined,
  expected: string,
  severity: Finding['severity'],
): void {
  if (value === undefined)
    report.add(finding(severity, 'missing_line', name, `is missing; add ${name}: ${expected}`));
  else if (value !== expected)
    report.add(finding(severity, 'wrong_constant', name, `must be ${expected} for FairPlay`));
}

type Lines = ReadonlyMap<string, string>;

const THE_FILE: Subject = { called: 'The file' };

function readLines(report: Report, text: string): Lines {
  const meant = readMeantText(report, text);
  checkText(report, meant);
  const { lines, unreadable } = parseKeyFile(meant);
  for (const number of unreadable) {
    report.error('unreadable_line', { called: `Line ${number}` }, UNREADABLE);
  }
  const values = new Map<string, string>();
  for (const { name, value } of lines) {
    if (!KNOWN_LINES.has(name)) {
      if (!report.isFull) checkUnknown(report, name);
      continue;
    }
    const former = values.get(name);
    if (former === undefined) values.set(name, value);
    else if (former === value) report.warning('duplicate_line', name, 'appears twice; remove one');
    else report.error('duplicate_line', name, 'appears twice with different values; remove the wrong one');
    if (value === '') report.error('empty', name, 'has no value');
    else if (!isLineText(value)) report.error('control_character', name, CONTROL_CHARACTER);
  }
  return values;
}

export const CONTROL_CHARACTER = 'holds a control character, which no key file can have';
export const UNREADABLE = 'is not "name: value"; correct it, or start it with # to make it a comment';

/** Whether a text is a key file or a failed attempt at one; it may have only comments. */
export function looksLikeKeyFile(text: string): boolean {
  if (/^\ufeff?\s*#(?!EXT)/.test(text) && !/^[^\S\r\n]*[^#\s]/m.test(text)) return true;
  return withoutZeros(text.slice(0, 100_000))
    .split(/[\r\n]+/, 300)
    .some((line) => {
      if (hasEquals(line)) return true;
      const name = /^\s*([A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+)\s*:/.exec(line.slice(0, 200))?.[1];
      return (
        name !== undefined &&
        (/streaming|cenc|aes128|keyserver/i.test(name) || nearestName(name, KNOWN_LINES) !== undefined)
      );
    });
}

function checkText(report: Report, text: string): void {
  if (text.startsWith('\ufeff'))
    report.warning('byte_order_mark', THE_FILE, 'starts with a byte order mark; save it without one');
  if (text.includes('\r'))
    report.warning('carriage_return', THE_FILE, 'has Windows line ends; save it with line feeds (LF)');
  // The blank after the colon of a line without a value is not reported separately.
  const blank = text.search(/(?<![:\s])[^\S\r\n]+(?:\r|\n|$)/);
  if (blank >= 0) {
    const number = text.slice(0, blank).split(/\r\n|\r|\n/).length;
    const sentence = 'ends with white space; remove it, a packager may treat it as part of the value';
    report.warning('white_space', { called: `Line ${number}` }, sentence);
  }
  if (text.includes('\ufffd') || text.includes('\0'))
    report.error('not_utf8', THE_FILE, 'holds bytes that are not UTF-8 text; save it as UTF-8');
}

export function unknownLine(name: string): UnknownName {
  return unknownName(name, FOREIGN_LINE.test(name) ? [] : KNOWN_LINES);
}

function checkUnknown(report: Report, name: string): void {
  const { shown, near } = unknownLine(name);
  const code = 'unknown_line';
  // Packagers know more lines than are listed here; the intended line of a misspelt one is reported as missing.
  const sentence = near
    ? `is an unknown line, and was not checked; did you mean ${near}?`
    : 'is not a line of DASH, CMAF or FairPlay, and was not checked';
  if (shown !== undefined) report.warning(code, subjectOf(shown), sentence);
  else report.error(code, { called: 'A line' }, 'has an invalid name; check whether a value is in its place');
}

const WITH_EQUALS = /^([^\S\r\n]*)([a-z0-9-]{1,100})[^\S\r\n]*=[^\S\r\n]*/;
/** How text in UTF-16 looks when it is read as UTF-8: a zero byte at every letter. */
const UTF_16 = /^(?:\ufffd{1,2}|\ufeff)?(?:(?:[^\0]\0){4}|(?:\0[^\0]){4})/;

/** A key file's intended text if it is UTF-16 or has `=` instead of `: `; each is one fault, not one for each line. */
export function readMeantText(report: Report, text: string): string {
  const isUtf16 = UTF_16.test(text);
  if (isUtf16) report.error('utf_16', THE_FILE, 'is UTF-16; save it as UTF-8');
  return withColons(report, isUtf16 ? withoutZeros(text) : text);
}

function withoutZeros(text: string): string {
  return UTF_16.test(text) ? text.replaceAll('\0', '').replaceAll('\ufffd', '') : text;
}

function hasEquals(line: string): boolean {
  return KNOWN_LINES.has(WITH_EQUALS.exec(line)?.[2] ?? '');
}

function withColons(report: Report, text: string): string {
  const numbers: number[] = [];
  const lines = text.split(/(\r\n|\r|\n)/).map((line, index) => {
    if (index % 2 === 1 || !hasEquals(line)) return line;
    numbers.push(index / 2 + 1);
    return line.replace(WITH_EQUALS, '$1$2: ');
  });
  const [first, last] = [numbers[0], numbers.at(-1)];
  if (first === undefined) return text;
  const isOne = first === last;
  const called = isOne ? `Line ${first}` : `${numbers.length} lines, from ${first} to ${last},`;
  const sentence = `${isOne ? 'has' : 'have'} = instead of ": " between name and value; write name: value`;
  report.error('equals_sign', { called }, sentence);
  return lines.join('');
}
