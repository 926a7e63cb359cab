import { join } from 'node:path';
import fs from 'fs-extra';
import type { HlsEncryption, OpenedMedia } from '../../src/verify/media/judgement';
import { openMedia } from '../../src/verify/media/open-media';
import { type Packaging, packagedOnce } from './package-stream';
import { right } from './right';

export const KEY = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
export const KEY_ID = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
export const IV = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
const VECTORS = join(__dirname, '../vectors/media');

/** The source of what is packaged, and other small media. */
export function vector(name: string): Buffer {
  return fs.readFileSync(join(VECTORS, name));
}

/** The result of `openMedia`; a fault fails the test. */
export const opened = (init: Buffer | undefined, segment: Buffer, hls?: HlsEncryption): OpenedMedia =>
  right(openMedia(init, segment, hls)).value;

/** Three segments of two seconds of picture (`v`) and of sound (`a`), as shaka-packager encrypts them. */
export type Packaged = Awaited<ReturnType<typeof packaged>>;

/**
 * Packages the source, once in each file of tests, under a scheme of mp4, as SAMPLE-AES in transport streams, or clear in
 * those.
 *
 * @param source a vector, in place of the usual one
 */
export async function packaged(kind: Packaging['scheme'] | 'sample-aes' | 'clear-ts', source?: string) {
  const isMp4 = kind !== 'sample-aes' && kind !== 'clear-ts';
  const keys = { keyId: KEY_ID.toString('hex'), key: KEY.toString('hex') };
  const extension = isMp4 ? 'm4s' : 'ts';
  // IVs that are always the same, so that each run judges the same noise. Under a counter they have eight bytes.
  const iv = IV.subarray(0, kind === 'cenc' || kind === 'cens' ? 8 : 16).toString('hex');
  const packaging: Packaging | undefined =
    kind === 'clear-ts' ? undefined : { scheme: kind === 'sample-aes' ? 'cbcs' : kind, ...keys, iv };
  const playlists = isMp4 ? 'dash' : 'hls';
  const folder = await packagedOnce({
    ...(source && { source: join(VECTORS, source) }),
    packaging,
    extension,
    playlists,
  });
  return {
    init: (track: 'v' | 'a'): Buffer => fs.readFileSync(join(folder, `${track}.mp4`)),
    segment: (track: 'v' | 'a', number: number): Buffer =>
      fs.readFileSync(join(folder, `${track}${number}.${extension}`)),
  };
}
