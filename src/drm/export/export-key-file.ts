import { NO_SYSTEM } from '../cross-check';
import { type Finding, type Problem, warning } from '../finding';
import { ALGORITHM, CMAF, DASH, FAIRPLAY_KEY_FORMAT, HLS, MASK, parseKeyFile } from '../key-file';
import { boxOf, type PackagingCode, type PackagingKeys, readPackagingKeys } from '../packaging';
import { EXPORT_FORMS, type StreamKey } from './forms';
import type { ExportName, ExportScheme } from './names';

export interface ExportedKeys {
  readonly text: string;
  readonly keys: readonly [StreamKey, ...StreamKey[]];
  readonly findings: readonly Finding[];
}

/** A key file in another packager's form, or why it can't be had: the sentence goes on after `The key file`. */
export type Exported =
  | ({ readonly ok: true } & ExportedKeys)
  | { readonly ok: false; readonly problem: Problem<PackagingCode | 'keys_missing'> };

/**
 * Writes the keys of a key file's text as another packager takes them.
 * @param scheme undefined: of a form that holds both keys, all there are, else the one of `cenc` before that of `cbcs`
 */
export function exportKeyFile(text: string, as: ExportName, scheme: ExportScheme | undefined): Exported {
  const read = readPackagingKeys(text, false);
  if (!read.ok) return read;
  const form = EXPORT_FORMS[as];
  const others = otherLines(text);
  const all = streamKeysOf(read.keys).filter((key) => scheme === undefined || key.scheme === scheme);
  const [first, ...more] = all.filter((key) => others[key.scheme] === undefined);
  if (!first) {
    const description = others[scheme ?? all[0]?.scheme ?? 'cenc'] ?? MISSING[scheme ?? 'cenc'];
    return { ok: false, problem: { code: 'keys_missing', description } };
  }
  const keys: Keys = form.holdsBoth ? [first, ...more] : [first];
  const rendered = renderKeys(as, keys);
  // A form of one key has all keys that it can have.
  const wanted = form.holdsBoth ? all : all.slice(0, all.indexOf(first));
  const findings = [
    ...rendered.findings,
    ...wanted.flatMap((key) => leftOutFindings(others[key.scheme])),
    ...(form.holdsBoth && scheme === undefined && !read.keys.hls ? leftOutFindings(others.cbcs) : []),
  ];
  return { ok: true, ...rendered, findings };
}

/** Writes keys as a packager takes them. */
export function renderKeys(as: ExportName, keys: Keys): ExportedKeys {
  const { render, limit } = EXPORT_FORMS[as];
  const text = render(keys);
  return { text, keys, findings: [...systemFindings(keys), ...lengthFindings(text, limit)] };
}

const THE_EXPORT = { called: 'The export' };

type Keys = readonly [StreamKey, ...StreamKey[]];

const MISSING: Readonly<Record<ExportScheme, string>> = {
  cenc: 'has no DASH lines, which cenc needs; provision the stream with cenc, or ask for the scheme cbcs',
  cbcs: 'has no FairPlay lines, which cbcs needs; provision the stream with fairplay, or ask for the scheme cenc',
};

/** Why the lines of a scheme's key are not exported as that scheme: existing key files may have others. */
function otherLines(text: string): Partial<Record<ExportScheme, string>> {
  const values = new Map(parseKeyFile(text).lines.map(({ name, value }) => [name, value]));
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

function systemFindings(keys: Keys): Finding[] {
  if (keys.every(({ systems, keyUri }) => systems.length > 0 || keyUri !== undefined)) return [];
  return [warning('no_drm_system', THE_EXPORT, NO_SYSTEM)];
}

function lengthFindings(text: string, limit: (typeof EXPORT_FORMS)[ExportName]['limit']): Finding[] {
  const bytes = Buffer.byteLength(text);
  if (!limit || bytes <= limit.bytes) return [];
  return [warning('export_too_long', THE_EXPORT, `has ${bytes} bytes, and ${limit.sentence}`)];
}

export function maskExport(text: string, keys: readonly StreamKey[]): string {
  return keys
    .flatMap(({ key, iv }) => (iv ? [key, iv] : [key]))
    .flatMap((secret) => [secret.toString('hex'), secret.toString('base64')])
    .reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

function streamKeysOf({ dash, hls }: PackagingKeys): StreamKey[] {
  const keys: StreamKey[] = [];
  if (dash) {
    const { keyId, contentKey: key, systems } = dash;
    keys.push({
      scheme: 'cenc',
      keyId,
      key,
      systems,
      boxes: systems.length > 0 ? systems.map(boxOf) : dash.boxes,
    });
  }
  if (hls) {
    const { keyId, key, iv, keyUri } = hls;
    keys.push({ scheme: 'cbcs', keyId, key, iv, keyUri, systems: [], boxes: [] });
  }
  return keys;
}
