import { isAmong, swapKeyIdOrder } from '../../drm/bytes';
import { decryptSample } from './decrypt';
import type { JudgementCause, MediaKey, MediaTrack } from './judgement';
import type { MediaSample } from './track-content';

export interface Part {
  readonly track: MediaTrack;
  readonly samples: readonly MediaSample[];
}

export type Decrypt = (sample: MediaSample, track: MediaTrack) => Buffer;

interface Attempt {
  readonly decrypt: Decrypt;
  readonly cause: JudgementCause;
  readonly description: string;
}

export function withKey(key: Buffer, iv?: Buffer): Decrypt {
  return (sample, track) => decryptSample(sample, track.content.format, key, iv);
}

/** The usual one of pictures, that of whole samples, and another that packagers offer. */
const PATTERNS = [{ crypt: 1, skip: 9 }, undefined, { crypt: 5, skip: 5 }] as const;

/** What may be wrong where a key does not decrypt: IV, pattern, byte order, or a second encryption. */
export function* attemptsOf(
  parts: readonly Part[],
  fitting: readonly MediaKey[],
  keys: readonly MediaKey[],
): Generator<Attempt> {
  const hasConstantIv = parts.some(
    ({ track }) => track.constantIv !== undefined || track.scheme === 'sample-aes',
  );
  const given = fitting.flatMap(({ iv }) => (iv?.length === 16 ? [iv] : []));
  const came = 'It decrypts with the IV that the key came with';
  const ivs = [
    ...given.flatMap((iv) => [
      { iv, description: `${came}; the media name a different one.` },
      { iv: Buffer.from(iv).reverse(), description: `${came} in reverse byte order.` },
    ]),
    {
      iv: Buffer.alloc(16),
      description: 'It decrypts with an IV of zeros; the media name a different one.',
    },
  ];
  for (const { key } of fitting) {
    if (hasConstantIv) {
      for (const { iv, description } of ivs)
        yield { decrypt: withKey(key, iv), cause: 'wrong_iv', description };
    }
    for (const pattern of parts.some(({ track }) => track.scheme === 'cbcs') ? PATTERNS : []) {
      const named = pattern ? `the pattern ${pattern.crypt}:${pattern.skip}` : 'no pattern';
      yield {
        decrypt: ({ data, encryption }, track) =>
          decryptSample(
            { data, encryption: encryption && { ...encryption, pattern } },
            track.content.format,
            key,
          ),
        cause: 'wrong_pattern',
        description: `It decrypts with ${named}; the media name a different one.`,
      };
    }
    const order = 'It decrypts with the bytes of the content key in another order';
    yield {
      decrypt: withKey(swapKeyIdOrder(key)),
      cause: 'key_byte_order',
      description: `${order}: bytes 0-3, 4-5 and 6-7 are reversed, as PlayReady writes key ids (but never keys).`,
    };
    yield {
      decrypt: withKey(Buffer.from(key).reverse()),
      cause: 'key_byte_order',
      description: `${order}: all 16 are reversed.`,
    };
  }
  yield* twice(fitting, keys);
}

/** With each two keys; a counter that is applied twice with one key is as none, so that this is seen as clear. */
function* twice(fitting: readonly MediaKey[], keys: readonly MediaKey[]): Generator<Attempt> {
  const seconds: Buffer[] = [];
  for (const { key } of keys.slice(0, 4)) if (!isAmong(key, seconds)) seconds.push(key);
  for (const { key } of fitting.slice(0, 4)) {
    for (const second of seconds) {
      const decrypt: Decrypt = (sample, track) => {
        const { format } = track.content;
        return decryptSample({ ...sample, data: decryptSample(sample, format, key) }, format, second);
      };
      const also = key.equals(second) ? 'with the same key' : 'with two keys';
      yield { decrypt, cause: 'encrypted_twice', description: `It is encrypted twice, ${also}.` };
    }
  }
}
