import { SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { LAST_8X8, SIGNIFICANT_8X8 } from './h264-contexts';

/** By block category (ISO/IEC 14496-10 table 9-40): luma DC, luma AC, luma, chroma DC, chroma AC, luma 8 x 8. */
const CODED_FLAG = [85, 89, 93, 97, 101];
const SIGNIFICANT = [
  [105, 120, 134, 149, 152, 402],
  [277, 292, 306, 321, 324, 436],
] as const;
const LAST = [
  [166, 181, 195, 210, 213, 417],
  [338, 353, 367, 382, 385, 451],
] as const;
const LEVEL = [227, 237, 247, 257, 266, 426];

/** Where the blocks of 4 x 4 of a macroblock are, in the order of the stream. */
export const BLOCK_X = [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3];
export const BLOCK_Y = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3];

interface Place {
  readonly mb: number;
  readonly hasLeft: boolean;
  readonly hasTop: boolean;
}

interface BlockKind {
  readonly is16x16: boolean;
  readonly isIntra: boolean;
  readonly is8x8: boolean;
}

/** Reads the coefficients of macroblocks (ISO/IEC 14496-10 § 7.3.5.3), and keeps which blocks have any. */
export class BlockReader {
  readonly #field: 0 | 1;
  /** coded_block_flag of blocks of 4 x 4. */
  readonly #luma: Uint8Array;
  readonly #chroma: readonly [Uint8Array, Uint8Array];
  #mb = 0;
  #hasLeft = false;
  #hasTop = false;
  /** coded_block_flag of a neighbour that there is not. */
  #outside = 0;

  /** @param coded coded_block_pattern, with the flags of DC blocks from bit 8 on, which are set here */
  constructor(
    private readonly cabac: Cabac,
    private readonly coded: Uint16Array,
    private readonly width: number,
    private readonly chromaRows: number,
    isField: boolean,
  ) {
    this.#field = isField ? 1 : 0;
    this.#luma = new Uint8Array(coded.length * 16);
    this.#chroma = [new Uint8Array(coded.length * 8), new Uint8Array(coded.length * 8)];
  }

  fill(mb: number): void {
    this.#luma.fill(1, mb * 16, mb * 16 + 16);
    for (const plane of this.#chroma) plane.fill(1, mb * 8, mb * 8 + 8);
  }

  read({ mb, hasLeft, hasTop }: Place, { is16x16, isIntra, is8x8 }: BlockKind): void {
    this.#mb = mb;
    this.#hasLeft = hasLeft;
    this.#hasTop = hasTop;
    this.#outside = isIntra ? 1 : 0;
    const coded = this.coded[mb] ?? 0;
    if (is16x16 && this.#dcFlag(0)) this.#block(0, 16);
    for (let block = 0; block < 16; block += 1) {
      if ((coded & (1 << (block >> 2))) === 0) continue;
      const [x, y] = [BLOCK_X[block] ?? 0, BLOCK_Y[block] ?? 0];
      const category = is16x16 ? 1 : 2;
      if (!is8x8 && !this.#flag(CODED_FLAG[category] ?? 0, this.#luma, 4, x, y)) continue;
      this.#luma[mb * 16 + y * 4 + x] = 1;
      if (!is8x8) this.#block(category, is16x16 ? 15 : 16);
      else if ((block & 3) === 0) this.#block(5, 64);
    }
    const rows = this.chromaRows;
    if (coded & 0x30) {
      for (let plane = 1; plane < 3; plane += 1) if (this.#dcFlag(plane)) this.#block(3, 2 * rows);
    }
    if (coded & 0x20) {
      for (const plane of this.#chroma) {
        for (let block = 0; block < 2 * rows; block += 1) {
          if (this.#flag(101, plane, 2, block & 1, block >> 1)) {
            plane[mb * 8 + block] = 1;
            this.#block(4, 15);
          }
        }
      }
    }
  }

  #dcFlag(plane: number): boolean {
    const bit = 0x100 << plane;
    const flagOf = (mb: number) => ((this.coded[mb] ?? 0) & bit ? 1 : 0);
    const left = this.#hasLeft ? flagOf(this.#mb - 1) : this.#outside;
    const top = this.#hasTop ? flagOf(this.#mb - this.width) : this.#outside;
    const flag = this.cabac.decision((CODED_FLAG[plane === 0 ? 0 : 3] ?? 0) + left + 2 * top) === 1;
    if (flag) this.coded[this.#mb] = (this.coded[this.#mb] ?? 0) | bit;
    return flag;
  }

  /** coded_block_flag of a block, by those to the left and above; a plane is as many `columns` wide in a macroblock. */
  #flag(context: number, plane: Uint8Array, columns: number, x: number, y: number): boolean {
    const size = 4 * columns;
    const own = this.#mb * size;
    const last = own - this.width * size + ((columns === 4 ? 4 : this.chromaRows) - 1) * columns + x;
    const before = x > 0 ? own + y * columns + x - 1 : own - size + y * columns + columns - 1;
    const left = x > 0 || this.#hasLeft ? plane[before] : this.#outside;
    const top = y > 0 ? plane[own + (y - 1) * columns + x] : this.#hasTop ? plane[last] : this.#outside;
    return this.cabac.decision(context + (left ?? 0) + 2 * (top ?? 0)) === 1;
  }

  /** residual_block_cabac (§ 7.3.5.3.3), of which one coefficient at least is not 0. */
  #block(category: number, size: number): void {
    const cabac = this.cabac;
    const significant = SIGNIFICANT[this.#field][category] ?? 0;
    const last = LAST[this.#field][category] ?? 0;
    const inner = SIGNIFICANT_8X8[this.#field] ?? [];
    let count = 0;
    let index = 0;
    for (; index < size - 1; index += 1) {
      let here = index;
      let end = index;
      if (category === 5) {
        here = inner[index] ?? 0;
        end = LAST_8X8[index] ?? 0;
      } else if (category === 3) {
        here = Math.min(size === 8 ? index >> 1 : index, 2);
        end = here;
      }
      if (cabac.decision(significant + here) === 0) continue;
      count += 1;
      if (cabac.decision(last + end) === 1) break;
    }
    if (index === size - 1) count += 1;
    const level = LEVEL[category] ?? 0;
    let ones = 0;
    let greater = 0;
    for (; count > 0; count -= 1) {
      if (cabac.decision(level + (greater > 0 ? 0 : Math.min(4, 1 + ones))) === 0) ones += 1;
      else {
        this.#level(level + 5 + Math.min(category === 3 ? 3 : 4, greater));
        greater += 1;
      }
      cabac.bypass();
    }
  }

  #level(context: number): void {
    const cabac = this.cabac;
    let size = 2;
    while (size < 15 && cabac.decision(context) === 1) size += 1;
    if (size < 15) return;
    let order = 0;
    while (cabac.bypass() === 1) {
      order += 1;
      if (order > 20) throw new SyntaxBroken('has a coefficient larger than may be');
    }
    for (; order > 0; order -= 1) cabac.bypass();
  }
}
