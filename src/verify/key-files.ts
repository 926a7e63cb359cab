import { decodeHexBlock } from '../drm/bytes';
import { type CheckedInput, checkInput } from '../drm/check/check';
import { decodeKeys, FAIRPLAY_KEY_FORMAT, HLS, keysIn, parseKeyFile } from '../drm/key-file';
import { fairPlayKeyId } from '../drm/packaging';
import type { MediaKey } from './media/judgement';
import type { SegmentSource } from './rendition';

export interface GivenKeyFile {
  readonly name: string;
  readonly text: string;
  /** When the sidecar wrote it, whose folder the packager reads; undefined for another copy. */
  readonly changed?: Date | undefined;
}

/** A key file with what it has for decrypting. It holds key material, none of which is ever shown. */
export interface ReadKeyFile {
  readonly name: string;
  readonly changed: Date | undefined;
  readonly checked: CheckedInput;
  readonly cenc: { readonly keyId: Buffer; readonly contentKey: Buffer } | undefined;
  readonly fairPlay:
    | { readonly key: Buffer; readonly iv: Buffer | undefined; readonly url: string | undefined }
    | undefined;
}

/** Reads a key file as leniently as possible: its check reports what is wrong with it. */
export function readKeyFile({ name, text, changed }: GivenKeyFile): ReadKeyFile {
  const values = new Map(parseKeyFile(text).lines.map((line) => [line.name, line.value]));
  const key = decodeHexBlock(values.get(`${HLS}-key`) ?? '');
  const iv = decodeHexBlock(values.get(`${HLS}-iv`) ?? '');
  return {
    name,
    changed,
    checked: checkInput(text, { name: /\.key$/i.test(name) ? name : `${name}.key` }),
    cenc: decodeKeys(keysIn(text)),
    fairPlay: key.ok
      ? { key: key.value, iv: iv.ok ? iv.value : undefined, url: values.get(`${HLS}-url`) }
      : undefined,
  };
}

export function isForFairPlay({ keys = [] }: SegmentSource): boolean {
  return keys.some(({ format, uri }) => format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(uri ?? ''));
}

/** What a key file has for a segment: FairPlay names no key id, so its key is for what its playlist names. */
export function keysFor({ cenc, fairPlay }: ReadKeyFile, segment: SegmentSource): MediaKey[] {
  const keys: MediaKey[] = [];
  const ofFairPlay = fairPlay && { key: fairPlay.key, ...(fairPlay.iv && { iv: fairPlay.iv }) };
  if (ofFairPlay && isForFairPlay(segment)) keys.push(ofFairPlay);
  else if (ofFairPlay && fairPlay.url !== undefined)
    keys.push({ ...ofFairPlay, keyId: fairPlayKeyId(fairPlay.url) });
  if (cenc) keys.push({ keyId: cenc.keyId, key: cenc.contentKey });
  return keys;
}
