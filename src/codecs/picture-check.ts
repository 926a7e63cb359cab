import { BitReader, rbspOf, SyntaxBroken } from './bit-reader';
import { Cabac } from './cabac';
import { CavlcReader } from './h264-cavlc';
import { CABAC_CONTEXTS } from './h264-contexts';
import { MacroblockReader } from './h264-macroblocks';
import { H264Parameters, readSliceHeader } from './h264-parameters';
import { nalUnitsOf } from './nal-units';

/** `valid` by rules that noise breaks, `broken` by rules that no encoder breaks, `undecided` where neither is known. */
export type Outcome = 'valid' | 'broken' | 'undecided';

/** Reads pictures of H.264 one after another, with the parameter sets that stand before them. */
export class PictureCheck {
  readonly #parameters = new H264Parameters();

  constructor(
    private readonly lengthSize: number,
    parameterSets: readonly Buffer[],
  ) {
    for (const nal of parameterSets) this.#parameters.take(nal);
  }

  /** Takes the parameter sets of a picture, of which the next ones may be. */
  passOver(sample: Buffer): void {
    for (const nal of nalUnitsOf(sample, this.lengthSize) ?? []) this.#parameters.take(nal);
  }

  check(sample: Buffer): Outcome {
    const units = nalUnitsOf(sample, this.lengthSize);
    if (!units || units.length === 0) return 'broken';
    let slices = 0;
    let undecided = 0;
    for (const nal of units) {
      const header = nal[0] ?? 0;
      const type = header & 31;
      // forbidden_zero_bit
      if (header > 127 || type === 0) return 'broken';
      this.#parameters.take(nal);
      if (type !== 1 && type !== 5) continue;
      const outcome = this.#slice(nal);
      if (outcome === 'broken') return 'broken';
      slices += 1;
      if (outcome === 'undecided') undecided += 1;
    }
    return slices > undecided ? 'valid' : 'undecided';
  }

  #slice(nal: Buffer): Outcome {
    if (this.#parameters.pictures.size === 0) return 'undecided';
    const rbsp = rbspOf(nal.subarray(1));
    let isSure = true;
    try {
      const bits = new BitReader(rbsp);
      const header = readSliceHeader(bits, nal[0] ?? 0, this.#parameters);
      const { sequence, picture } = header;
      if (sequence.chromaFormat > 2 || (sequence.adaptive && !header.isField)) return 'undecided';
      if (!picture.isCabac && sequence.chromaFormat !== 1) return 'undecided';
      // No stream of field pictures was at hand to hold the reader to.
      isSure = !header.isField;
      if (!picture.isCabac) {
        new CavlcReader(bits, header).read();
        return 'valid';
      }
      while (bits.position % 8 !== 0) {
        if (bits.bit() === 0) return isSure ? 'broken' : 'undecided';
      }
      const cabac = new Cabac(rbsp);
      cabac.initialize(CABAC_CONTEXTS[header.type === 'I' ? 0 : 1 + header.cabacInit] ?? [], header.qp);
      cabac.start(bits.position / 8);
      new MacroblockReader(cabac, header).read();
      // Behind the stop bit x264 leaves bits that are not 0, within the same byte; cabac_zero_words may follow.
      const stop = cabac.position - 1;
      const isStop = ((rbsp[stop >> 3] ?? 0) >> (7 - (stop & 7))) & 1;
      if (isStop === 1 && stop >> 3 === bits.stop >> 3) return 'valid';
    } catch (error) {
      if (!(error instanceof SyntaxBroken)) throw error;
    }
    return isSure ? 'broken' : 'undecided';
  }
}
