import { SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { CONTEXT } from './hevc-contexts';

export type Scan = 0 | 1 | 2;

/** The distance of rows of positions; an overflow of one is read after its end. */
const STRIDE = 8;
const EMPTY = new Uint8Array();

/** Positions in a square of 1, 2, 4 and 8: diagonal, by rows, by columns (ISO/IEC 23008-2 § 6.5.3 to 6.5.5). */
const ORDERS: readonly (readonly Uint8Array[])[] = [0, 1, 2, 3].map((log2) => {
  const size = 1 << log2;
  const all = Array.from({ length: size * size }, (_, index) => ({ x: index % size, y: index >> log2 }));
  const diagonal = [...all].sort((a, b) => a.x + a.y - b.x - b.y || a.x - b.x);
  const columns = [...all].sort((a, b) => a.x - b.x || a.y - b.y);
  return [diagonal, all, columns].map((order) => new Uint8Array(order.map(({ x, y }) => y * STRIDE + x)));
});

const PLACES = ORDERS.map((orders) =>
  orders.map((order) => {
    const places = new Uint8Array(STRIDE * STRIDE);
    order.forEach((position, index) => {
      places[position] = index;
    });
    return places;
  }),
);

/** ctxIdxMap of blocks of 4 x 4 (table 9-50). */
const SMALL = new Uint8Array([
  0, 1, 4, 5, 0, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0, 0, 6, 6, 8, 8, 0, 0, 0, 0, 7, 7, 8, 8,
]);

/** sigCtx within a sub-block, by which of those to the right and below are coded (§ 9.3.4.2.5). */
const BY_NEIGHBOURS = [0, 1, 2, 3].map((coded) =>
  Uint8Array.from({ length: 4 * STRIDE }, (_, at) => {
    const x = at % STRIDE;
    const y = Math.floor(at / STRIDE);
    if (coded === 3) return 2;
    const far = coded === 0 ? x + y : coded === 1 ? y : x;
    if (coded === 0) return far === 0 ? 2 : far < 3 ? 1 : 0;
    return far === 0 ? 2 : far === 1 ? 1 : 0;
  }),
);

export class ResidualReader {
  /** Which sub-blocks are coded, with one row more. */
  readonly #coded = new Uint8Array(STRIDE * (STRIDE + 1));
  #inside: Uint8Array = EMPTY;
  #base = 0;
  readonly #found = new Uint8Array(16);
  readonly #levels = new Uint8Array(16);

  constructor(
    private readonly cabac: Cabac,
    private readonly hasSkip: boolean,
    private readonly hidesSigns: boolean,
  ) {}

  /** @param log2 of the size of the block, 2 to 5 */
  read(log2: number, isChroma: boolean, scan: Scan, isBypassed: boolean): void {
    const cabac = this.cabac;
    const chroma = isChroma ? 1 : 0;
    if (this.hasSkip && !isBypassed && log2 === 2) cabac.decision(CONTEXT.transformSkip + chroma);
    const prefixX = this.#lastPrefix(CONTEXT.lastX, log2, isChroma);
    const prefixY = this.#lastPrefix(CONTEXT.lastY, log2, isChroma);
    let lastX = this.#lastOf(prefixX);
    let lastY = this.#lastOf(prefixY);
    if (scan === 2) [lastX, lastY] = [lastY, lastX];
    const last = PLACES[log2 - 2]?.[scan]?.[((lastY >> 2) << 3) | (lastX >> 2)] ?? 0;
    const lastPosition = PLACES[2]?.[scan]?.[((lastY & 3) << 3) | (lastX & 3)] ?? 0;
    const blocks = ORDERS[log2 - 2]?.[scan] ?? EMPTY;
    this.#inside = ORDERS[2]?.[scan] ?? EMPTY;
    this.#base = CONTEXT.significant + (isChroma ? 27 : 0);
    const coded = this.#coded;
    if (last > 0) coded.fill(0);
    // Contexts of greater1 go on from the sub-block before with coefficients.
    let greaterContext = 1;
    for (let index = last; index >= 0; index -= 1) {
      const at = blocks[index] ?? 0;
      let neighbours = 0;
      const isAsked = index < last && index > 0;
      if (index < last) {
        neighbours = (coded[at + 1] ?? 0) | ((coded[at + STRIDE] ?? 0) << 1);
        if (isAsked && cabac.decision(CONTEXT.codedSubBlock + 2 * chroma + (neighbours > 0 ? 1 : 0)) === 0)
          continue;
      }
      coded[at] = 1;
      let offset = this.#base;
      if (log2 > 2) {
        if (isChroma) offset += log2 === 3 ? 9 : 12;
        else offset += (index === 0 ? 0 : 3) + (log2 === 3 ? (scan === 0 ? 9 : 15) : 21);
      }
      const near = log2 === 2 ? SMALL : (BY_NEIGHBOURS[neighbours] ?? SMALL);
      const count = this.#significant(offset, near, index === last ? lastPosition : 16, index === 0, isAsked);
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
    while (prefix < most && this.cabac.decision(offset + (prefix >> shift)) === 1) prefix += 1;
    return prefix;
  }

  #lastOf(prefix: number): number {
    if (prefix < 4) return prefix;
    const bits = (prefix >> 1) - 1;
    return (1 << bits) * (2 + (prefix & 1)) + this.cabac.bypassBits(bits);
  }

  /** How many coefficients are not 0. `near` has contexts from `offset` on; the last, at `from`, is not read. */
  #significant(
    offset: number,
    near: Uint8Array,
    from: number,
    isFirst: boolean,
    isInferred: boolean,
  ): number {
    const cabac = this.cabac;
    const found = this.#found;
    const inside = this.#inside;
    let count = 0;
    if (from < 16) {
      found[0] = from;
      count = 1;
    }
    for (let position = from - 1; position > 0; position -= 1) {
      if (cabac.decision(offset + (near[inside[position] ?? 0] ?? 0)) === 1) {
        found[count] = position;
        count += 1;
      }
    }
    if (from === 0) return count;
    const isSure = isInferred && count === 0;
    if (isSure || cabac.decision(isFirst ? this.#base : offset + (near[0] ?? 0)) === 1) {
      found[count] = 0;
      count += 1;
    }
    return count;
  }

  /** Reads their levels; returns the first context of the next sub-block. */
  #levelsOf(count: number, set: number, chroma: number, isBypassed: boolean): number {
    const cabac = this.cabac;
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
    const isHidden = this.hidesSigns && !isBypassed && distance > 3;
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
    const cabac = this.cabac;
    let prefix = 0;
    while (cabac.bypass() === 1) {
      prefix += 1;
      if (prefix > 19) throw new SyntaxBroken('has a coefficient out of its range');
    }
    if (prefix <= 3) return (prefix << rice) + cabac.bypassBits(rice);
    return (((1 << (prefix - 3)) + 3 - 1) << rice) + cabac.bypassBits(prefix - 3 + rice);
  }
}
