import { decodeHexBlock, formsOfBytes, isZero, swapKeyIdOrder, utf16Text } from '../bytes';
import { SecretFinder } from '../check/secrets';
import { NO_SYSTEM } from '../cross-check';
import { type Finding, type Problem, warning } from '../finding';
import { ALGORITHM, CMAF, checkLicenseUrl, DASH, FAIRPLAY_KEY_FORMAT, HLS, parseKeyFile } from '../key-file';
import { fairPlayKeyId, type PackagingCode, readPackagingKeys, type StreamKey } from '../packaging';
import { EXPORT_FORMS } from './forms';
import type { ExportName, ExportScheme } from './names';

export interface ExportedKeys {
  readonly text: string;
  readonly keys: readonly [StreamKey, ...StreamKey[]];
  readonly findings: readonly Finding[];
}

/** A key file in another packager's form, or why it can't be had: the sentence goes on after `The key file`. */
type Exported =
  | ({ readonly ok: true } & ExportedKeys)
  | { readonly ok: false; readonly problem: Problem<PackagingCode | 'keys_missing'> };

/** Without `scheme`: all keys in a form that holds both, else the one of `cenc` before the other. */
export function exportKeyFile(text: string, as: ExportName, scheme: ExportScheme | undefined): Exported {
  const form = EXPORT_FORMS[as];
  const taken = schemesOf(as);
  if (scheme && !taken.includes(scheme)) return keysMissing(notTaken(as, scheme));
  const values = new Map(parseKeyFile(text).lines.map(({ name, value }) => [name, value]));
  const aes = taken.includes('aes-128') ? aesKeys(values) : [];
  const read = readPackagingKeys(text, false, aes.length === 0);
  if (!read.ok) return read;
  const others = otherLines(values);
  const { dash, hls } = read.keys;
  const present: StreamKey[] = [...(dash ? [dash] : []), ...(hls ? [hls] : []), ...aes];
  const all = present.filter((key) => taken.includes(key.scheme) && key.scheme === (scheme ?? key.scheme));
  const [first, ...more] = all.filter((key) => others[key.scheme] === undefined);
  if (!first) {
    const other = present.find((key) => taken.includes(key.scheme));
    const missing = `${MISSING[scheme ?? 'cenc']}${other ? `, or ask for the scheme ${other.scheme}` : ''}`;
    return keysMissing(others[scheme ?? all[0]?.scheme ?? 'cenc'] ?? missing);
  }
  const keys: Keys = form.holdsBoth ? [first, ...more] : [first];
  const left = scheme === undefined ? present.filter((key) => !keys.includes(key)) : [];
  const rendered = renderKeys(as, keys, left);
  // A form of one key has all keys that it can have.
  const wanted = form.holdsBoth ? all : all.slice(0, all.indexOf(first));
  // Without its line, or with a wrong one, players of a system don't play.
  const isOfSystem = ({ severity, field = '' }: Finding) =>
    severity === 'error' && keys[0].scheme === 'cenc' && field.includes('-keyserver-');
  const findings = [
    ...read.findings.filter(isOfSystem),
    ...rendered.findings,
    ...wanted.flatMap((key) => leftOutFindings(others[key.scheme])),
    ...(form.holdsBoth && scheme === undefined && !hls ? leftOutFindings(others.cbcs) : []),
  ];
  return { ok: true, ...rendered, findings };
}

/** `left`: keys that are left out though the request names no scheme. */
export function renderKeys(
  as: ExportName,
  keys: Keys,
  left: readonly Pick<StreamKey, 'scheme'>[],
): ExportedKeys {
  const { render, limit, warnsOfOthers } = EXPORT_FORMS[as];
  const text = render(keys);
  const ofOthers = (warnsOfOthers ? left : []).map(({ scheme }) => {
    const what = schemesOf(as).includes(scheme) ? `ask for the scheme ${scheme}` : `${as} does not take it`;
    return warning('key_left_out', THE_EXPORT, `does not have the key of ${scheme}; ${what}`);
  });
  const ofZeros = keys.some(({ key, keyId }) => isZero(key) || isZero(keyId))
    ? [warning('all_zero', THE_EXPORT, 'has a key or key id of all zeros; provision the stream again')]
    : [];
  const findings = [...ofZeros, ...systemFindings(as, keys), ...ofOthers, ...lengthFindings(text, limit)];
  return { text, keys, findings };
}

const BOTH: readonly ExportScheme[] = ['cenc', 'cbcs'];

export function schemesOf(as: ExportName): readonly ExportScheme[] {
  return EXPORT_FORMS[as].schemes ?? BOTH;
}

/** Why a scheme can't be had; goes on after `The key file` or the name of a document. */
export function notTaken(as: ExportName, scheme: ExportScheme, taken = schemesOf(as)): string {
  return `can't be exported as ${as} with the scheme ${scheme}; ask for ${taken.join(' or ')}`;
}

