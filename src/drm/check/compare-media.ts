import type { CheckedInput } from './check';
import { claimsOf } from './claims';
import { compareContentIds, compareHeaders, comparePlayReady } from './compare-content';
import { compareKeyIdsOf, compareSchemes } from './compare-keys';
import { Comparison, type Side, sideOf } from './comparison';

type Compare = (comparison: Comparison, reference: Side, other: Side) => void;

const KEY_ID_CODES = ['key_id_mismatch', 'key_id_byte_order', 'key_and_key_id_swapped'];
/** By what manifests are held against media, and the codes that tell a difference in it. */
const ASPECTS: readonly (readonly [codes: readonly string[], compare: Compare])[] = [
  [KEY_ID_CODES, compareKeyIdsOf],
  [['scheme_mismatch'], compareSchemes],
  [['content_id_mismatch'], compareContentIds],
  [['license_address_differs'], comparePlayReady],
  [['checksum_mismatch'], compareHeaders],
];

/**
 * Holds what players are told against what the samples are encrypted with. What was told of an input before, beside the
 * key files that there may be, is not told of it again.
 */
export function compareMedia(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
  { hasKeyFiles }: { readonly hasKeyFiles: boolean },
): void {
  for (const [codes, compare] of ASPECTS) {
    const isNew = ({ name }: CheckedInput) => !comparison.hasTold(codes, name);
    const files = media.filter(isNew);
    const sheets = manifests.filter(isNew);
    if (files.length === 0) continue;
    for (const sheet of sheets) {
      const found = new Comparison();
      compare(found, sideOf(files, 'file'), sideOf([sheet]));
      const others = sheets.filter((other) => other !== sheet);
      const isOfOthers = files.every((file) => others.some((other) => agree(compare, file, other)));
      const isCertain = found.faults.some(({ code }) => code === 'key_id_byte_order');
      // A key file vouches for the key ids of what it was held against, but it may have lines for both schemes.
      const isVouchedFor = namesNoKeyId(sheet) || (hasKeyFiles && compare === compareKeyIdsOf);
      if (!isOfOthers || isCertain) comparison.take(found);
      else if (!isVouchedFor)
        comparison.take(found, `If ${sheet.name} is of other media, check it with these.`);
    }
  }
  compareRenditions(comparison, media, manifests, hasKeyFiles);
  compareProtection(comparison, media, manifests);
}

/** Whether the two say something of it, and the same. */
function agree(compare: Compare, file: CheckedInput, manifest: CheckedInput): boolean {
  const { compared, faults } = compareTwo(compare, file, manifest);
  return compared.length > 0 && faults.length === 0;
}

function compareTwo(compare: Compare, file: CheckedInput, manifest: CheckedInput) {
  const trial = new Comparison();
  compare(trial, sideOf([file]), sideOf([manifest]));
  return trial.result();
}

/** A playlist for FairPlay: beside a DASH manifest it is rather of other media than a fault. */
function namesNoKeyId({ claims }: CheckedInput): boolean {
  const tracks = claimsOf(claims, 'track');
  return tracks.length > 0 && tracks.every(({ keyId }) => keyId === undefined);
}

/** One manifest is of several renditions: each file has to be in one. */
function compareRenditions(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
  hasKeyFiles: boolean,
): void {
  const isNew = ({ name }: CheckedInput) => !comparison.hasTold(KEY_ID_CODES, name);
  const sheets = manifests.filter(isNew);
  for (const file of sheets.length > 0 ? media.filter(isNew) : []) {
    const ofScheme = sheets.filter((sheet) => agree(compareSchemes, file, sheet));
    // It may be of one that names no key id; or of one that is not here, when a key file vouches for it.
    const isOpen = ofScheme.some((sheet) => compareTwo(compareKeyIdsOf, file, sheet).compared.length === 0);
    if (isOpen || (hasKeyFiles && ofScheme.length === 0)) continue;
    compareKeyIdsOf(comparison, sideOf(sheets, 'manifest'), sideOf([file]));
  }
}

function compareProtection(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
): void {
  const isNew = ({ name }: CheckedInput) => !comparison.hasTold(['not_protected'], name);
  const [encrypted] = media.filter(isEncrypted);
  const clear = manifests.filter(isClear);
  if (media.length > 0 && clear.length > 0) comparison.note('protection');
  for (const manifest of encrypted ? clear.filter(isNew) : []) {
    const sentence =
      `${manifest.name} says nothing of the protection of ${encrypted?.name}, so players ask for no license; package ` +
      'again with its signalling, or look whether a proxy takes it away';
    comparison.error('not_protected', [manifest.name, encrypted?.name ?? ''], sentence);
  }
  const promising = sideOf(manifests.filter(promisesProtection), 'manifest');
  // Clear sound beside encrypted pictures may be meant so.
  if (encrypted || !manifests.some(promisesProtection)) return;
  for (const file of media.filter(isClear)) {
    comparison.note('protection');
    if (!isNew(file)) continue;
    const sentence =
      `${file.name} is not protected, although ${promising.called} ${promising.has} the signalling of protection, so it ` +
      'plays for everybody; name the key file as the stream is named, so that the packager finds it, and restart the stream';
    comparison.error('not_protected', [file.name, ...promising.names], sentence);
  }
}

/** Whether the comparison says of an input, as an error, that it is not protected. */
export function isComparedAsClear(
  input: CheckedInput,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
): boolean {
  const isSome = media.some(isEncrypted);
  return manifests.includes(input)
    ? isSome
    : media.includes(input) && !isSome && manifests.some(promisesProtection);
}

function isEncrypted({ claims }: CheckedInput): boolean {
  return claimsOf(claims, 'track').length > 0;
}

function isClear({ claims }: CheckedInput): boolean {
  return claimsOf(claims, 'clear').length > 0;
}

/** Some manifests protect without a word of the key: the init segments have it all. */
function promisesProtection({ claims, result }: CheckedInput): boolean {
  return (
    claims.some((claim) => claim.of === 'track' || claim.of === 'box') ||
    result.faults.some(({ code }) => code === 'names_nothing')
  );
}
