import { playReadyChecksum } from '../playready';
import { textOrHex } from './byte-text';
import type { Comparison, Side } from './comparison';
import { DASH, HLS } from './key-file-wire';

/** Holds what players ask a license for, and by which address, against the key files. */
export function compareContent(comparison: Comparison, reference: Side, other: Side): void {
  compareProtection(comparison, reference, other);
  compareChecksums(comparison, reference, other);
  compareContentIds(comparison, reference, other);
  comparePlayReady(comparison, reference, other);
  compareFairPlay(comparison, reference, other);
  compareIvs(comparison, reference, other);
}

function compareProtection(comparison: Comparison, reference: Side, other: Side): void {
  const [clear] = other.of('clear');
  if (!clear && other.of('track').length + other.of('box').length === 0) return;
  comparison.note('protection');
  if (!clear) return;
  const hasHls =
    reference.of('fairplay').length > 0 || reference.of('scheme').some(({ at }) => !at.startsWith(DASH));
  const mend =
    clear.at === 'playlist' && !hasHls
      ? 'add FairPlay (or CMAF lines) to the key file, which has none for HLS'
      : 'name the key file as the stream is named, and restart the stream';
  const sentence = `${other.called} is not protected, although ${reference.called} ${reference.has} keys; ${mend}`;
  comparison.error('not_protected', [...other.names, ...reference.names], sentence);
}

/** The only trace of the content key that media carry. */
function compareChecksums(comparison: Comparison, reference: Side, other: Side): void {
  const keys = reference.of('key');
  for (const { keyId, checksum } of other.of('checksum')) {
    const own = keys.filter((key) => key.contentKey && key.keyId.equals(keyId));
    if (own.length === 0) continue;
    comparison.note('checksum');
    if (own.some(({ contentKey }) => contentKey && playReadyChecksum(keyId, contentKey) === checksum))
      continue;
    const sentence =
      `The PlayReady header in ${other.called} has the checksum of another content key than ${reference.called} under ` +
      'the same key id, so it was made from another key; restart the stream so that the packager reads this key file, ' +
      'or write the key file anew from the license server';
    comparison.error('checksum_mismatch', [...other.names, ...reference.names], sentence);
    return;
  }
}

/** The same between media and manifests, which both may have a PlayReady header. */
export function compareHeaders(comparison: Comparison, reference: Side, other: Side): void {
  for (const { keyId, checksum } of other.of('checksum')) {
    const known = reference.of('checksum').filter((one) => one.keyId.equals(keyId));
    if (known.length === 0) continue;
    comparison.note('checksum');
    if (known.some((one) => one.checksum === checksum)) continue;
    const sentence =
      `The PlayReady headers in ${other.called} and ${reference.called} have different checksums under one key id, so they ` +
      'were made from two keys; make both in one run of the packager';
    comparison.error('checksum_mismatch', [...other.names, ...reference.names], sentence);
    return;
  }
}

export function compareContentIds(comparison: Comparison, reference: Side, other: Side): void {
  const known = reference.of('content_id').map(({ contentId }) => textOrHex(contentId).value);
  const found = other.of('content_id').map(({ contentId }) => textOrHex(contentId).value);
  if (known.length === 0 || found.length === 0) return;
  comparison.note('content_id');
  if (found.some((contentId) => known.includes(contentId))) return;
  const should = known.length <= 3 ? ` (${[...new Set(known)].join(', ')})` : '';
  const sentence =
    `The Widevine data in ${other.called} names content id ${found[0]}, but that of ${reference.called} another one` +
    `${should}; look whether they are of one stream, and restart it if the key file was changed`;
  comparison.warning('content_id_mismatch', [...other.names, ...reference.names], sentence);
}

function addressesOf(side: Side, system: 'playready' | 'fairplay'): string[] {
  return [
    ...new Set(side.of('address').flatMap((claim) => (claim.system === system ? [claim.address] : []))),
  ];
}

export function comparePlayReady(comparison: Comparison, reference: Side, other: Side): void {
  const known = addressesOf(reference, 'playready');
  const found = addressesOf(other, 'playready');
  if (known.length === 0 || found.length === 0) return;
  comparison.note('license_address');
  if (found.some((address) => isAmong(known, address))) return;
  for (const address of found) {
    const should = known.length <= 3 ? ` (${known.join(', ')})` : '';
    const sentence =
      `${other.called} has the PlayReady license address ${address}, but ${reference.called} ${reference.has} another ` +
      `one${should}; look which server has the key, and restart the stream if the key file was changed`;
    comparison.warning('license_address_differs', [...other.names, ...reference.names], sentence);
  }
}

function compareFairPlay(comparison: Comparison, reference: Side, other: Side): void {
  const known = addressesOf(reference, 'fairplay');
  const found = addressesOf(other, 'fairplay');
  if (known.length === 0 || found.length === 0) return;
  comparison.note('license_address');
  // The renditions of one playlist may have keys of their own.
  const isSome = found.some((address) => isAmong(known, address));
  for (const address of found) {
    const appended = known.find((one) => address.startsWith(one) && /^[?&;]/.test(address.slice(one.length)));
    if (isAmong(known, address) || (isSome && appended === undefined)) continue;
    const should = known.length <= 3 ? ` (${known.join(', ')})` : '';
    const sentence =
      appended === undefined
        ? `${other.called} has the FairPlay address ${address}, but ${reference.called} ${reference.has} another one` +
          `${should}, so players ask for another content; look whether they are of one stream, then restart it`
        : `${other.called} has the FairPlay address of ${reference.called} with something appended (${address}), which ` +
          'the license server may not know; set cupertinoAppendQueryParamsToEncUrl to false in the packager';
    comparison.error('license_address_differs', [...other.names, ...reference.names], sentence);
  }
}

/** No IV is quoted: it is key material. */
function compareIvs(comparison: Comparison, reference: Side, other: Side): void {
  const known = reference.of('iv');
  const found = other.of('iv');
  if (known.length === 0 || found.length === 0) return;
  comparison.note('iv');
  if (found.some(({ iv }) => known.some((one) => one.iv.equals(iv)))) return;
  const sentence =
    `The FairPlay IV in ${other.called} is not that of ${reference.called}; set ${HLS}-iv-include-in-chunklist to ` +
    'false so that the license brings it, and restart the stream';
  comparison.error('iv_mismatch', [...other.names, ...reference.names], sentence);
}

function isAmong(known: readonly string[], address: string): boolean {
  return known.some((one) => normal(one) === normal(address));
}

/** An address whose scheme and host are in lower case; what follows skd:// is the license server's own. */
function normal(address: string): string {
  return address.replace(/^(?:skd:\/\/|https?:\/\/[^/?#]*)/i, (start) => start.toLowerCase());
}