function keysMissing(description: string): Exported {
  return { ok: false, problem: { code: 'keys_missing', description } };
}

const THE_EXPORT = { called: 'The export' };

type Keys = readonly [StreamKey, ...StreamKey[]];
type Values = ReadonlyMap<string, string>;

const MISSING: Readonly<Record<ExportScheme, string>> = {
  cenc: 'has no DASH lines, which cenc needs; provision the stream with cenc',
  cbcs: 'has no FairPlay lines, which cbcs needs; provision the stream with fairplay',
  'aes-128': 'has no HLS lines of AES-128, which aes-128 needs; provision the stream with aes',
};

/** Why the lines of a scheme's key are not exported as that scheme: existing key files may have others. */
function otherLines(values: Values): Partial<Record<ExportScheme, string>> {
  const isOther = (name: string, value: string) => (values.get(name) ?? value) !== value;
  // Former versions wrote CMAF lines with AESCBC next to those of DASH, whose key it is.
  const family = values.has(`${DASH}-algorithm`) ? DASH : CMAF;
  return {
    ...(isOther(`${family}-algorithm`, ALGORITHM) && {
      cenc: `has an algorithm other than ${ALGORITHM} in its DASH lines, which cenc needs; provision the stream again`,
    }),
    ...((isOther(`${HLS}-method`, 'SAMPLE-AES') || isOther(`${HLS}-key-format`, FAIRPLAY_KEY_FORMAT)) && {
      cbcs: "has HLS lines with another method or key format than FairPlay's, which cbcs needs; provision the stream with fairplay",
    }),
  };
}

function leftOutFindings(sentence: string | undefined): Finding[] {
  if (sentence === undefined) return [];
  return [warning('key_left_out', THE_EXPORT, `does not have all keys, because the key file ${sentence}`)];
}

function systemFindings(as: ExportName, keys: Keys): Finding[] {
  const { noSystems } = EXPORT_FORMS[as];
  if (keys.some(({ systems, keyUri }) => systems.length === 0 && keyUri === undefined))
    return [warning('no_drm_system', THE_EXPORT, NO_SYSTEM)];
  const isLost = noSystems !== undefined && keys.some(({ systems }) => systems.length > 0);
  return isLost ? [warning('no_drm_system', THE_EXPORT, noSystems)] : [];
}

function lengthFindings(text: string, limit: (typeof EXPORT_FORMS)[ExportName]['limit']): Finding[] {
  const bytes = Buffer.byteLength(text);
  if (!limit || bytes <= limit.bytes) return [];
  return [warning('export_too_long', THE_EXPORT, `has ${bytes} bytes, and ${limit.sentence}`)];
}

/** An export without its keys and IVs, also in any form in an address. */
export function maskExport(as: ExportName, keys: Keys): string {
  const finder = new SecretFinder();
  for (const secret of keys.flatMap(({ key, iv }) => (iv ? [key, iv] : [key])))
    finder.addForms([secret, swapKeyIdOrder(secret)].flatMap(formsOfBytes));
  const hide = (data: Buffer) => {
    // A PlayReady object, the only one with an address.
    const text = utf16Text(data);
    const masked = finder.mask(text);
    return masked === text ? data : Buffer.from(masked, 'utf16le');
  };
  // In most forms an address is encoded once more.
  const hidden = ({ keyUri, systems, ...key }: StreamKey): StreamKey => ({
    ...key,
    ...(keyUri !== undefined && { keyUri: finder.mask(keyUri) }),
    systems: systems.map(({ systemId, data }) => ({ systemId, data: hide(data) })),
  });
  const [first, ...more] = keys;
  return finder.mask(EXPORT_FORMS[as].render([hidden(first), ...more.map(hidden)]));
}

/**
 * The one key of HLS lines of AES-128, if they can be used. It must not be one of FairPlay or of SAMPLE-AES, which encrypt
 * samples: its address would have to hand out a key that players get from a license server alone.
 */
function aesKeys(values: Values): StreamKey[] {
  const get = (name: string) => values.get(`${HLS}-${name}`) ?? '';
  const [keyUri, key, iv] = [get('url'), decodeHexBlock(get('key')), decodeHexBlock(get('iv'))];
  const isAes = get('method') === 'AES-128' && ['', 'identity'].includes(get('key-format'));
  if (!isAes || !checkLicenseUrl('aes')(keyUri).ok || !key.ok || !(iv.ok || get('iv') === '')) return [];
  const keyId = fairPlayKeyId(keyUri);
  return [{ scheme: 'aes-128', keyId, key: key.value, ...(iv.ok && { iv: iv.value }), keyUri, systems: [] }];
}
