import type { CheckedInput } from './check';
import { claimsOf } from './claims';
import { compareContent } from './compare-content';
import { compareKeyIdsOf, compareRotation, compareSchemes } from './compare-keys';
import { type ComparedFault, Comparison, type ComparisonResult, sideOf } from './comparison';
import { maskSecrets } from './mask-secrets';
import { type CheckFault, type CheckKind, MOST_FAULTS } from './report';

/**
 * Holds inputs against each other: media and manifests against key files (and requests), or where there is none of
 * these, manifests against the media. Each difference is one sentence that names both. Secrets are masked unless
 * `reveal` is given.
 */
export function compareInputs(
  inputs: readonly CheckedInput[],
  { reveal = false }: { readonly reveal?: boolean } = {},
): ComparisonResult {
  const comparison = new Comparison();
  const isKeyFile = ({ result }: CheckedInput) => result.kind === 'key_file' || result.kind === 'request';
  const keyFiles = inputs.filter(isKeyFile);
  const others = inputs.filter((input) => !isKeyFile(input));
  compareKeyFiles(comparison, keyFiles);
  const media = others.filter(({ result }) => isMedia(result.kind));
  const manifests = others.filter(({ result }) => result.kind === 'manifest');
  if (
    keyFiles.some(({ claims }) => claimsOf(claims, 'key').length + claimsOf(claims, 'fairplay').length > 0)
  ) {
    const reference = sideOf(keyFiles, 'key file');
    for (const other of others) {
      const side = sideOf([other]);
      compareKeyIdsOf(comparison, reference, side);
      compareSchemes(comparison, reference, side);
      compareContent(comparison, reference, side);
    }
  } else {
    compareMedia(comparison, media, manifests);
  }
  compareRotation(
    comparison,
    media,
    others.filter(({ result }) => result.kind === 'media_segment'),
  );
  const { compared, faults } = comparison.result();
  const first = faults.slice(0, MOST_FAULTS);
  return { compared, faults: reveal ? first : first.map((fault) => maskFault(fault, inputs)) };
}

/** The inputs without those faults that ask for what another one of them brings: the init segment, the boxes. */
export function withoutAnswered<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const media = inputs.filter(({ result }) => isMedia(result.kind));
  const hasTracks = media.some(({ claims }) => claimsOf(claims, 'track').length > 0);
  const hasBoxes = inputs.some(
    ({ result, claims }) => result.kind === 'manifest' && claimsOf(claims, 'box').length > 0,
  );
  return inputs.map((input) => {
    const { kind, faults } = input.result;
    const isAnswered = ({ code, field }: CheckFault) =>
      (code === 'no_init_segment' && media.length > 0) ||
      (code === 'no_pssh_box' && hasBoxes) ||
      (code === 'not_protected' && hasKeys(inputs)) ||
      (code === 'names_nothing' && kind === 'manifest' && field === undefined && hasTracks);
    return { ...input, result: { ...input.result, faults: faults.filter((fault) => !isAnswered(fault)) } };
  });
}

function hasKeys(inputs: readonly CheckedInput[]): boolean {
  return inputs.some(({ claims }) => claims.some((claim) => claim.of === 'key' || claim.of === 'fairplay'));
}

function isMedia(kind: CheckKind): boolean {
  return kind === 'init_segment' || kind === 'media_file';
}

/** A key id has one key: viewers of all streams but one would see nothing. */
function compareKeyFiles(comparison: Comparison, keyFiles: readonly CheckedInput[]): void {
  const first = new Map<string, { readonly name: string; readonly contentKey: Buffer }>();
  for (const { name, claims } of keyFiles) {
    for (const { keyId, contentKey } of claimsOf(claims, 'key')) {
      if (!contentKey) continue;
      const id = keyId.toString('hex');
      const former = first.get(id);
      if (!former) first.set(id, { name, contentKey });
      if (!former || former.name === name) continue;
      comparison.note('key');
      if (former.contentKey.equals(contentKey)) continue;
      const sentence =
        `${name} and ${former.name} have one key id and different content keys, so viewers of one of them see nothing; ` +
        'give each key an id of its own, or both the same key';
      comparison.error('content_keys_differ', [name, former.name], sentence);
    }
  }
}

/** Without a key file, what players are told is held against what the samples are encrypted with. */
function compareMedia(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
): void {
  if (media.length === 0 || manifests.length === 0) return;
  for (const manifest of manifests) {
    compareKeyIdsOf(comparison, sideOf(media, 'file'), sideOf([manifest]));
    compareSchemes(comparison, sideOf(media, 'file'), sideOf([manifest]));
    if (claimsOf(manifest.claims, 'clear').length > 0) comparison.note('protection');
    const [encrypted] = media.filter(({ claims }) => claimsOf(claims, 'track').length > 0);
    if (encrypted && claimsOf(manifest.claims, 'clear').length > 0) {
      const sentence =
        `${manifest.name} says nothing of the protection of ${encrypted.name}, so players ask for no licence; package ` +
        'again with its signalling, or look whether a proxy takes it away';
      comparison.error('not_protected', [manifest.name, encrypted.name], sentence);
    }
  }
  if (comparison.faults.length > 0) return;
  // One manifest is of several renditions: each of them has to be there.
  for (const file of media) compareKeyIdsOf(comparison, sideOf(manifests, 'manifest'), sideOf([file]));
}

/** A sentence quotes nothing but what the inputs that it names hold. */
function maskFault(fault: ComparedFault, inputs: readonly CheckedInput[]): ComparedFault {
  const named = inputs.filter(({ name }) => fault.inputs.includes(name));
  const secrets = new Set(named.flatMap((input) => [...input.secrets]));
  const [masked] = maskSecrets({ kind: 'unknown', fields: [], faults: [fault] }, secrets).faults;
  return { ...fault, description: masked?.description ?? '' };
}
