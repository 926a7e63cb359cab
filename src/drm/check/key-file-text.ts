import { formatUuid, swapKeyIdOrder } from '../bytes';
import type { KeyValues, ValueNames, ValuesContext } from '../cross-check';
import { type Finding, finding } from '../finding';
import {
  ALGORITHM,
  CMAF,
  DASH,
  FAIRPLAY_KEY_FORMAT,
  FOREIGN_LINE,
  HLS,
  NO_CMAF_CBCS,
  parseKeyFile,
} from '../key-file';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID, type WidevinePsshData } from '../widevine';
import { type Lines, readLines, THE_FILE, unknownLine } from './key-file-lines';
import { checkParts, type Parts, type PartsContext, reportNoSystem } from './part-values';
import { Report } from './report';
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
  if (cmafValues && dash.parts.cenc) compareFamilies(report, lines, values, cmafValues);
  const isPlayReady = !hls.fairplay && PLAYREADY_METHODS.includes(lines.get(`${HLS}-method`) ?? '');
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

/** Of the systems in a CENC family: the id, and the line that each needs when it is switched on. */
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

/**
 * The HLS lines as a part of a request: FairPlay's, or those of a key that has an address of its own, by AES-128, by
 * SAMPLE-AES with another key format than FairPlay's, or by PlayReady's methods.
 */
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
  // An app may load the keys of such addresses itself, in whatever format.
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

/** The lines of a key that players fetch from its address. */
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
    const sentence = 'should be true: players that find no IV there take the number of the segment';
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
