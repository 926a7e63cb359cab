import { formatUuid, isAmong, isRandomUuid, isZero, swapKeyIdOrder } from '../bytes';
import { DASH, HLS } from '../key-file';
import { fairPlayKeyId } from '../packaging';
import { playReadyChecksum } from '../playready';
import type { CheckedInput } from './check';
import { type Comparison, type Side, withTheseKeys } from './comparison';
import { cipherOf } from './protection';
import { type ClaimOf, claimsOf } from './report';
import { textOrHex } from './values';

export function compareKeyIdsOf(comparison: Comparison, reference: Side, other: Side): void {
  const known = keyIdsOf(reference);
  if (known.length === 0) return;
  if (compareExchanged(comparison, reference, other)) return;
  const rotates = other.of('rotation').length > 0;
  if (rotates) compareRotating(comparison, reference, other, known);
  // FairPlay finds its key by the playlist's address; its key has no id in a key file.
  if (rotates || isForFairPlayAlone(reference, other)) return;
  const ofSamples = trackIdsOf(other);
  const ofBoxes = unique(other.of('box').map(({ keyId }) => keyId));
  const differ = compareIds(comparison, reference, other, known, ofSamples, 'samples');
  if (!differ) compareIds(comparison, reference, other, known, ofBoxes, 'boxes');
}

function compareExchanged(comparison: Comparison, reference: Side, other: Side): boolean {
  const ids = [...other.of('track'), ...other.of('box')].flatMap(({ keyId }) => keyId ?? []);
  for (const key of reference.of('key')) {
    const found = isExchangeable(key) && ids.find((keyId) => isSameKey(keyId, key.contentKey));
    if (!found) continue;
    comparison.note('key_id');
    const remedy = `package again with a new key, because anyone can read this one in ${other.called}`;
    const sentence = exchangedSentence(reference, { side: other, keyId: found, remedy }, key.keyId);
    comparison.differ('key_and_key_id_swapped', [other, reference], sentence);
    return true;
  }
  return false;
}

interface KeyClaim extends ClaimOf<'key'> {
  readonly contentKey: Buffer;
}

/** A key that is its own id, or a placeholder, proves nothing. */
export function isExchangeable(key: ClaimOf<'key'>): key is KeyClaim {
  return key.contentKey !== undefined && !isZero(key.contentKey) && !isSameKey(key.keyId, key.contentKey);
}

function isSameKey(one: Buffer, other: Buffer): boolean {
  return one.equals(other) || swapKeyIdOrder(one).equals(other);
}

/** `of` has the key file's content key as its key id; `remedy` is for the case that it is the wrong one. */
export function exchangedSentence(
  keyFile: Side,
  of: { readonly side: Side; readonly keyId: Buffer; readonly remedy: string },
  keyId: Buffer,
): string {
  const { wrong, isProven } = exchangedSide(keyFile, of.side, of.keyId, keyId);
  const swap = `swap the two in ${keyFile.called}, and use a new key if a stream has used them swapped`;
  const remedy = wrong === undefined ? `${swap}, or ${of.remedy}` : wrong === keyFile ? swap : of.remedy;
  const where =
    wrong === undefined ? ' in one of them' : `${isProven ? '' : ', most likely'} in ${wrong.called}`;
  const ask = isProven ? '' : 'ask the license server which of the two is the key id, then ';
  return `The key id of ${of.side.called} is the content key of ${keyFile.called}, so key and key id are swapped${where}; ${ask}${remedy}`;
}

/** The side that contradicts itself, or else the one whose key id is not a random UUID if the other's is. */
function exchangedSide(
  keyFile: Side,
  other: Side,
  named: Buffer,
  keyId: Buffer,
): { readonly wrong: Side | undefined; readonly isProven: boolean } {
  const [isKeyFile, isOther] = [keyFile, other].map(({ codes }) => codes.has('key_and_key_id_swapped'));
  if (isKeyFile !== isOther) return { wrong: isKeyFile ? keyFile : other, isProven: true };
  const [isNamedUuid, isKeyIdUuid] = [named, keyId].map(isRandomUuid);
  const wrong = isNamedUuid === isKeyIdUuid ? undefined : isNamedUuid ? keyFile : other;
  return { wrong, isProven: false };
}

function keyIdsOf(side: Side): Buffer[] {
  const keys = side.of('key').map(({ keyId }) => keyId);
  return keys.length > 0 ? unique(keys) : trackIdsOf(side);
}

