import { formatUuid, isAmong, isZero, swapKeyIdOrder } from '../bytes';
import { finding } from '../finding';
import type { ProtectionScheme } from '../widevine';
import type { Report } from './report';
import { keyIdField, suspectByteOrder } from './values';

export type Cipher = 'AESCTR' | 'AESCBC';

/** The keys in a box, an object or a header, which others may contradict. Key ids are big endian. */
export interface KeySignalling {
  readonly keyIds: readonly Buffer[];
  readonly ciphers: readonly Cipher[];
}

export interface KeySignallingAt extends KeySignalling {
  readonly at: string;
}

/** How the samples themselves are encrypted, as a track's `tenc` and `schm` boxes or a manifest say. */
export interface Protection {
  readonly scheme: string | undefined;
  readonly keyId: Buffer | undefined;
  /** Whether `tenc` has an IV that is not zero. */
  readonly hasIv?: boolean;
}

export const NO_SIGNALLING: KeySignalling = { keyIds: [], ciphers: [] };

const CIPHERS: Readonly<Record<ProtectionScheme, Cipher>> = {
  cenc: 'AESCTR',
  cens: 'AESCTR',
  cbc1: 'AESCBC',
  cbcs: 'AESCBC',
};

export function cipherOf(scheme: string | undefined): Cipher | undefined {
  return scheme !== undefined && Object.hasOwn(CIPHERS, scheme)
    ? CIPHERS[scheme as ProtectionScheme]
    : undefined;
}

export function joinSignalling(all: readonly KeySignalling[]): KeySignalling {
  return { keyIds: all.flatMap(({ keyIds }) => keyIds), ciphers: all.flatMap(({ ciphers }) => ciphers) };
}

/** `named` are the boxes that should be of the same keys. */
export function describeProtections(
  report: Report,
  protections: readonly Protection[],
  named: readonly KeySignallingAt[],
  { rotates, hasAllBoxes }: TrackContext,
): void {
  const boxes = { at: named.length === 1 ? (named[0]?.at ?? '') : 'boxes', ...joinSignalling(named) };
  const isSome = protections.some(({ keyId }) => keyId && isAmong(keyId, boxes.keyIds));
  protections.forEach(({ scheme, keyId }, index) => {
    const at = protections.length > 1 ? `track[${index}]` : 'track';
    report.field(`${at}.scheme`, scheme);
    report.claim({ of: 'track', at, scheme, keyId: rotates && keyId && isZero(keyId) ? undefined : keyId });
    if (!keyId) return;
    if (rotates && isZero(keyId)) {
      const note = 'all zeros: right where keys rotate, because each fragment has its own';
      report.field(`${at}.key_id`, formatUuid(keyId), note);
      return;
    }
    keyIdField(report, `${at}.key_id`, keyId);
    if (rotates || isZero(keyId)) return;
    if (boxes.keyIds.length === 0) suspectByteOrder(report, `${at}.key_id`, keyId);
    else compareTrack(report, `${at}.key_id`, keyId, boxes, hasAllBoxes || !isSome ? 'error' : 'warning');
  });
  compareCiphers(report, protections, named);
}

interface TrackContext {
  readonly rotates: boolean;
  /** Whether all the boxes that there may be are here; a manifest may leave some to the init segments. */
  readonly hasAllBoxes: boolean;
}

export function compareTrack(
  report: Report,
  at: string,
  keyId: Buffer,
  boxes: KeySignallingAt,
  severity: 'error' | 'warning',
): void {
  if (isAmong(keyId, boxes.keyIds)) return;
  const sentence =
    'is in none of these boxes, so players ask for another key than the samples need; package again with boxes for it';
  if (isAmong(swapKeyIdOrder(keyId), boxes.keyIds))
    compareKeyIds(report, boxes, { at, keyIds: [keyId], ciphers: [] });
  else report.add(finding(severity, 'key_id_mismatch', at, sentence));
}

/** Boxes of different keys are no fault if each belongs to a track. */
export function compareBoxes(
  report: Report,
  named: readonly KeySignallingAt[],
  protections: readonly Protection[],
): void {
  const ofTracks = new Set(protections.flatMap(({ keyId }) => (keyId ? [formatUuid(keyId)] : [])));
  const [first, ...others] = named.filter(({ keyIds }) => keyIds.length > 0);
  for (const other of others) {
    if (first && !other.keyIds.some((keyId) => ofTracks.has(formatUuid(keyId))))
      compareKeyIds(report, first, other);
  }
}

export function compareKeyIds(report: Report, one: KeySignallingAt, other: KeySignallingAt): void {
  const known = new Set(one.keyIds.map(formatUuid));
  if (other.keyIds.some((keyId) => known.has(formatUuid(keyId)))) return;
  if (other.keyIds.some((keyId) => known.has(formatUuid(swapKeyIdOrder(keyId))))) {
    const sentence = `names the key id of ${one.at} in the other byte order; it must be big endian, except in a PlayReady header`;
    report.error('key_id_byte_order', other.at, sentence);
  } else {
    report.warning('key_id_mismatch', other.at, `names another key id than ${one.at}`);
  }
}

function compareCiphers(
  report: Report,
  protections: readonly Protection[],
  named: readonly KeySignallingAt[],
): void {
  const used = protections.filter(({ scheme }) => cipherOf(scheme) !== undefined);
  if (used.length === 0) return;
  for (const { at, ciphers } of named) {
    const other = ciphers.find((cipher) => !used.some(({ scheme }) => cipherOf(scheme) === cipher));
    if (other === undefined) continue;
    const scheme = used[0]?.scheme;
    const sentence = `is for ${other}, but the track is encrypted with ${scheme} (${cipherOf(scheme)}); make them agree`;
    report.warning('scheme_mismatch', at, sentence);
  }
}
