import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createFile, Log, MP4BoxBuffer } from 'mp4box';
import type { PackagingKeys } from '../../src/drm/packaging';
import { SHAKA_PACKAGER } from './package-stream';

const DASH_KEY_ID = Buffer.from('11111111222233334444555566667777', 'hex');
const HLS_KEY_ID = Buffer.from('aaaaaaaabbbbccccddddeeeeffff0000', 'hex');

/** Keys for both outputs. */
export const PACKAGING_KEYS = {
  dash: {
    keyId: DASH_KEY_ID,
    scheme: 'cenc',
    key: Buffer.from('00112233445566778899aabbccddeeff', 'hex'),
    systems: [],
  },
  hls: {
    keyId: HLS_KEY_ID,
    key: Buffer.from('ffeeddccbbaa99887766554433221100', 'hex'),
    iv: Buffer.from('0123456789abcdef0123456789abcdef', 'hex'),
    keyUri: 'skd://fairplay.example/demo',
    scheme: 'cbcs',
    systems: [],
  },
} satisfies PackagingKeys;

// It complains of boxes that it doesn't know, of which QuickTime has many.
Object.assign(Log, { error: () => undefined });

/** The samples of each track of an mp4 file, in hex. */
export async function samplesOf(path: string): Promise<{ codec: string; samples: string[] }[]> {
  const file = createFile();
  const bytes = new Uint8Array(await readFile(path));
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(bytes.buffer, 0), true);
  return file.getInfo().tracks.map(({ id, codec }) => ({
    codec,
    samples: file.getTrackSamplesInfo(id).map(({ offset, size }) => {
      return Buffer.from(bytes.subarray(offset, offset + size)).toString('hex');
    }),
  }));
}

/** Joins init segment and segments of a stream to one file below the folder, and answers its path. */
export async function joinSegments(folder: string, name: string): Promise<string> {
  const numbers = (await readdir(folder)).flatMap((file) => {
    const number = file.startsWith(`${name}_`) ? /_(\d+)\.m4s$/.exec(file)?.[1] : undefined;
    return number === undefined ? [] : [Number(number)];
  });
  const files = numbers.sort((one, other) => one - other).map((number) => `${name}_${number}.m4s`);
  const path = join(folder, `${name}-joined.mp4`);
  const pieces = [`${name}_init.mp4`, ...files].map((file) => readFile(join(folder, file)));
  await writeFile(path, Buffer.concat(await Promise.all(pieces)));
  return path;
}

/** Decrypts a file by shaka-packager; answers the path of the clear one. */
export async function decryptedFile(file: string, kind: 'video' | 'audio', keyId: Buffer, key: Buffer) {
  const clear = `${file}.clear.mp4`;
  await promisify(execFile)(SHAKA_PACKAGER, [
    '--quiet',
    `in=${file},stream=${kind},output=${clear}`,
    '--enable_raw_key_decryption',
    `--keys=label=:key_id=${keyId.toString('hex')}:key=${key.toString('hex')}`,
  ]);
  return clear;
}

/** Decrypts a joined stream by shaka-packager; answers its samples in hex. */
export async function decryptedSamples(
  folder: string,
  name: string,
  kind: 'video' | 'audio',
  output: 'dash' | 'hls',
) {
  const { keyId, key } = PACKAGING_KEYS[output];
  const [track] = await samplesOf(await decryptedFile(await joinSegments(folder, name), kind, keyId, key));
  return track?.samples;
}