function trackIdsOf(side: Side): Buffer[] {
  return unique(side.of('track').flatMap(({ keyId }) => (keyId && !isZero(keyId) ? [keyId] : [])));
}

function compareIds(
  comparison: Comparison,
  reference: Side,
  other: Side,
  known: readonly Buffer[],
  found: readonly Buffer[],
  what: 'samples' | 'boxes',
): boolean {
  if (found.length === 0) return false;
  comparison.note('key_id');
  const unknown = found.filter((keyId) => !isAmong(keyId, known));
  const swapped = unknown.filter((keyId) => isAmong(swapKeyIdOrder(keyId), known));
  for (const keyId of swapped)
    comparison.differ('key_id_byte_order', [other, reference], swappedSentence(reference, other, keyId));
  // One match is enough: a manifest names the keys of all renditions, a key file one key.
  if (swapped.length > 0 || unknown.length < found.length) return swapped.length > 0;
  const is = found.map(formatUuid).slice(0, 3).join(', ');
  const should = few(known.map(formatUuid));
  const isKeyFile = reference.of('key').length > 0;
  const remedy = isKeyFile
    ? `check whether they are of one stream, then restart it ${withTheseKeys(reference.each)}`
    : 'make both in one run of the packager';
  const [named, effect] =
    what === 'samples'
      ? [`${other.called} has`, 'players get no key for it']
      : [`The pssh boxes of ${other.called} name`, 'players ask for another key'];
  const sentence = `${named} key id ${is}, but ${reference.called} ${reference.has} another one${should}, so ${effect}; ${remedy}`;
  comparison.differ('key_id_mismatch', [other, reference], sentence);
  return true;
}

export function compareOrigin(comparison: Comparison, documents: Side, keyFile: Side): void {
  const known = keyIdsOf(documents);
  const sides = [keyFile, documents] as const;
  const again = 'check whether they are of one stream, or write the key file again from the document';
  for (const { keyId } of keyFile.of('key')) {
    comparison.note('key_id');
    if (isAmong(keyId, known)) continue;
    const isSwapped = isAmong(swapKeyIdOrder(keyId), known);
    const sentence = isSwapped
      ? swappedSentence(documents, keyFile, keyId)
      : `${keyFile.called} has key id ${formatUuid(keyId)}, which ${documents.called} ${documents.has} no key for; ${again}`;
    comparison.differ(isSwapped ? 'key_id_byte_order' : 'key_id_mismatch', sides, sentence);
  }
  const fairPlayKeys = documents.of('fairplay').flatMap(({ key }) => key ?? []);
  for (const { key } of fairPlayKeys.length > 0 ? keyFile.of('fairplay') : []) {
    if (!key) continue;
    comparison.note('key');
    if (isAmong(key, fairPlayKeys)) continue;
    const sentence = `The FairPlay key of ${keyFile.called} is not one of ${documents.called}; ${again}`;
    comparison.differ('fairplay_key_differs', sides, sentence);
  }
  const [ivs = [], found = []] = [documents, keyFile].map((side) => side.of('iv').map(({ iv }) => iv));
  if (!comparison.notesBoth('iv', ivs, found) || found.some((iv) => isAmong(iv, ivs))) return;
  const sentence = `The FairPlay IV of ${keyFile.called} is not one of ${documents.called}; ${again}`;
  comparison.differ('iv_mismatch', sides, sentence);
}

function swappedSentence(reference: Side, other: Side, keyId: Buffer): string {
  const right = swapKeyIdOrder(keyId);
  const wrong = wrongOrder(reference, other, keyId);
  const remedy =
    wrong === undefined
      ? 'ask the license server which one is right, and correct the other'
      : `correct the one in ${wrong.called}`;
  return `The byte order of the key id differs: ${other.called} has ${formatUuid(keyId)} where ${reference.called} ${reference.has} ${formatUuid(right)}; both must be big endian (as in a UUID), so ${remedy}`;
}

function wrongOrder(reference: Side, other: Side, keyId: Buffer): Side | undefined {
  const [isOther, isReference] = [other, reference].map(({ codes }) => codes.has('key_id_byte_order'));
  if (isOther !== isReference) return isOther ? other : reference;
  const [isUuid, isRight] = [keyId, swapKeyIdOrder(keyId)].map(isRandomUuid);
  if (isUuid === isRight) return undefined;
  return isUuid ? reference : other;
}

