import { decodeHexBlock, isAmong } from '../drm/bytes';
import { type CheckedInput, checkInput } from '../drm/check/check';
import { describeCpix } from '../drm/check/cpix';
import { claimsOf, Report } from '../drm/check/report';
import { maskSecrets } from '../drm/check/secrets';
import { looksLikeCpix } from '../drm/cpix/read';
import { decodeKeys, FAIRPLAY_KEY_FORMAT, HLS, keysIn, parseKeyFile } from '../drm/key-file';
import { fairPlayKeyId } from '../drm/packaging';
import { judgeMedia } from './media/judge-media';
import type { MediaKey, OpenedMedia } from './media/judgement';
import type { SegmentSource } from './rendition';

/** A key file, or a CPIX document with plain keys. */
export interface GivenKeyFile {
  readonly name: string;
  readonly text: string;
  /** When the sidecar wrote it, whose folder the packager reads; undefined for another copy. */
  readonly changed?: Date | undefined;
  /** Whether it is one of several of a stream whose keys rotate, the oldest first: each segment names its own. */
  readonly rotates?: boolean;
}

/** A key file, or one key of a CPIX document. It holds key material, which is never shown. */
export interface ReadKeyFile {
  readonly name: string;
  readonly changed: Date | undefined;
  readonly isDocument: boolean;
  readonly rotates: boolean;
  /** For a document: its claims about this key, and the key ids of all others. */
  readonly checked: CheckedInput;
  readonly cenc: ReturnType<typeof decodeKeys>;
  readonly fairPlay: { key: Buffer; iv: Buffer | undefined; url: string | undefined } | undefined;
}

/** Reads a key file or a document as leniently as possible: its check reports the faults. */
export function readKeyFile(given: GivenKeyFile): ReadKeyFile[] {
  const { name, text, changed, rotates = false } = given;
  if (looksLikeCpix(text)) return keysOfDocument(given);
  const values = new Map(parseKeyFile(text).lines.map((line) => [line.name, line.value]));
  const [key, iv] = ['key', 'iv'].map((part) => {
    const read = decodeHexBlock(values.get(`${HLS}-${part}`) ?? '');
    return read.ok ? read.value : undefined;
  });
  const checked = checkInput(text, { name: /\.key$/i.test(name) ? name : `${name}.key` });
  const fairPlay = key && { key, iv, url: values.get(`${HLS}-url`) };
  return [{ name, changed, isDocument: false, rotates, checked, cenc: decodeKeys(keysIn(text)), fairPlay }];
}

function keysOfDocument({ name, text, changed }: GivenKeyFile): ReadKeyFile[] {
  // Parts that a key file can't have are no fault of the stream.
  const report = new Report();
  describeCpix(report, text);
  const { claims, secrets, findings: faults } = report;
  const result = maskSecrets({ kind: 'cpix', fields: [], faults }, secrets);
  const checked = { name, result, claims, secrets };
  const common = { name, changed, isDocument: true, rotates: false };
  const keys = claimsOf(claims, 'key').map(({ at, keyId, contentKey }): ReadKeyFile => {
    const place = at.slice(0, at.lastIndexOf('.') + 1);
    const own = claims.filter((claim) => claim.at.startsWith(place));
    const [{ key } = { key: undefined }] = claimsOf(own, 'fairplay');
    const address = claimsOf(own, 'address').find(({ system }) => system === 'fairplay');
    return {
      ...common,
      checked: { ...checked, claims: claims.filter((claim) => claim.of === 'key' || own.includes(claim)) },
      cenc: contentKey && { keyId, contentKey },
      fairPlay: key && { key, iv: claimsOf(own, 'iv')[0]?.iv, url: address?.address },
    };
  });
  return keys.length > 0 ? keys : [{ ...common, checked, cenc: undefined, fairPlay: undefined }];
}

/**
 * The keys of documents, and of key files that rotate, that a rendition names by its key ids, else by FairPlay's address;
 * all of them, if it names none. Another key file has one key for all renditions.
 */
