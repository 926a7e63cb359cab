import type { Outcome } from './picture-check';

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