function compareRotating(
  comparison: Comparison,
  reference: Side,
  other: Side,
  known: readonly Buffer[],
): void {
  comparison.note('key_rotation');
  const ids = other.of('track').flatMap(({ keyId }) => keyId ?? []);
  if (reference.of('key').length === 0 || ids.some((keyId) => isAmong(keyId, known))) return;
  const sentence =
    reference.each === 'document'
      ? `${other.called} rotates its keys, and ${reference.called} ${reference.has} none of those that it names; give the document of its key periods`
      : `${other.called} rotates its keys, which a key file can't do, so it was not made from ${reference.called}; check the media that were made from it`;
  comparison.differ('key_rotation', [other, reference], sentence, 'warning');
}

function isForFairPlayAlone(reference: Side, other: Side): boolean {
  const schemes = other.of('track').map(({ scheme }) => scheme);
  const own = reference.of('address').map(({ address }) => fairPlayKeyId(address));
  return (
    reference.of('fairplay').length > 0 &&
    !reference.of('scheme').some(({ scheme }) => scheme === 'cbcs') &&
    schemes.length > 0 &&
    other.of('box').every(({ keyId }) => isAmong(keyId, own)) &&
    schemes.every((scheme) => scheme === 'cbcs')
  );
}

export function compareSchemes(comparison: Comparison, reference: Side, other: Side): void {
  const allowed = [...new Set(schemesOf(reference).map(cipherOf))];
  const used = other.of('track').flatMap(({ scheme }) => (cipherOf(scheme) ? [scheme] : []));
  if (!comparison.notesBoth('scheme', allowed, used)) return;
  const wrong = used.find((scheme) => !allowed.includes(cipherOf(scheme)));
  if (wrong === undefined) return;
  const asks = allowed.join(' and ');
  const remedy =
    reference.of('scheme').length > 0 || reference.of('fairplay').length > 0
      ? `package with the scheme of the ${reference.each}${reference.each === 'document' ? '' : ', or write key-file lines for this scheme (FairPlay for cbcs) and restart the stream'}`
      : 'make both in one run of the packager';
  const sentence = `${other.called} is encrypted with ${wrong} (${cipherOf(wrong)}), but ${reference.called} ${reference.has} ${asks}; ${remedy}`;
  comparison.differ('scheme_mismatch', [other, reference], sentence);
}

function schemesOf(side: Side): string[] {
  const asked = side.of('scheme').map(({ scheme }): string => scheme);
  const isFairPlay = side.of('fairplay').length > 0;
  if (asked.length > 0 || isFairPlay) return [...asked, ...(isFairPlay ? ['cbcs'] : [])];
  return side.of('track').flatMap(({ scheme }) => (scheme && cipherOf(scheme) ? [scheme] : []));
}

/** An init segment without a key needs fragments with one. */
export function compareRotation(
  comparison: Comparison,
  media: readonly CheckedInput[],
  segments: readonly CheckedInput[],
): void {
  const expecting = media.filter(({ claims }) =>
    claimsOf(claims, 'rotation').some((claim) => !claim.isProven),
  );
  for (const init of expecting) {
    for (const segment of segments) {
      comparison.note('key_rotation');
      if (claimsOf(segment.claims, 'rotation').length > 0) continue;
      const sentence = `${init.name} names no key (all zeros), and ${segment.name} has none (seig); package again with a key id, or with key rotation`;
      comparison.fault('all_zero', [init.name, segment.name], sentence);
    }
  }
}

function unique(keyIds: readonly Buffer[]): Buffer[] {
  return [...new Map(keyIds.map((keyId) => [keyId.toString('hex'), keyId])).values()];
}

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
  const ofKeyFile =
    clear.at === 'playlist' && !hasHls
      ? 'add FairPlay or CMAF lines to the key file, which has no lines for HLS'
      : 'give the key file the name of the stream, and restart the stream';
  const remedy =
    reference.each === 'document' ? `restart the stream ${withTheseKeys(reference.each)}` : ofKeyFile;
  const sentence = `${other.called} is not protected, although ${reference.called} ${reference.has} keys; ${remedy}`;
  comparison.differ('not_protected', [other, reference], sentence);
}

