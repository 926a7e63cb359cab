import { swapKeyIdOrder } from '../bytes';
import type { Finding } from '../finding';
import type { CheckedInput } from './check';
import {
  compareChecksums,
  compareContent,
  compareContentIds,
  compareFairPlay,
  compareKeyIdsOf,
  compareOrigin,
  comparePlayReady,
  compareRotation,
  compareSchemes,
  exchangedSentence,
  isExchangeable,
} from './compare-claims';
import { type ComparedFinding, Comparison, type ComparisonResult, type Side, sideOf } from './comparison';
import { claimsOf, MAX_FINDINGS } from './report';
import { hideKeys, maskSecrets } from './secrets';

/** Compares media and manifests with key files and requests, and manifests with the media. */
export function compareInputs(
  inputs: readonly CheckedInput[],
  { reveal = false }: { readonly reveal?: boolean } = {},
): ComparisonResult {
  const comparison = new Comparison();
  const isKeyFile = ({ result }: CheckedInput) => result.kind === 'key_file' || result.kind === 'request';
  const isDocument = ({ result }: CheckedInput) => result.kind === 'cpix';
  const ofPackager = inputs.filter(isKeyFile);
  const documents = inputs.filter(isDocument);
  const others = inputs.filter((input) => !isKeyFile(input) && !isDocument(input));
  compareKeyFiles(comparison, [...ofPackager, ...documents]);
  compareExchangedKeyFiles(comparison, [...ofPackager, ...documents]);
  compareDocuments(comparison, documents, ofPackager);
  // The key file is compared, and a document only if no key file was made from it yet.
  const keyFiles = ofPackager.length > 0 ? ofPackager : documents;
  const media = others.filter(isMedia);
  const manifests = others.filter(({ result }) => result.kind === 'manifest');
  const hasKeyFiles = hasKeys(keyFiles);
  if (hasKeyFiles) {
    const reference = sideOf(keyFiles, keyFiles === documents ? 'document' : 'key file');
    for (const other of others) {
      const side = sideOf([other]);
      compareKeyIdsOf(comparison, reference, side);
      compareSchemes(comparison, reference, side);
      compareContent(comparison, reference, side);
    }
  }
  compareMedia(comparison, media, manifests, hasKeyFiles);
  const segments = others.filter(({ result }) => result.kind === 'media_segment');
  compareRotation(comparison, media, segments);
  const { compared, faults } = comparison.result();
  const first = faults.slice(0, MAX_FINDINGS);
  return { compared, faults: reveal ? first : maskFaults(first, inputs) };
}

/** The inputs without faults that another input answers, and without texts that are keys in another input. */
export function withoutAnswered<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const media = inputs.filter(isMedia);
  const manifests = inputs.filter(({ result }) => result.kind === 'manifest');
  const hasTracks = media.some(isEncrypted);
  const hasBoxes = manifests.some(({ claims }) => claimsOf(claims, 'box').length > 0);
  const unanswered = inputs.map((input) => {
    const { kind, faults } = input.result;
    const isAnswered = ({ code, field }: Finding) =>
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

function isMedia({ result: { kind } }: CheckedInput): boolean {
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
      const sentence = `${name} and ${former.name} share a key id but have different content keys; give each key its own id, or both the same key`;
      comparison.fault('content_keys_differ', [name, former.name], sentence);
    }
  }
}

function compareExchangedKeyFiles(comparison: Comparison, keyFiles: readonly CheckedInput[]): void {
  const byKeyId = new Map<string, { readonly input: CheckedInput; readonly keyId: Buffer }>();
  for (const input of keyFiles) {
    for (const { keyId } of claimsOf(input.claims, 'key')) {
      for (const order of [keyId, swapKeyIdOrder(keyId)].map((bytes) => bytes.toString('hex')))
        if (!byKeyId.has(order)) byKeyId.set(order, { input, keyId });
    }
  }
  const seen = new Set<CheckedInput>();
  for (const input of keyFiles) {
    for (const key of claimsOf(input.claims, 'key').filter(isExchangeable)) {
      const other = byKeyId.get(key.contentKey.toString('hex'));
      if (!other || other.input === input || seen.has(other.input)) continue;
      seen.add(input).add(other.input);
      comparison.note('key');
      const [keyFile, side] = [sideOf([input]), sideOf([other.input])];
      const remedy = `swap them in ${side.called}`;
      const sentence = exchangedSentence(keyFile, { side, keyId: other.keyId, remedy }, key.keyId);
      comparison.differ('key_and_key_id_swapped', [side, keyFile], sentence);
    }
  }
}

/** A sentence may quote values of any input. */
function maskFaults(faults: readonly ComparedFinding[], given: readonly CheckedInput[]): ComparedFinding[] {
  const secrets = new Set(hideKeys(given).flatMap((input) => [...input.secrets]));
  const masked = maskSecrets({ kind: 'unknown', fields: [], faults }, secrets).faults;
  return faults.map((fault, index) => ({ ...fault, ...masked[index] }));
}

function compareDocuments(
  comparison: Comparison,
  documents: readonly CheckedInput[],
  keyFiles: readonly CheckedInput[],
): void {
  if (!hasKeys(documents)) return;
  const reference = sideOf(documents, 'document');
  for (const keyFile of keyFiles) {
    const side = sideOf([keyFile]);
    compareOrigin(comparison, reference, side);
    comparePlayReady(comparison, reference, side);
    compareFairPlay(comparison, reference, side);
  }
}

