import { nalUnitsOf } from './nal-units';
import type { Outcome } from './picture-check';

/**
 * What can be told of pictures of H.265 without reading their slices: lengths that do not add up, headers that can't be
 * (ISO/IEC 23008-2 § 7.3.1.2), and bytes that no NAL unit has. Noise breaks the rules rarely, so that keeping them
 * proves nothing.
 */
export function checkHevcPicture(sample: Buffer, lengthSize: number): Outcome {
  const units = nalUnitsOf(sample, lengthSize);
  if (!units || units.length === 0) return 'broken';
  return units.some((nal) => nal.length < 3 || hasBrokenHeader(nal) || hasForbiddenBytes(nal))
    ? 'broken'
    : 'undecided';
}

/** forbidden_zero_bit, and nuh_temporal_id_plus1, which is not 0. */
function hasBrokenHeader(nal: Buffer): boolean {
  return (nal[0] ?? 0) > 127 || ((nal[1] ?? 0) & 7) === 0;
}

const ZEROS = Buffer.from([0, 0]);

/** Three bytes that look like a start code, an emulation prevention byte before what needs none, or a zero at the end. */
function hasForbiddenBytes(nal: Buffer): boolean {
  if (nal[nal.length - 1] === 0) return true;
  for (let at = nal.indexOf(ZEROS); at >= 0; at = nal.indexOf(ZEROS, at + 1)) {
    const third = nal[at + 2] ?? 3;
    if (third < 3) return true;
    if (third === 3 && (nal[at + 3] ?? 0) > 3) return true;
  }
  return false;
}