/** Compares with the keys, or where there are none, with other headers. */
export function compareChecksums(comparison: Comparison, reference: Side, other: Side): void {
  const keys = reference.of('key');
  const ofKeys = keys.flatMap(({ keyId, contentKey }) =>
    contentKey ? [{ keyId, checksum: playReadyChecksum(keyId, contentKey) }] : [],
  );
  for (const { keyId, checksum } of other.of('checksum')) {
    const all = keys.length > 0 ? ofKeys : reference.of('checksum');
    const known = all.filter((one) => one.keyId.equals(keyId));
    if (known.length === 0) continue;
    comparison.note('checksum');
    if (known.some((one) => one.checksum === checksum)) continue;
    const ofKeyFile =
      reference.each === 'document'
        ? `${withTheseKeys(reference.each)}, or ask for the document again`
        : 'so that the packager reads this key file, or write the key file again from the license server';
    const sentence =
      keys.length > 0
        ? `The PlayReady header in ${other.called} has the checksum of a different content key than ${reference.called} under the same key id; restart the stream ${ofKeyFile}`
        : `The PlayReady headers in ${other.called} and ${reference.called} have different checksums under one key id; make both in one run of the packager`;
    comparison.differ('checksum_mismatch', [other, reference], sentence);
    return;
  }
}

export function compareContentIds(comparison: Comparison, reference: Side, other: Side): void {
  const known = reference.of('content_id').map(({ contentId }) => textOrHex(contentId).value);
  const found = other.of('content_id').map(({ contentId }) => textOrHex(contentId).value);
  if (!comparison.notesBoth('content_id', known, found)) return;
  if (found.some((contentId) => known.includes(contentId))) return;
  const sentence = `The Widevine data in ${other.called} names content id ${found[0]}, but ${reference.called} has another one${few([...new Set(known)])}; check whether they are of one stream, and restart it if the ${reference.each} was changed`;
  comparison.differ('content_id_mismatch', [other, reference], sentence, 'warning');
}

function few(values: readonly string[]): string {
  return values.length <= 3 ? ` (${values.join(', ')})` : '';
}

function addressesOf(side: Side, system: 'playready' | 'fairplay'): string[] {
  const own = side.of('address').filter((claim) => claim.system === system);
  return [...new Set(own.map(({ address }) => address))];
}

export function comparePlayReady(comparison: Comparison, reference: Side, other: Side): void {
  const known = addressesOf(reference, 'playready');
  const found = addressesOf(other, 'playready');
  if (!comparison.notesBoth('license_address', known, found)) return;
  if (found.some((address) => hasAddress(known, address))) return;
  for (const address of found) {
    const sentence = `${other.called} has the PlayReady license address ${address}, but ${reference.called} ${reference.has} another one${few(known)}; check which server has the key, and restart the stream if the ${reference.each} was changed`;
    comparison.differ('license_address_differs', [other, reference], sentence, 'warning');
  }
}

export function compareFairPlay(comparison: Comparison, reference: Side, other: Side): void {
  const known = addressesOf(reference, 'fairplay');
  const found = addressesOf(other, 'fairplay');
  if (!comparison.notesBoth('license_address', known, found)) return;
  // The renditions of one playlist may have keys of their own.
  const isSome = found.some((address) => hasAddress(known, address));
  for (const address of found) {
    const appended = known.find((one) => address.startsWith(one) && /^[?&;]/.test(address.slice(one.length)));
    if (hasAddress(known, address) || (isSome && appended === undefined)) continue;
    const sentence =
      appended === undefined
        ? `${other.called} has the FairPlay address ${address}, but ${reference.called} ${reference.has} another one${few(known)}; check whether they are of one stream, then restart it`
        : `${other.called} has the FairPlay address of ${reference.called} with something appended (${address}); set cupertinoAppendQueryParamsToEncUrl to false in the packager`;
    comparison.differ('license_address_differs', [other, reference], sentence);
  }
}

/** No IV is quoted: it is key material. */
function compareIvs(comparison: Comparison, reference: Side, other: Side): void {
  const known = reference.of('iv');
  const found = other.of('iv');
  if (!comparison.notesBoth('iv', known, found)) return;
  if (found.some(({ iv }) => known.some((one) => one.iv.equals(iv)))) return;
  const remedy =
    reference.each === 'document'
      ? 'let the packager take its explicitIV, or leave the IV out of the playlist'
      : `set ${HLS}-iv-include-in-chunklist to false, and restart the stream`;
  const sentence = `The FairPlay IV in ${other.called} differs from the one in ${reference.called}; ${remedy}`;
  comparison.differ('iv_mismatch', [other, reference], sentence);
}

function hasAddress(known: readonly string[], address: string): boolean {
  return known.some((one) => normal(one) === normal(address));
}

/** An address with scheme and host in lower case; the part after skd:// is the license server's own. */
function normal(address: string): string {
  return address.replace(/^(?:skd:\/\/|https?:\/\/[^/?#]*)/i, (start) => start.toLowerCase());
}