export function matchingFiles(
  files: readonly ReadKeyFile[],
  keyIds: readonly Buffer[],
  segment: SegmentSource | undefined,
): readonly ReadKeyFile[] {
  const isChosen = ({ isDocument, rotates }: ReadKeyFile) => isDocument || rotates;
  const chosen = files.filter(isChosen);
  const byId = chosen.filter(({ cenc }) => cenc && isAmong(cenc.keyId, keyIds));
  const uris = segment?.keys?.map(({ uri }) => uri) ?? [];
  const byAddress = chosen.filter(
    ({ fairPlay }) => fairPlay?.url !== undefined && uris.includes(fairPlay.url),
  );
  const meant = byId.length > 0 ? byId : byAddress;
  return meant.length > 0 ? files.filter((file) => !isChosen(file) || meant.includes(file)) : files;
}

export function isForFairPlay({ keys = [] }: SegmentSource): boolean {
  return keys.some(({ format, uri }) => format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(uri ?? ''));
}

export function keysFor(
  files: readonly ReadKeyFile[],
  segment: SegmentSource,
  keyIds: readonly Buffer[],
): MediaKey[] {
  return matchingFiles(files, keyIds, segment).flatMap((file) => keysOf(file, segment, keyIds));
}

/** Of the keys that rotate, one that decrypts a segment although the segment names another. */
export function findSubstituteKey(
  files: readonly ReadKeyFile[],
  segment: SegmentSource,
  media: OpenedMedia,
): { readonly name: string; readonly isNext: boolean } | undefined {
  const keyIds = media.tracks.flatMap((track) => track.keyIds);
  const meant = matchingFiles(files, keyIds, segment);
  const others = files.filter((file) => file.rotates && !meant.includes(file));
  const found = others.find((file) => {
    const keys = keysOf(file, segment, keyIds).map(({ keyId: _, ...key }) => key);
    return judgeMedia(media, keys).state === 'decrypts';
  });
  if (!found) return undefined;
  return { name: found.name, isNext: meant.every((file) => files.indexOf(file) < files.indexOf(found)) };
}

/** FairPlay's key has no id in a key file, so it is for the address in the playlist. */
function keysOf(
  { cenc, fairPlay, isDocument }: ReadKeyFile,
  segment: SegmentSource,
  keyIds: readonly Buffer[],
): MediaKey[] {
  const keys: MediaKey[] = [];
  const ofFairPlay = fairPlay && { key: fairPlay.key, ...(fairPlay.iv && { iv: fairPlay.iv }) };
  if (ofFairPlay && isForFairPlay(segment)) {
    const isAsked = segment.keys?.some(({ uri }) => uri === fairPlay.url);
    // In a document it has an id, so samples of another one are its own only where the playlist has its address.
    const isBound = isDocument && keyIds.length > 0 && (!isAsked || (cenc && isAmong(cenc.keyId, keyIds)));
    keys.push(isBound ? { ...ofFairPlay, keyId: cenc?.keyId } : ofFairPlay);
  } else if (ofFairPlay && fairPlay.url !== undefined)
    keys.push({ ...ofFairPlay, keyId: fairPlayKeyId(fairPlay.url) });
  // FairPlay's players never get the other key of a key file.
  if (cenc && (isDocument || !ofFairPlay || !isForFairPlay(segment)))
    keys.push({ keyId: cenc.keyId, key: cenc.contentKey });
  return keys;
}

export function nounOf(keyFiles: readonly ReadKeyFile[]): 'key file' | 'document' {
  return keyFiles.length > 0 && keyFiles.every(({ isDocument }) => isDocument) ? 'document' : 'key file';
}

export function inputsOf(
  keyFiles: readonly ReadKeyFile[],
  segment: SegmentSource | undefined,
): CheckedInput[] {
  const inputs = new Map<string, CheckedInput>();
  for (const { name, checked, isDocument } of keyFiles) {
    // FairPlay plays cbcs with any scheme of its key; that is not the scheme of other systems.
    const isOfOthers = isDocument && claimsOf(checked.claims, 'scheme').length > 0;
    const isLeftOut = isOfOthers && !(segment && isForFairPlay(segment));
    const own = checked.claims.filter(({ of }) => !isLeftOut || of !== 'fairplay');
    const claims = new Set([...(inputs.get(name)?.claims ?? []), ...own]);
    inputs.set(name, { ...checked, name, claims: [...claims] });
  }
  return [...inputs.values()];
}
