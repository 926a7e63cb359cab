import { boxOf, type DrmSystemData, type PackagingKeys } from '../packaging';
import type { ExportScheme } from './names';

/** One of the keys of a key file, with what goes with it under its scheme. */
export interface StreamKey {
  readonly scheme: ExportScheme;
  /** 16 bytes, big endian; of FairPlay, whose lines name none, the one that `fairPlayKeyId` makes of its address. */
  readonly keyId: Buffer;
  /** 16 bytes. */
  readonly key: Buffer;
  /** 16 bytes. FairPlay's alone: under `cenc` each packager makes its own. */
  readonly iv?: Buffer;
  /** FairPlay's address. */
  readonly keyUri?: string;
  /** Those that a `pssh` box signals. */
  readonly systems: readonly DrmSystemData[];
  /** Whole `pssh` boxes of these; of a key without any, the common one. FairPlay has none. */
  readonly boxes: readonly Buffer[];
}

/** The keys of a key file that other packagers can take, that of `cenc` first. */
export function streamKeysOf({ dash, hls }: PackagingKeys): StreamKey[] {
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
