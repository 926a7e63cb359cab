import type { Outcome } from './picture-check';

/** A frame in its ADTS header (ISO/IEC 13818-7 § 6.2). */
interface AdtsFrame {
  readonly length: number;
  readonly headerLength: number;
}

/** sampling_frequency_index goes from 0 to 12. */
const FREQUENCIES = 13;

export function readAdtsHeader(bytes: Buffer, at = 0): AdtsFrame | undefined {
  if (at + 7 > bytes.length || (bytes.readUInt16BE(at) & 0xfff6) !== 0xfff0) return undefined;
  const [, protection = 0, profile = 0, high = 0, middle = 0, low = 0] = bytes.subarray(at, at + 6);
  const length = ((high & 3) << 11) | (middle << 3) | (low >> 5);
  const headerLength = protection & 1 ? 7 : 9;
  if (((profile >> 2) & 15) >= FREQUENCIES || length < headerLength) return undefined;
  return { length, headerLength };
}

/** Main, LC, SSR and LTP, and SBR and PS around them: their frames are raw_data_blocks. */
const OBJECT_TYPES: readonly number[] = [1, 2, 3, 4, 5, 29];

/** Whether the frames of an AudioSpecificConfig (ISO/IEC 14496-3 § 1.6.2.1) can be checked by `checkAacFrame`. */
export function hasRawDataBlocks(config: Buffer): boolean {
  return OBJECT_TYPES.includes((config[0] ?? 0) >> 3);
}

/** The parts of a frame to check; without both, nothing is known. */
export interface FrameEnds {
  readonly start: boolean;
  readonly end: boolean;
}

/** How unlikely it is that noise passes, as binary logarithms: the start, and the end, of a frame. */
export const START_BITS = 6;
export const END_BITS = 2;

const SINGLE_CHANNEL = 0;
const CHANNEL_PAIR = 1;
/** Data, program configuration and fill: rare before the first channel, and made of anything. */
const WITHOUT_SOUND: readonly number[] = [4, 5, 6];

/**
 * Whether a raw_data_block of AAC (ISO/IEC 14496-3 § 4.4.2), without ADTS header, starts with a channel of
 * instance tag 0 (noise does once in 64 times), and ends with ID_END, zeros and bytes of zeros (once in 4).
 */
export function checkAacFrame(frame: Buffer, { start, end }: FrameEnds): Outcome {
  const isCut = end && !endsWithIdEnd(frame);
  const [first = 0xff] = frame;
  const element = first >> 5;
  if (!start && end) return isCut ? 'broken' : 'valid';
  if (!start || WITHOUT_SOUND.includes(element)) return isCut ? 'broken' : 'undecided';
  const tag = (first >> 1) & 15;
  if ((element !== SINGLE_CHANNEL && element !== CHANNEL_PAIR) || tag !== 0) return 'broken';
  // Microsoft's encoder fills the last byte with other bits than zeros.
  return isCut ? 'undecided' : 'valid';
}

function endsWithIdEnd(frame: Buffer): boolean {
  let last = frame.length - 1;
  while (last > 0 && frame[last] === 0) last -= 1;
  const bits = ((frame[last - 1] ?? 0) << 8) | (frame[last] ?? 0);
  if (bits === 0) return false;
  const withoutZeros = bits / (bits & -bits);
  return (withoutZeros & 7) === 7;
}

/** Fewer bytes than this prove no noise. */
const LEAST_OF_NOISE = 2000;
/** In standard deviations of chi square; noise stays below the first, and passes the second once in ten million times. */
const NOISE = 3;
const COMPRESSED = 6;

/** Distinguishes compressed data from noise, whose byte values are all as frequent: by chi square. */
export function checkByteValues(bytes: Buffer): Outcome {
  const counts = new Uint32Array(256);
  for (const byte of bytes) counts[byte] = (counts[byte] ?? 0) + 1;
  const expected = bytes.length / counts.length;
  const square = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  const deviations = (square - 255) / Math.sqrt(2 * 255);
  if (deviations > COMPRESSED) return 'valid';
  return deviations < NOISE && bytes.length >= LEAST_OF_NOISE ? 'broken' : 'undecided';
}
