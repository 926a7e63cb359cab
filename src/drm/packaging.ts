import { uuidOfName } from './bytes';
import type { ExportScheme } from './export/names';
import type { Finding, Problem } from './finding';
import { importKeyFile } from './import-key-file';
import { decodeKeys, HLS, type KeyFile } from './key-file';
import { PLAYREADY_SYSTEM_ID, playReadyObjectOf } from './playready';
import { buildPsshBox, COMMON_SYSTEM_ID } from './pssh';
import { WIDEVINE_SYSTEM_ID } from './widevine';

export interface DrmSystemData {
  readonly systemId: string;
  readonly data: Buffer;
}

export interface StreamKey {
  readonly scheme: ExportScheme;
  /** 16 bytes, big endian; of HLS, whose lines name none, the one that `fairPlayKeyId` makes of the address. */
  readonly keyId: Buffer;
  /** 16 bytes. */
  readonly key: Buffer;
  /** 16 bytes, the same for every sample. Of HLS alone: under `cenc` each packager makes its own. */
  readonly iv?: Buffer;
  readonly keyUri?: string;
  /** Those that a `pssh` box signals. FairPlay has none. */
  readonly systems: readonly DrmSystemData[];
}

export interface PackagingKeys {
  readonly dash: StreamKey | undefined;
  readonly hls: (StreamKey & Required<Pick<StreamKey, 'iv' | 'keyUri'>>) | undefined;
}

export type PackagingCode = 'key_file_torn' | 'key_file_foreign' | 'key_file_incomplete';

type Read =
  | { readonly ok: true; readonly keys: PackagingKeys; readonly findings: readonly Finding[] }
  | { readonly ok: false; readonly problem: Problem<PackagingCode> };

/**
 * Reads a key file as a packager does, but refuses faults that would leave a stream without protection, or
 * with a wrong one; a problem continues the name of the file. `needsSystem` refuses a key for DASH that no
 * DRM system signals, `needsKey` a file without a key for DASH or FairPlay.
 */
export function readPackagingKeys(text: string, needsSystem = true, needsKey = true): Read {
  if (text.trim() === '') return refused('key_file_torn', 'is empty; provision the stream again');
  if (!/[\r\n]$/.test(text)) {
    const sentence =
      'ends within a line, as if it was written only in part; add a line break if it is whole, or provision the stream again';
    return refused('key_file_torn', sentence);
  }
  const imported = importKeyFile(text, true);
  if (!imported.ok) {
    const problems = imported.problems
      .slice(0, 3)
      .map(({ field, line, description }) =>
        [field ?? (line && `line ${line}`), description].join(' ').trim(),
      );
    const code = imported.problems.some(({ line }) => line !== undefined)
      ? 'key_file_foreign'
      : 'key_file_incomplete';
    return refused(code, `can't be used: ${problems.join('; ').replace(/\.$/, '')}`);
  }
  const { cenc, widevine, playready, fairplay } = imported.keyFile;
  const keys = cenc && decodeKeys(cenc);
  if (cenc && !widevine && !playready && needsSystem) {
    const sentence =
      'has a key for DASH but neither Widevine nor PlayReady, so no player can request it; provision the stream again';
    return refused('key_file_incomplete', sentence);
  }
  const systems: DrmSystemData[] = [];
  if (widevine)
    systems.push({ systemId: WIDEVINE_SYSTEM_ID, data: Buffer.from(widevine.psshData, 'base64') });
  if (keys && playready) {
    const { licenseUrl, checksum } = playready;
    const data = playReadyObjectOf(keys.keyId, keys.contentKey, licenseUrl, checksum);
    systems.push({ systemId: PLAYREADY_SYSTEM_ID, data });
  }
  const dash = keys && { scheme: 'cenc' as const, keyId: keys.keyId, key: keys.contentKey, systems };
  const hls = fairplay && hlsKeyOf(fairplay);
  if (dash || hls || !needsKey) return { ok: true, keys: { dash, hls }, findings: imported.findings };
  // HLS with a key that players fetch is not packaged here.
  const found = text.includes(`${HLS}-key:`) ? ' (its HLS lines are not of FairPlay)' : '';
  const sentence = `has no lines of DASH or FairPlay${found}; provision the stream with its keys`;
  return refused('key_file_incomplete', sentence);
}

function hlsKeyOf({ licenseUrl: keyUri, key, iv }: NonNullable<KeyFile['fairplay']>) {
  return {
    scheme: 'cbcs' as const,
    keyId: fairPlayKeyId(keyUri),
    key: Buffer.from(key, 'hex'),
    iv: Buffer.from(iv, 'hex'),
    keyUri,
    systems: [],
  };
}

function refused(code: PackagingCode, description: string): Read {
  return { ok: false, problem: { code, description } };
}

/** Whole `pssh` boxes of a key's systems, then the common one (`hasCommon`), which ClearKey players take. */
export function boxesOf({ keyId, systems }: StreamKey, hasCommon: boolean): Buffer {
  const own = systems.map(({ systemId, data }) => buildPsshBox(systemId, data));
  const common = hasCommon ? [buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId])] : [];
  return Buffer.concat([...own, ...common]);
}

/** The namespace of URLs (RFC 9562 § 6.6). */
const URL_NAMESPACE = Buffer.from('6ba7b8119dad11d180b400c04fd430c8', 'hex');

/** The key id in `tenc` and in ClearKey licenses: FairPlay itself names none, and DASH's has another key. */
export function fairPlayKeyId(licenseUrl: string): Buffer {
  return uuidOfName(URL_NAMESPACE, licenseUrl);
}
