import { SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { CONTEXT } from './hevc-contexts';
import { ResidualReader, type Scan } from './hevc-residual';
import type { HevcSegment } from './hevc-slice-header';

interface CodingUnit {
  readonly isIntra: boolean;
  readonly isSplit: boolean;
  readonly isWhole: boolean;
  readonly isBypassed: boolean;
  readonly modes: readonly number[];
  readonly chromaMode: number;
}

/** Bits of cbf_cb and cbf_cr. */
const CB = 1;
const CR = 2;

/** Reads the transform tree of a coding unit (ISO/IEC 23008-2 § 7.3.8.8 to 7.3.8.14) in 4:2:0. */
export class TransformReader {
  readonly #residual: ResidualReader;
  readonly #limit: number;
  #hasDelta = true;

  constructor(
    private readonly cabac: Cabac,
    private readonly segment: HevcSegment,
  ) {
    const { picture, sequence } = segment;
    this.#residual = new ResidualReader(cabac, picture.hasTransformSkip, picture.hidesSigns);
    this.#limit = 26 + 3 * (sequence.lumaBits - 8);
  }

  beginGroup(): void {
    this.#hasDelta = this.segment.picture.qpDeltaDepth === undefined;
  }

  /** `log2` is of the size of the unit. */
  read(unit: CodingUnit, log2: number): void {
    const { depthIntra, depthInter } = this.segment.sequence;
    const most = unit.isIntra ? depthIntra + (unit.isSplit ? 1 : 0) : depthInter;
    this.#tree(unit, log2, 0, most, 0, 0, CB | CR);
  }

  #tree(
    unit: CodingUnit,
    log2: number,
    depth: number,
    most: number,
    part: number,
    index: number,
    parent: number,
  ): void {
    const { maxTransform, minTransform, depthInter } = this.segment.sequence;
    const cabac = this.cabac;
    const isForced = unit.isSplit && depth === 0;
    const isSplit =
      log2 <= maxTransform && log2 > minTransform && depth < most && !isForced
        ? cabac.decision(CONTEXT.splitTransform + 5 - log2) === 1
        : log2 > maxTransform ||
          isForced ||
          (depthInter === 0 && !unit.isIntra && !unit.isWhole && depth === 0);
    let chroma = parent;
    if (log2 > 2) {
      chroma = 0;
      if (parent & CB && cabac.decision(CONTEXT.codedChroma + depth) === 1) chroma |= CB;
      if (parent & CR && cabac.decision(CONTEXT.codedChroma + depth) === 1) chroma |= CR;
    }
    if (isSplit) {
      if (log2 <= 2) throw new SyntaxBroken('splits what is too small');
      for (let child = 0; child < 4; child += 1) {
        this.#tree(unit, log2 - 1, depth + 1, most, depth === 0 ? child : part, child, chroma);
      }
      return;
    }
    const isLuma =
      unit.isIntra || depth > 0 || chroma !== 0
        ? cabac.decision(CONTEXT.codedLuma + (depth === 0 ? 1 : 0)) === 1
        : true;
    if (!isLuma && chroma === 0) return;
    if (!this.#hasDelta) this.#delta();
    const mode = unit.modes[unit.isSplit ? part : 0] ?? 1;
    if (isLuma) this.#residual.read(log2, false, log2 < 4 ? scanOf(unit, mode) : 0, unit.isBypassed);
    if (chroma === 0 || (log2 === 2 && index !== 3)) return;
    const size = Math.max(2, log2 - 1);
    const scan = size === 2 ? scanOf(unit, unit.chromaMode) : 0;
    if (chroma & CB) this.#residual.read(size, true, scan, unit.isBypassed);
    if (chroma & CR) this.#residual.read(size, true, scan, unit.isBypassed);
  }

  #delta(): void {
    const cabac = this.cabac;
    this.#hasDelta = true;
    let value = 0;
    while (value < 5 && cabac.decision(CONTEXT.qpDelta + (value > 0 ? 1 : 0)) === 1) value += 1;
    if (value === 5) {
      let order = 0;
      while (cabac.bypass() === 1) {
        value += 1 << order;
        order += 1;
        if (order > 6) throw new SyntaxBroken('changes the quantizer by more than may be');
      }
      value += cabac.bypassBits(order);
    }
    if (value === 0) return;
    const isNegative = cabac.bypass() === 1;
    if (value > this.#limit - (isNegative ? 0 : 1)) {
      throw new SyntaxBroken('changes the quantizer by more than may be');
    }
  }
}

/** Small blocks are scanned across the direction in which they are predicted (§ 7.4.9.11). */
function scanOf(unit: CodingUnit, mode: number): Scan {
  if (!unit.isIntra) return 0;
  if (mode >= 6 && mode <= 14) return 2;
  return mode >= 22 && mode <= 30 ? 1 : 0;
}
