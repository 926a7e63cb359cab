import { nalUnitsOf } from './nal-units';

/** A sample's NAL units; undefined where it breaks rules that need no parameter sets (ISO/IEC 23008-2 § 7.3.1.2). */
export function hevcUnitsOf(sample: Buffer, lengthSize: number): Buffer[] | undefined {
  const units = nalUnitsOf(sample, lengthSize);
  if (!units || units.length === 0) return undefined;
  const isBroken = units.some((nal) => nal.length < 3 || hasBrokenHeader(nal) || hasForbiddenBytes(nal));
  return isBroken ? undefined : units;
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
