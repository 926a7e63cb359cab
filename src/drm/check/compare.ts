import { swapKeyIdOrder } from '../bytes';
import type { CheckedInput } from './check';
import { claimsOf } from './claims';
import { compareContent } from './compare-content';
import {
  compareKeyIdsOf,
  compareRotation,
  compareSchemes,
  exchangedSentence,
  isExchangeable,
} from './compare-keys';
import { compareMedia, isComparedAsClear } from './compare-media';
import { hideKeys, KeyFinder } from './compare-secrets';
import { type ComparedFault, Comparison, type ComparisonResult, sideOf } from './comparison';
import { maskSecrets } from './mask-secrets';
import { type CheckFault, type CheckKind, MAX_FAULTS } from './report';

/**
 * Holds inputs against each other: media and manifests against key files (and requests), and manifests against the media.
 * Each difference is one sentence that names both. Secrets are masked unless `reveal` is given.
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
  compareExchangedKeyFiles(comparison, keyFiles);
  const media = others.filter(({ result }) => isMedia(result.kind));
  const manifests = others.filter(({ result }) => result.kind === 'manifest');
  const hasKeyFiles = hasKeys(keyFiles);
  if (hasKeyFiles) {
    const reference = sideOf(keyFiles, 'key file');
    for (const other of others) {
      const side = sideOf([other]);
      compareKeyIdsOf(comparison, reference, side);
      compareSchemes(comparison, reference, side);
      compareContent(comparison, reference, side);
    }
  }
  compareMedia(comparison, media, manifests, { hasKeyFiles });
  compareRotation(
    comparison,
    media,
    others.filter(({ result }) => result.kind === 'media_segment'),
  );
  const { compared, faults } = comparison.result();
  const first = faults.slice(0, MAX_FAULTS);
  const isShown = reveal || first.length === 0;
  return { compared, faults: isShown ? first : maskFaults(first, hideKeys(inputs)) };
}

/**
 * The inputs as they may be shown beside each other: without those faults that ask for what another one of them brings
 * (the init segment, the boxes), and without what another one shows to be a key.
 */
export function withoutAnswered<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const media = inputs.filter(({ result }) => isMedia(result.kind));
  const manifests = inputs.filter(({ result }) => result.kind === 'manifest');
  const hasTracks = media.some(({ claims }) => claimsOf(claims, 'track').length > 0);
  const hasBoxes = inputs.some(
    ({ result, claims }) => result.kind === 'manifest' && claimsOf(claims, 'box').length > 0,
  );
  const unanswered = inputs.map((input) => {
    const { kind, faults } = input.result;
    const isAnswered = ({ code, field }: CheckFault) =>
      (code === 'no_init_segment' && media.length > 0) ||
      (code === 'no_pssh_box' && hasBoxes) ||
      (code === 'not_protected' && (hasKeys(inputs) || isComparedAsClear(input, media, manifests))) ||
      (code === 'names_nothing' && kind === 'manifest' && field === undefined && hasTracks);
    return { ...input, result: { ...input.result, faults: faults.filter((fault) => !isAnswered(fault)) } };
  });
  return hideKeys(unanswered);
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

/** What is the key in one and the key id in another one is exchanged in one of them. */
function compareExchangedKeyFiles(comparison: Comparison, keyFiles: readonly CheckedInput[]): void {
  const byKeyId = new Map<string, { readonly input: CheckedInput; readonly keyId: Buffer }>();
  for (const input of keyFiles) {
    for (const { keyId } of claimsOf(input.claims, 'key')) {
      for (const order of [keyId, swapKeyIdOrder(keyId)].map((bytes) => bytes.toString('hex')))
        if (!byKeyId.has(order)) byKeyId.set(order, { input, keyId });
    }
  }
  const told = new Set<CheckedInput>();
  for (const input of keyFiles) {
    for (const key of claimsOf(input.claims, 'key').filter(isExchangeable)) {
      const other = byKeyId.get(key.contentKey.toString('hex'));
      if (!other || other.input === input || told.has(other.input)) continue;
      told.add(input).add(other.input);
      comparison.note('key');
      const [keyFile, side] = [sideOf([input]), sideOf([other.input])];
      const mend = `swap them in ${side.called}`;
      const sentence = exchangedSentence(keyFile, { side, keyId: other.keyId, mend }, key.keyId);
      comparison.error('key_and_key_id_swapped', [...side.names, ...keyFile.names], sentence);
    }
  }
}

/** A sentence quotes what the inputs that it names hold; and of those that it counts, an address or a key id. */
function maskFaults(faults: readonly ComparedFault[], inputs: readonly CheckedInput[]): ComparedFault[] {
  const finder = new KeyFinder(inputs);
  return faults.map((fault) => {
    const quoted = inputs.flatMap(({ name, secrets }) =>
      [...secrets].filter((secret) => fault.inputs.includes(name) || fault.description.includes(secret)),
    );
    const [masked] = maskSecrets({ kind: 'unknown', fields: [], faults: [fault] }, new Set(quoted)).faults;
    return { ...fault, description: finder.mask(masked?.description ?? '') };
  });
}
