import { BitReader, rbspOf, SyntaxBroken } from './bit-reader';
import { Cabac } from './cabac';
import { CodingTreeReader } from './hevc-coding-tree';
import { HevcFrame } from './hevc-frame';
import { HevcParameters } from './hevc-parameters';
import { readSegmentHeader } from './hevc-slice-header';
import { nalUnitsOf } from './nal-units';
import type { Outcome } from './picture-check';

/** A sample has one picture; those of careless containers may have a few. */
const MOST_PICTURES = 4;

export class HevcPictureCheck {
  readonly #parameters = new HevcParameters();

  constructor(
    private readonly lengthSize: number,
    parameterSets: readonly Buffer[],
  ) {
    for (const nal of parameterSets) this.#parameters.take(nal);
  }

  /** Takes the parameter sets of a picture, of which the next ones may be. */
  passOver(sample: Buffer): void {
    for (const nal of nalUnitsOf(sample, this.lengthSize) ?? [])
      if (isOfFirstLayer(nal)) this.#parameters.take(nal);
  }

  check(sample: Buffer): Outcome {
    const units = hevcUnitsOf(sample, this.lengthSize);
    if (!units) return 'broken';
    let frame: HevcFrame | undefined;
    let isKnown = true;
    let pictures = 0;
    for (const nal of units) {
      if (!isOfFirstLayer(nal)) continue;
      const type = (nal[0] ?? 0) >> 1;
      this.#parameters.take(nal);
      if (type > 21 || (type > 9 && type < 16)) continue;
      if (this.#parameters.pictures.size === 0) return 'undecided';
      try {
        const read = this.#segment(nal, type, frame);
        if (!read) return 'undecided';
        // Of a picture with gaps, as after a loss, its own parts prove nothing.
        if (read.isGap || (frame && read.frame !== frame && !frame.isWhole)) isKnown = false;
        if (read.frame !== frame) pictures += 1;
        if (pictures > MOST_PICTURES) return 'undecided';
        frame = read.frame;
      } catch (error) {
        if (!(error instanceof SyntaxBroken)) throw error;
        return 'broken';
      }
    }
    return isKnown && frame?.isWhole ? 'valid' : 'undecided';
  }

  /** Undefined where it is of a profile that is not read, or its picture began in another sample. */
  #segment(
    nal: Buffer,
    type: number,
    before: HevcFrame | undefined,
  ): { frame: HevcFrame; isGap: boolean } | undefined {
    const rbsp = rbspOf(nal.subarray(2));
    const bits = new BitReader(rbsp);
    const segment = readSegmentHeader(bits, type, this.#parameters, before?.slice);
    if (!segment) return undefined;
    const frame = segment.isFirst ? new HevcFrame(segment) : before;
    if (!frame || segment.address >= frame.order.length) return undefined;
    const number = frame.order.indexOf(segment.address);
    if (number < frame.next) throw new SyntaxBroken('begins with a block that was read before');
    const isGap = number > frame.next;
    frame.next = number;
    frame.slice = segment.slice;
    if (!segment.isDependent) frame.sliceAddress = segment.address;
    const cabac = new Cabac(rbsp);
    new CodingTreeReader(cabac, rbsp, segment, frame).read(bits.position / 8);
    if (cabac.position - 1 !== bits.stop) throw new SyntaxBroken('ends before or behind its last bit');
    return { frame, isGap };
  }
}

/** Layers above the first are of extensions. */
function isOfFirstLayer([first = 0, second = 0]: Buffer): boolean {
  return (first & 1) === 0 && second >> 3 === 0;
}

/** A sample's NAL units; undefined where it breaks rules that need no parameter sets (ISO/IEC 23008-2 § 7.3.1.2). */
export function hevcUnitsOf(sample: Buffer, lengthSize: number): Buffer[] | undefined {
  const units = nalUnitsOf(sample, lengthSize);
  if (!units || units.length === 0) return undefined;
  const isBroken = units.some((nal) => nal.length < 2 || hasBrokenHeader(nal) || hasForbiddenBytes(nal));
  return isBroken ? undefined : units;
}

/** forbidden_zero_bit, and nuh_temporal_id_plus1, which is not 0. */
function hasBrokenHeader(nal: Buffer): boolean {
  return (nal[0] ?? 0) > 127 || ((nal[1] ?? 0) & 7) === 0;
}

const ZEROS = Buffer.from([0, 0]);

/** Three bytes that look like a start code, or an emulation prevention byte where none is needed. */
function hasForbiddenBytes(nal: Buffer): boolean {
  for (let at = nal.indexOf(ZEROS); at >= 0; at = nal.indexOf(ZEROS, at + 1)) {
    const third = nal[at + 2] ?? 3;
    if (third < 3) return true;
    if (third === 3 && (nal[at + 3] ?? 0) > 3) return true;
  }
  return false;
}
