import { SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { CONTEXT } from './hevc-contexts';

/** Which way coefficients are scanned. */
export type Scan = 0 | 1 | 2;

/** Positions in a square of 1, 2, 4 and 8, x and y in turn: diagonal, by rows, by columns (ISO/IEC 23008-2 § 6.5.3 to 6.5.5). */
const SCANS: readonly (readonly Uint8Array[])[] = [0, 1, 2, 3].map((log2) => {
  const size = 1 << log2;
  const all = Array.from({ length: size * size }, (_, index) => ({ x: index % size, y: index >> log2 }));
  const diagonal = [...all].sort((a, b) => a.x + a.y - b.x - b.y || a.x - b.x);
  const columns = [...all].sort((a, b) => a.x - b.x || a.y - b.y);
  return [diagonal, all, columns].map((order) => new Uint8Array(order.flatMap(({ x, y }) => [x, y])));
});

/** ctxIdxMap of blocks of 4 x 4 (table 9-50). */
const SMALL = new Uint8Array([0, 1, 4, 5, 2, 3, 4, 5, 6, 6, 8, 8, 7, 7, 8, 8]);

/** sigCtx within a sub-block, by which of those to the right and below are coded (§ 9.3.4.2.5). */
const BY_NEIGHBOURS = [0, 1, 2, 3].map((coded) =>
  Uint8Array.from({ length: 16 }, (_, at) => {
    const x = at & 3;
    const y = at >> 2;
    if (coded === 3) return 2;
    const far = coded === 0 ? x + y : coded === 1 ? y : x;
    if (coded === 0) return far === 0 ? 2 : far < 3 ? 1 : 0;
    return far === 0 ? 2 : far === 1 ? 1 : 0;
  }),
);

/** Reads the coefficients of transform blocks (§ 7.3.8.11). */
export class ResidualReader {
  readonly #cabac: Cabac;
  readonly #hasSkip: boolean;
  readonly #hidesSigns: boolean;
  /** Which sub-blocks are coded, with an edge. */
  readonly #coded = new Uint8Array(81);
  /** Where coefficients of a sub-block are, the last first. */
  readonly #found = new Uint8Array(16);
  readonly #levels = new Uint8Array(16);

  constructor(cabac: Cabac, hasSkip: boolean, hidesSigns: boolean) {
    this.#cabac = cabac;
    this.#hasSkip = hasSkip;
    this.#hidesSigns = hidesSigns;
  }

  /**
   * @param log2 of the size of the block, 2 to 5
   * @param isBypassed cu_transquant_bypass_flag
   */
  read(log2: number, isChroma: boolean, scan: Scan, isBypassed: boolean): void {
    const cabac = this.#cabac;
    const chroma = isChroma ? 1 : 0;
    if (this.#hasSkip && !isBypassed && log2 === 2) cabac.decision(CONTEXT.transformSkip + chroma);
    const prefixX = this.#lastPrefix(CONTEXT.lastX, log2, isChroma);
    const prefixY = this.#lastPrefix(CONTEXT.lastY, log2, isChroma);
    let lastX = this.#lastOf(prefixX);
    let lastY = this.#lastOf(prefixY);
    if (scan === 2) [lastX, lastY] = [lastY, lastX];
    const blocks = SCANS[log2 - 2]?.[scan] ?? new Uint8Array();
    const inside = SCANS[2]?.[scan] ?? new Uint8Array();
    const last = indexIn(blocks, lastX >> 2, lastY >> 2);
    const lastPosition = indexIn(inside, lastX & 3, lastY & 3);
    const coded = this.#coded;
    coded.fill(0);
    // Contexts of greater1 go on from the sub-block before with coefficients.
    let greaterContext = 1;
    for (let index = last; index >= 0; index -= 1) {
      const x = blocks[2 * index] ?? 0;
      const y = blocks[2 * index + 1] ?? 0;
      const at = y * 9 + x;
      const neighbours = (coded[at + 1] ?? 0) | ((coded[at + 9] ?? 0) << 1);
      const isAsked = index < last && index > 0;
      const isCoded =
        !isAsked || cabac.decision(CONTEXT.codedSubBlock + 2 * chroma + (neighbours > 0 ? 1 : 0)) === 1;
      if (!isCoded) continue;
      coded[at] = 1;
      const count = this.#significant({
        ...{ log2, isChroma, scan, inside, neighbours },
        isFirst: index === 0,
        from: index === last ? lastPosition : 16,
        isInferred: isAsked,
      });
      if (count === 0) continue;
      let set = index === 0 || isChroma ? 0 : 2;
      if (index !== last && greaterContext === 0) set += 1;
      greaterContext = this.#levelsOf(count, set, chroma, isBypassed);
    }
  }

  #lastPrefix(base: number, log2: number, isChroma: boolean): number {
    const offset = base + (isChroma ? 15 : 3 * (log2 - 2) + ((log2 - 1) >> 2));
    const shift = isChroma ? log2 - 2 : (log2 + 1) >> 2;
    const most = (log2 << 1) - 1;
    let prefix = 0;
    while (prefix < most && this.#cabac.decision(offset + (prefix >> shift)) === 1) prefix += 1;
    return prefix;
  }

  #lastOf(prefix: number): number {
    if (prefix < 4) return prefix;
    const bits = (prefix >> 1) - 1;
    return (1 << bits) * (2 + (prefix & 1)) + this.#cabac.bypassBits(bits);
  }

  /** Which coefficients are not 0: how many. */
  #significant(block: {
    readonly log2: number;
    readonly isChroma: boolean;
    readonly scan: Scan;
    readonly inside: Uint8Array;
    readonly neighbours: number;
    readonly isFirst: boolean;
    /** The last one, which is not asked for, or 16. */
    readonly from: number;
    /** Whether the first is not 0 where no other one is. */
    readonly isInferred: boolean;
  }): number {
    const { log2, isChroma, scan, inside, isFirst, from } = block;
    const cabac = this.#cabac;
    const found = this.#found;
    let count = 0;
    if (from < 16) {
      found[0] = from;
      count = 1;
    }
    const base = CONTEXT.significant + (isChroma ? 27 : 0);
    const near = log2 === 2 ? SMALL : (BY_NEIGHBOURS[block.neighbours] ?? SMALL);
    let offset = base;
    if (log2 > 2) {
      if (isChroma) offset += log2 === 3 ? 9 : 12;
      else offset += (isFirst ? 0 : 3) + (log2 === 3 ? (scan === 0 ? 9 : 15) : 21);
    }
    for (let position = from - 1; position > 0; position -= 1) {
      const at = ((inside[2 * position + 1] ?? 0) << 2) | (inside[2 * position] ?? 0);
      if (cabac.decision(offset + (near[at] ?? 0)) === 1) {
        found[count] = position;
        count += 1;
      }
    }
    if (from > 0) {
      const isSure = block.isInferred && count === 0;
      const first = isFirst ? base : offset + (near[0] ?? 0);
      if (isSure || cabac.decision(first) === 1) {
        found[count] = 0;
        count += 1;
      }
    }
    return count;
  }

  /** Their levels; answers what the contexts of the next sub-block go on from. */
  #levelsOf(count: number, set: number, chroma: number, isBypassed: boolean): number {
    const cabac = this.#cabac;
    const levels = this.#levels;
    const base = CONTEXT.greater1 + 16 * chroma + 4 * set;
    let context = 1;
    let firstGreater = -1;
    const asked = Math.min(count, 8);
    for (let index = 0; index < asked; index += 1) {
      const greater = cabac.decision(base + context);
      levels[index] = 1 + greater;
      if (greater === 1) {
        context = 0;
        if (firstGreater < 0) firstGreater = index;
      } else if (context > 0 && context < 3) context += 1;
    }
    if (firstGreater >= 0) {
      levels[firstGreater] = 2 + cabac.decision(CONTEXT.greater2 + 4 * chroma + set);
    }
    const distance = (this.#found[0] ?? 0) - (this.#found[count - 1] ?? 0);
    const isHidden = this.#hidesSigns && !isBypassed && distance > 3;
    cabac.bypassBits(isHidden ? count - 1 : count);
    let rice = 0;
    for (let index = 0; index < count; index += 1) {
      const most = index >= 8 ? 1 : index === firstGreater ? 3 : 2;
      const level = index < 8 ? (levels[index] ?? 1) : 1;
      if (level < most) continue;
      const whole = level + this.#remaining(rice);
      if (whole > 32768) throw new SyntaxBroken('has a coefficient out of its range');
      if (whole > 3 << rice && rice < 4) rice += 1;
    }
    return context;
  }

  /** coeff_abs_level_remaining (§ 9.3.3.11). */
  #remaining(rice: number): number {
    const cabac = this.#cabac;
    let prefix = 0;
    while (cabac.bypass() === 1) {
      prefix += 1;
      if (prefix > 19) throw new SyntaxBroken('has a coefficient out of its range');
    }
    if (prefix <= 3) return (prefix << rice) + cabac.bypassBits(rice);
    return (((1 << (prefix - 3)) + 3 - 1) << rice) + cabac.bypassBits(prefix - 3 + rice);
  }
}

function indexIn(scan: Uint8Array, x: number, y: number): number {
  for (let index = 0; index < scan.length; index += 2) {
    if (scan[index] === x && scan[index + 1] === y) return index >> 1;
  }
  throw new SyntaxBroken('ends outside of its block');
}
