import { SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { BlockReader } from './h264-blocks';
import type { H264SliceHeader } from './h264-parameters';
import {
  B_PARTS,
  B_SUB_PARTS,
  type MotionPart,
  P_PARTS,
  P_SUB_PARTS,
  partsOf8x8,
  type SubPart,
} from './h264-partitions';

const SKIPPED = 1;
const DIRECT = 2;
const INTRA_NXN = 4;
const INTRA_16X16 = 8;
const INTRA = INTRA_NXN | INTRA_16X16;
const TRANSFORM_8X8 = 16;

/**
 * Reads the macroblocks of a slice (ISO/IEC 14496-10 § 7.3.5, CABAC): one that was decrypted well ends with
 * its last macroblock at its last bit. Frames or fields, not both (MBAFF); chroma 4:2:0, 4:2:2 or none.
 */
export class MacroblockReader {
  readonly #width: number;
  readonly #count: number;
  readonly #chromaRows: number;
  /** Flags of each macroblock; 0 is also one of I_PCM. */
  readonly #flags: Uint8Array;
  readonly #isRead: Uint8Array;
  /** coded_block_pattern, with the DC blocks of luma, Cb and Cr from bit 8 on. */
  readonly #coded: Uint16Array;
  readonly #chromaMode: Uint8Array;
  readonly #blocks: BlockReader;
  /** Whether references are other than the first, of blocks of 8 x 8. */
  readonly #references: readonly [Uint8Array, Uint8Array];
  /** Absolute differences of motion vectors, of blocks of 4 x 4, x and y in turn. */
  readonly #motion: readonly [Uint8Array, Uint8Array];
  #mb = 0;
  #hasLeft = false;
  #hasTop = false;
  #lastDelta = 0;

  constructor(
    private readonly cabac: Cabac,
    private readonly header: H264SliceHeader,
  ) {
    const { sequence, isField } = header;
    this.#width = sequence.width;
    this.#count = sequence.width * (isField ? sequence.height / 2 : sequence.height);
    this.#chromaRows = sequence.chromaFormat === 0 ? 0 : sequence.chromaFormat === 2 ? 4 : 2;
    const bytes = (each: number) => new Uint8Array(this.#count * each);
    this.#flags = bytes(1);
    this.#isRead = bytes(1);
    this.#coded = new Uint16Array(this.#count);
    this.#chromaMode = bytes(1);
    this.#references = [bytes(4), bytes(4)];
    this.#motion = [bytes(32), bytes(32)];
    this.#blocks = new BlockReader(cabac, this.#coded, this.#width, this.#chromaRows, isField);
  }

  /** Reads to the end of the slice. Throws `SyntaxBroken`. */
  read(): void {
    const { type, firstMacroblock } = this.header;
    for (let mb = firstMacroblock; ; mb += 1) {
      if (mb >= this.#count) throw new SyntaxBroken('has more macroblocks than its picture');
      this.#mb = mb;
      this.#hasLeft = mb % this.#width > 0 && this.#isRead[mb - 1] === 1;
      this.#hasTop = mb >= this.#width && this.#isRead[mb - this.#width] === 1;
      const skipFlag = (type === 'P' ? 11 : 24) + this.#neighboursWithout(SKIPPED);
      if (type !== 'I' && this.cabac.decision(skipFlag) === 1) {
        this.#flags[mb] = SKIPPED | DIRECT;
        this.#lastDelta = 0;
      } else this.#macroblock();
      this.#isRead[mb] = 1;
      if (this.cabac.terminate() === 1) return;
    }
  }

  #left(list: Uint8Array | Uint16Array): number {
    return this.#hasLeft ? (list[this.#mb - 1] ?? 0) : 0;
  }

  #top(list: Uint8Array | Uint16Array): number {
    return this.#hasTop ? (list[this.#mb - this.#width] ?? 0) : 0;
  }

  /** How many of the macroblocks to the left and above are there and without a flag. */
  #neighboursWithout(flag: number): number {
    const left = this.#hasLeft && (this.#left(this.#flags) & flag) === 0 ? 1 : 0;
    return left + (this.#hasTop && (this.#top(this.#flags) & flag) === 0 ? 1 : 0);
  }

  #macroblock(): void {
    const { type } = this.header;
    if (type === 'P') this.#macroblockOfP();
    else if (type === 'B') this.#macroblockOfB();
    else {
      const isOther = this.cabac.decision(3 + this.#neighboursWithout(INTRA_NXN)) === 1;
      this.#intra(isOther ? this.#intraType(5, 1) : 0);
    }
  }

  #macroblockOfP(): void {
    const cabac = this.cabac;
    if (cabac.decision(14) === 1) {
      this.#intra(cabac.decision(17) === 0 ? 0 : this.#intraType(17, 0));
      return;
    }
    const kind = cabac.decision(15) === 0 ? 3 * cabac.decision(16) : 2 - cabac.decision(17);
    const parts = P_PARTS[kind];
    if (parts) this.#inter(parts, true);
    else this.#interOf8x8(() => this.#subTypeOfP(), P_SUB_PARTS);
  }

  #subTypeOfP(): number {
    const cabac = this.cabac;
    if (cabac.decision(21) === 1) return 0;
    if (cabac.decision(22) === 0) return 1;
    return cabac.decision(23) === 1 ? 2 : 3;
  }

  #macroblockOfB(): void {
    const cabac = this.cabac;
    if (cabac.decision(27 + this.#neighboursWithout(DIRECT)) === 0) {
      this.#flags[this.#mb] = DIRECT;
      this.#residualOfInter(this.header.sequence.direct8x8);
      return;
    }
    const kind = this.#typeOfB();
    if (kind === 13 + 32) this.#intra(cabac.decision(32) === 0 ? 0 : this.#intraType(32, 0));
    else if (kind === 22) this.#interOf8x8(() => this.#subTypeOfB(), B_SUB_PARTS);
    else this.#inter(B_PARTS[kind] ?? [], true);
  }

  #typeOfB(): number {
    const cabac = this.cabac;
    if (cabac.decision(30) === 0) return 1 + cabac.decision(32);
    let bits = cabac.decision(31) << 3;
    bits |= cabac.decision(32) << 2;
    bits |= cabac.decision(32) << 1;
    bits |= cabac.decision(32);
    if (bits < 8) return bits + 3;
    if (bits === 13) return 13 + 32;
    if (bits === 14) return 11;
    if (bits === 15) return 22;
    return ((bits << 1) | cabac.decision(32)) - 4;
  }

  #subTypeOfB(): number {
    const cabac = this.cabac;
    if (cabac.decision(36) === 0) return 0;
    if (cabac.decision(37) === 0) return 1 + cabac.decision(39);
    let kind = 3;
    if (cabac.decision(38) === 1) {
      if (cabac.decision(39) === 1) return 11 + cabac.decision(39);
      kind += 4;
    }
    kind += 2 * cabac.decision(39);
    return kind + cabac.decision(39);
  }

  /** mb_type of a macroblock that is neither I_NxN nor of another slice type, from 1 on (table 7-11). */
  #intraType(at: number, more: number): number {
    const cabac = this.cabac;
    if (cabac.terminate() === 1) return 25;
    let kind = 1 + 12 * cabac.decision(at + 1);
    if (cabac.decision(at + 2) === 1) kind += 4 + 4 * cabac.decision(at + 2 + more);
    kind += 2 * cabac.decision(at + 3 + more);
    return kind + cabac.decision(at + 3 + 2 * more);
  }

  #intra(kind: number): void {
    const { picture } = this.header;
    const cabac = this.cabac;
    if (kind === 25) {
      this.#samples();
      return;
    }
    let is8x8 = false;
    if (kind === 0) {
      is8x8 = picture.transform8x8 && this.#transformFlag();
      for (let block = 0; block < (is8x8 ? 4 : 16); block += 1) {
        if (cabac.decision(68) === 1) continue;
        for (let bit = 0; bit < 3; bit += 1) cabac.decision(69);
      }
    }
    this.#flags[this.#mb] = kind === 0 ? INTRA_NXN | (is8x8 ? TRANSFORM_8X8 : 0) : INTRA_16X16;
    if (this.#chromaRows > 0) this.#chromaMode[this.#mb] = this.#chromaPrediction();
    if (kind === 0) {
      this.#coded[this.#mb] = this.#codedPattern();
      if (this.#coded[this.#mb] === 0) this.#lastDelta = 0;
      else this.#residual(is8x8);
    } else {
      const chroma = Math.floor((kind - 1) / 4) % 3;
      this.#coded[this.#mb] = (kind > 12 ? 15 : 0) | (chroma << 4);
      this.#residual(false);
    }
  }

  /** I_PCM: samples as they are, and arithmetic decoding restarts after them. */
  #samples(): void {
    const { sequence } = this.header;
    const chroma = sequence.chromaFormat === 0 ? 0 : this.#chromaRows * 64;
    const bits = 256 * sequence.lumaBits + chroma * sequence.chromaBits;
    this.cabac.start(((this.cabac.position + 7) >> 3) + Math.ceil(bits / 8));
    const mb = this.#mb;
    this.#coded[mb] = 0x72f;
    this.#blocks.fill(mb);
    this.#lastDelta = 0;
  }

  #chromaPrediction(): number {
    const cabac = this.cabac;
    const left = this.#left(this.#chromaMode) > 0 ? 1 : 0;
    const top = this.#top(this.#chromaMode) > 0 ? 1 : 0;
    if (cabac.decision(64 + left + top) === 0) return 0;
    if (cabac.decision(67) === 0) return 1;
    return cabac.decision(67) === 0 ? 2 : 3;
  }

  #transformFlag(): boolean {
    const left = this.#left(this.#flags) & TRANSFORM_8X8 ? 1 : 0;
    const top = this.#top(this.#flags) & TRANSFORM_8X8 ? 1 : 0;
    return this.cabac.decision(399 + left + top) === 1;
  }

  #inter(parts: readonly MotionPart[], may8x8: boolean): void {
    this.#motionOf(parts);
    this.#residualOfInter(may8x8);
  }

  #interOf8x8(readType: () => number, table: readonly SubPart[]): void {
    const kinds = [readType(), readType(), readType(), readType()].flatMap((kind) => table[kind] ?? []);
    const { parts, may8x8 } = partsOf8x8(kinds, this.header.sequence.direct8x8);
    this.#inter(parts, may8x8);
  }

  /** References of all partitions, list by list, then differences of motion vectors (§ 7.3.5.1, 7.3.5.2). */
  #motionOf(parts: readonly MotionPart[]): void {
    const { references } = this.header;
    for (let list = 0; list < 2; list += 1) {
      const count = references[list] ?? 1;
      if (count < 2) continue;
      for (const part of parts) {
        if ((part.lists & (1 << list)) !== 0) this.#reference(part, list, count);
      }
    }
    for (let list = 0; list < 2; list += 1) {
      for (const part of parts) {
        if ((part.lists & (1 << list)) === 0) continue;
        for (const { x, y, width, height } of part.inside) {
          this.#difference(list, part.x + x, part.y + y, width, height);
        }
      }
    }
  }

  #reference(part: MotionPart, list: number, count: number): void {
    const all = this.#references[list] ?? new Uint8Array();
    const x = part.x >> 1;
    const y = part.y >> 1;
    const own = this.#mb * 4;
    const left = x > 0 ? all[own + y * 2] : this.#hasLeft ? all[own - 4 + y * 2 + 1] : 0;
    const top = y > 0 ? all[own + x] : this.#hasTop ? all[own - 4 * this.#width + 2 + x] : 0;
    let context = 54 + (left ?? 0) + 2 * (top ?? 0);
    let reference = 0;
    while (this.cabac.decision(context) === 1) {
      reference += 1;
      if (reference >= count) throw new SyntaxBroken('refers to a picture that there is not');
      context = reference === 1 ? 58 : 59;
    }
    if (reference === 0) return;
    for (let row = y; row < y + (part.height >> 1); row += 1) {
      for (let column = x; column < x + (part.width >> 1); column += 1) all[own + row * 2 + column] = 1;
    }
  }

  #difference(list: number, x: number, y: number, width: number, height: number): void {
    const all = this.#motion[list] ?? new Uint8Array();
    const own = this.#mb * 32;
    const left = x > 0 ? own + (y * 4 + x - 1) * 2 : this.#hasLeft ? own - 32 + (y * 4 + 3) * 2 : -1;
    const top =
      y > 0 ? own + ((y - 1) * 4 + x) * 2 : this.#hasTop ? own - 32 * this.#width + (12 + x) * 2 : -1;
    for (let component = 0; component < 2; component += 1) {
      const near =
        (all[left + component] ?? 0) * (left < 0 ? 0 : 1) + (all[top + component] ?? 0) * (top < 0 ? 0 : 1);
      const size = this.#vectorDifference(component === 0 ? 40 : 47, near);
      if (size === 0) continue;
      const kept = Math.min(size, 100);
      for (let row = y; row < y + height; row += 1) {
        for (let column = x; column < x + width; column += 1)
          all[own + (row * 4 + column) * 2 + component] = kept;
      }
    }
  }

  #vectorDifference(base: number, near: number): number {
    const cabac = this.cabac;
    if (cabac.decision(base + (near < 3 ? 0 : near > 32 ? 2 : 1)) === 0) return 0;
    let size = 1;
    let context = base + 3;
    while (size < 9 && cabac.decision(context) === 1) {
      if (size < 4) context += 1;
      size += 1;
    }
    if (size >= 9) {
      let order = 3;
      while (cabac.bypass() === 1) {
        size += 1 << order;
        order += 1;
        if (order > 15) throw new SyntaxBroken('moves farther than may be');
      }
      while (order > 0) {
        order -= 1;
        size += cabac.bypass() << order;
      }
    }
    cabac.bypass();
    return size;
  }

  #residualOfInter(may8x8: boolean): void {
    const coded = this.#codedPattern();
    this.#coded[this.#mb] = coded;
    const is8x8 = (coded & 15) !== 0 && may8x8 && this.header.picture.transform8x8 && this.#transformFlag();
    if (is8x8) this.#flags[this.#mb] = (this.#flags[this.#mb] ?? 0) | TRANSFORM_8X8;
    if (coded === 0) this.#lastDelta = 0;
    else this.#residual(is8x8);
  }

  #codedPattern(): number {
    const cabac = this.cabac;
    // Missing neighbours count as coded, skipped ones as not.
    const left = this.#hasLeft ? this.#left(this.#coded) : 15;
    const top = this.#hasTop ? this.#top(this.#coded) : 15;
    let coded = 0;
    for (let block = 0; block < 4; block += 1) {
      const besides = block & 1 ? coded & (1 << (block - 1)) : left & (1 << (block + 1));
      const above = block & 2 ? coded & (1 << (block - 2)) : top & (1 << (block + 2));
      coded |= cabac.decision(73 + (besides ? 0 : 1) + (above ? 0 : 2)) << block;
    }
    if (this.#chromaRows === 0) return coded;
    const besides = this.#hasLeft ? (left >> 4) & 3 : 0;
    const above = this.#hasTop ? (top >> 4) & 3 : 0;
    if (cabac.decision(77 + (besides ? 1 : 0) + (above ? 2 : 0)) === 0) return coded;
    return coded | ((1 + cabac.decision(81 + (besides === 2 ? 1 : 0) + (above === 2 ? 2 : 0))) << 4);
  }

  #quantizer(): void {
    let context = this.#lastDelta;
    let code = 0;
    const limit = 52 + 6 * (this.header.sequence.lumaBits - 8);
    while (this.cabac.decision(60 + context) === 1) {
      context = 2 + (context >> 1);
      code += 1;
      if (code > limit) throw new SyntaxBroken('changes the quantizer by more than may be');
    }
    if (code === limit - 1) throw new SyntaxBroken('changes the quantizer by more than may be');
    this.#lastDelta = code > 0 ? 1 : 0;
  }

  #residual(is8x8: boolean): void {
    this.#quantizer();
    const flags = this.#flags[this.#mb] ?? 0;
    const kind = { is16x16: (flags & INTRA_16X16) !== 0, isIntra: (flags & INTRA) !== 0, is8x8 };
    this.#blocks.read({ mb: this.#mb, hasLeft: this.#hasLeft, hasTop: this.#hasTop }, kind);
  }
}
