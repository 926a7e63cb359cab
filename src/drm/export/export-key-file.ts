import { type Finding, NO_SYSTEM } from '../cross-check';
import { MASK } from '../key-file';
import { type PackagingFault, readPackagingKeys } from '../packaging';
import { EXPORT_FORMS } from './forms';
import type { ExportName, ExportScheme } from './names';
import { type StreamKey, streamKeysOf } from './stream-key';

/** A key file in another packager's form, or why it can't be had: the sentence goes on after `The key file`. */
export type Exported =
  | {
      readonly ok: true;
      readonly text: string;
      /** What the text holds. */
      readonly keys: readonly [StreamKey, ...StreamKey[]];
      readonly findings: readonly Finding[];
    }
  | { readonly ok: false; readonly fault: ExportFault };

export interface ExportFault {
  readonly code: PackagingFault['code'] | 'keys_missing';
  readonly sentence: string;
}

/**
 * Writes the keys of a key file's text as another packager takes them.
 * @param scheme undefined: of a form that holds both keys, all there are, else the one of `cenc` before that of `cbcs`
 */
export function exportKeyFile(text: string, as: ExportName, scheme: ExportScheme | undefined): Exported {
  const read = readPackagingKeys(text, false);
  if (!read.ok) return read;
  const form = EXPORT_FORMS[as];
  const all = streamKeysOf(read.keys);
  const [first, ...others] = scheme === undefined ? all : all.filter((key) => key.scheme === scheme);
  if (!first) return { ok: false, fault: { code: 'keys_missing', sentence: LACKING[scheme ?? 'cenc'] } };
  const keys: Keys = form.holdsBoth ? [first, ...others] : [first];
  const rendered = form.render(keys);
  const findings = [...systemFindings(keys), ...lengthFindings(rendered, form.limit)];
  return { ok: true, text: rendered, keys, findings };
}

type Keys = readonly [StreamKey, ...StreamKey[]];

const LACKING: Readonly<Record<ExportScheme, string>> = {
  cenc: 'has no DASH lines, whose key cenc is for; provision the stream with cenc, or ask for the scheme cbcs',
  cbcs: 'has no FairPlay lines, whose key cbcs is for; provision the stream with fairplay, or ask for the scheme cenc',
};

function systemFindings(keys: Keys): Finding[] {
  if (keys.every(({ systems, keyUri }) => systems.length > 0 || keyUri !== undefined)) return [];
  return [{ severity: 'warning', code: 'no_drm_system', description: `The export ${NO_SYSTEM}` }];
}

function lengthFindings(text: string, limit: (typeof EXPORT_FORMS)[ExportName]['limit']): Finding[] {
  const bytes = Buffer.byteLength(text);
  if (!limit || bytes <= limit.bytes) return [];
  const description = `The export has ${bytes} bytes, and ${limit.sentence}`;
  return [{ severity: 'warning', code: 'export_too_long', description }];
}

/** An export with its keys and IVs masked, in whatever encoding they stand. */
export function maskExport(text: string, keys: readonly StreamKey[]): string {
  return keys
    .flatMap(({ key, iv }) => (iv ? [key, iv] : [key]))
    .flatMap((secret) => [secret.toString('hex'), secret.toString('base64')])
    .reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}
