import { createDecipheriv } from 'node:crypto';
import type { MediaSample, MediaTrack, SampleEncryption, SampleFormat, Subsample } from './judgement';
import { decryptSampleAes } from './sample-aes';

const BLOCK = 16;
const HALF = 1n << 64n;

/** Decrypts a copy of a sample by ISO/IEC 23001-7:2023 § 9 and 10, or SAMPLE-AES; `iv` is in place of its own. */
export function decryptSample(
  { data, encryption }: MediaSample,
  format: SampleFormat,
  key: Buffer,
  iv?: Buffer,
): Buffer {
  const used = iv ?? encryption?.iv;
  if (!encryption || !used) return data;
  if (encryption.scheme === 'sample-aes') {
    return decryptSampleAes(data, format, (blocks) => decryptBlocks(key, used, blocks));
  }
  const clear = Buffer.from(data);
  const decrypt = cipherOf(encryption, key, used);
  for (const range of protectedRanges(encryption.subsamples, data.length)) {
    const runs = runsOf(clear.subarray(range.from, range.to), encryption);
    const plain = decrypt(Buffer.concat(runs));
    let at = 0;
    for (const run of runs) at += plain.copy(run, 0, at);
  }
  return clear;
}

export function protectedRanges(
  subsamples: readonly Subsample[] | undefined,
  size: number,
): { from: number; to: number }[] {
  if (!subsamples) return size > 0 ? [{ from: 0, to: size }] : [];
  const ranges: { from: number; to: number }[] = [];
  let at = 0;
  for (const subsample of subsamples) {
    const from = at + subsample.clear;
    at = from + subsample.protected;
    if (at > size) break;
    if (at > from) ranges.push({ from, to: at });
  }
  return ranges;
}

/** Of one track; they stay in memory until all renditions are tested. */
const MOST_COUNTERS = 1000;

/** The key ids and first counters of samples under CTR, each with the last encrypted bytes of its sample. */
export function countersOf(tracks: readonly MediaTrack[]): [counter: string, bytes: string][] {
  const samples = tracks.flatMap(({ content }) => content.samples.slice(0, MOST_COUNTERS));
  return samples.flatMap(({ data, encryption }) => {
    const last = protectedRanges(encryption?.subsamples, data.length).at(-1);
    if (!last || !encryption?.iv || !/^cen/.test(encryption.scheme)) return [];
    const counter = `${encryption.keyId?.toString('hex')} ${encryption.iv.toString('hex')}`;
    return [[counter, data.toString('hex', Math.max(last.from, last.to - BLOCK), last.to)]];
  });
}

/** The encrypted parts of protected bytes: under a pattern, and in CBC, whole blocks alone. */
function runsOf(bytes: Buffer, { scheme, pattern }: SampleEncryption): Buffer[] {
  if (scheme === 'cenc') return [bytes];
  const whole = bytes.subarray(0, bytes.length - (bytes.length % BLOCK));
  if (!pattern) return [whole];
  const runs: Buffer[] = [];
  const period = (pattern.crypt + pattern.skip) * BLOCK;
  for (let at = 0; at < whole.length; at += period) runs.push(whole.subarray(at, at + pattern.crypt * BLOCK));
  return runs;
}

/** CTR, and CBC under `cbc1`, go on from one subsample to the next; `cbcs` begins each with its IV. */
function cipherOf({ scheme }: SampleEncryption, key: Buffer, iv: Buffer): (bytes: Buffer) => Buffer {
  if (scheme === 'cenc' || scheme === 'cens') return counterCipher(key, iv);
  let chain = iv;
  return (bytes) => {
    if (bytes.length === 0) return bytes;
    const plain = decryptBlocks(key, chain, bytes);
    if (scheme === 'cbc1') chain = bytes.subarray(bytes.length - BLOCK);
    return plain;
  };
}

export function decryptBlocks(key: Buffer, iv: Buffer, bytes: Buffer): Buffer {
  const cipher = createDecipheriv('aes-128-cbc', key, iv).setAutoPadding(false);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}

/** The counter is the lower half alone, and does not carry into the upper (§ 10.1); that of OpenSSL would. */
function counterCipher(key: Buffer, iv: Buffer): (bytes: Buffer) => Buffer {
  let cipher = createDecipheriv('aes-128-ctr', key, iv);
  let left = Number(HALF - iv.readBigUInt64BE(8)) * BLOCK;
  return (bytes) => {
    if (bytes.length <= left) {
      left -= bytes.length;
      return cipher.update(bytes);
    }
    const before = cipher.update(bytes.subarray(0, left));
    cipher = createDecipheriv('aes-128-ctr', key, Buffer.concat([iv.subarray(0, 8), Buffer.alloc(8)]));
    const after = cipher.update(bytes.subarray(left));
    left = Number.POSITIVE_INFINITY;
    return Buffer.concat([before, after]);
  };
}

/** Decrypts a whole segment (RFC 8216 § 4.3.2.4: AES-128-CBC, PKCS #7). Undefined where its padding is not right. */
export function decryptSegment(bytes: Buffer, key: Buffer, iv: Buffer): Buffer | undefined {
  if (bytes.length === 0 || bytes.length % BLOCK !== 0) return undefined;
  const plain = decryptBlocks(key, iv, bytes);
  const padding = plain[plain.length - 1] ?? 0;
  const end = plain.subarray(plain.length - Math.min(padding, BLOCK));
  if (padding < 1 || padding > BLOCK || end.some((byte) => byte !== padding)) return undefined;
  return plain.subarray(0, plain.length - padding);
}

/** The IV that a segment has without one of its own: its media sequence number, big endian (RFC 8216 § 5.2). */
export function ivOfSequence(sequence: number): Buffer {
  const iv = Buffer.alloc(BLOCK);
  iv.writeBigUInt64BE(BigInt(Math.max(0, Math.trunc(sequence))), 8);
  return iv;
}
