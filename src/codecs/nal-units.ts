/** No picture has as many slices; a hostile one of four bytes each would fill the memory. */
const MAX_UNITS = 20_000;

/** The NAL units of a sample; `lengthSize` 0 is for start codes (Annex B). Undefined where lengths do not add up. */
export function nalUnitsOf(sample: Buffer, lengthSize: number): Buffer[] | undefined {
  if (lengthSize === 0) return betweenStartCodes(sample);
  const units: Buffer[] = [];
  let at = 0;
  while (at < sample.length) {
    if (at + lengthSize > sample.length) return undefined;
    const length = sample.readUIntBE(at, lengthSize);
    at += lengthSize;
    if (at + length > sample.length) return undefined;
    const end = withoutZeros(sample, at, at + length);
    if (end > at) units.push(sample.subarray(at, end));
    if (units.length > MAX_UNITS) return undefined;
    at += length;
  }
  return units;
}

/** The end of a NAL unit: zeros behind it belong to the next start code; some containers keep them. */
function withoutZeros(sample: Buffer, start: number, end: number): number {
  let last = end;
  while (last > start && sample[last - 1] === 0) last -= 1;
  return last;
}

export const START_CODE = Buffer.from([0, 0, 1]);

function betweenStartCodes(sample: Buffer): Buffer[] | undefined {
  const units: Buffer[] = [];
  let at = sample.indexOf(START_CODE);
  while (at >= 0) {
    const next = sample.indexOf(START_CODE, at + 3);
    const end = withoutZeros(sample, at + 3, next < 0 ? sample.length : next);
    if (end > at + 3) units.push(sample.subarray(at + 3, end));
    if (units.length > MAX_UNITS) return undefined;
    at = next;
  }
  return units;
}