type Compare = (comparison: Comparison, reference: Side, other: Side) => void;

const KEY_ID_CODES = ['key_id_mismatch', 'key_id_byte_order', 'key_and_key_id_swapped'];
const ASPECTS: readonly (readonly [codes: readonly string[], compare: Compare])[] = [
  [KEY_ID_CODES, compareKeyIdsOf],
  [['scheme_mismatch'], compareSchemes],
  [['content_id_mismatch'], compareContentIds],
  [['license_address_differs'], comparePlayReady],
  [['checksum_mismatch'], compareChecksums],
];

/** Differences from the key files are not repeated. */
function compareMedia(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
  hasKeyFiles: boolean,
): void {
  for (const [codes, compare] of ASPECTS) {
    const isNew = ({ name }: CheckedInput) => !comparison.hasReported(codes, name);
    const files = media.filter(isNew);
    const remaining = manifests.filter(isNew);
    for (const manifest of remaining) {
      const found = new Comparison();
      compare(found, sideOf(files, 'file'), sideOf([manifest]));
      const others = remaining.filter((other) => other !== manifest);
      const isOfOthers = files.every((file) => others.some((other) => agree(compare, file, other)));
      const isCertain = found.faults.some(({ code }) => code === 'key_id_byte_order');
      // A key file confirms the key ids of the compared inputs, but it may have lines for both schemes.
      const isVouchedFor = namesNoKeyId(manifest) || (hasKeyFiles && compare === compareKeyIdsOf);
      if (!isOfOthers || isCertain) comparison.take(found);
      else if (!isVouchedFor)
        comparison.take(found, `If ${manifest.name} belongs to other media, check it together with them.`);
    }
  }
  compareRenditions(comparison, media, manifests, hasKeyFiles);
  compareProtection(comparison, media, manifests);
}

function agree(compare: Compare, file: CheckedInput, manifest: CheckedInput): boolean {
  const { compared, faults } = compareTwo(compare, file, manifest);
  return compared.length > 0 && faults.length === 0;
}

function compareTwo(compare: Compare, file: CheckedInput, manifest: CheckedInput) {
  const trial = new Comparison();
  compare(trial, sideOf([file]), sideOf([manifest]));
  return trial.result();
}

/** A playlist for FairPlay next to a DASH manifest more likely belongs to other media than to be a fault. */
function namesNoKeyId({ claims }: CheckedInput): boolean {
  const tracks = claimsOf(claims, 'track');
  return tracks.length > 0 && tracks.every(({ keyId }) => keyId === undefined);
}

/** A manifest has several renditions: each file has to be in one manifest. */
function compareRenditions(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
  hasKeyFiles: boolean,
): void {
  const isNew = ({ name }: CheckedInput) => !comparison.hasReported(KEY_ID_CODES, name);
  const remaining = manifests.filter(isNew);
  for (const file of media.filter(isNew)) {
    const ofScheme = remaining.filter((manifest) => agree(compareSchemes, file, manifest));
    const isSilent = (manifest: CheckedInput) =>
      compareTwo(compareKeyIdsOf, file, manifest).compared.length === 0;
    // It may belong to a file without a key id, or to one that was not given, if a key file confirms it.
    if (ofScheme.some(isSilent) || (hasKeyFiles && ofScheme.length === 0)) continue;
    compareKeyIdsOf(comparison, sideOf(remaining, 'manifest'), sideOf([file]));
  }
}

function compareProtection(
  comparison: Comparison,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
): void {
  const isNew = ({ name }: CheckedInput) => !comparison.hasReported(['not_protected'], name);
  const [encrypted] = media.filter(isEncrypted);
  const clear = manifests.filter(isClear);
  if (media.length > 0 && clear.length > 0) comparison.note('protection');
  for (const manifest of encrypted ? clear.filter(isNew) : []) {
    const sentence = `${manifest.name} does not signal the protection of ${encrypted?.name}, so players request no license; package again with signalling`;
    comparison.fault('not_protected', [manifest.name, encrypted?.name ?? ''], sentence);
  }
  const promising = sideOf(manifests.filter(promisesProtection), 'manifest');
  // Clear sound with encrypted pictures may be intended.
  if (encrypted || !manifests.some(promisesProtection)) return;
  for (const file of media.filter(isClear)) {
    comparison.note('protection');
    if (!isNew(file)) continue;
    const sentence = `${file.name} is not protected, although ${promising.called} ${promising.has} signalling for protection; give the key file the name of the stream, and restart the stream`;
    comparison.fault('not_protected', [file.name, ...promising.names], sentence);
  }
}

function isComparedAsClear(
  input: CheckedInput,
  media: readonly CheckedInput[],
  manifests: readonly CheckedInput[],
): boolean {
  const isSome = media.some(isEncrypted);
  if (manifests.includes(input)) return isSome;
  return media.includes(input) && !isSome && manifests.some(promisesProtection);
}

function isEncrypted({ claims }: CheckedInput): boolean {
  return claimsOf(claims, 'track').length > 0;
}

function isClear({ claims }: CheckedInput): boolean {
  return claimsOf(claims, 'clear').length > 0;
}

/** Some manifests signal protection without the key id: the init segments have it. */
function promisesProtection({ claims, result }: CheckedInput): boolean {
  return (
    claims.some((claim) => claim.of === 'track' || claim.of === 'box') ||
    result.faults.some(({ code }) => code === 'names_nothing')
  );
}
