import { type BitReader, SyntaxBroken } from './bit-reader';
import { BLOCK_X, BLOCK_Y } from './h264-blocks';
import { CHROMA_ZEROS, CODED_PATTERNS, COEFFICIENT_TOKENS, RUNS, TOTAL_ZEROS } from './h264-codes';
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

const TOKENS = COEFFICIENT_TOKENS.map(treeOf);
const ZEROS = TOTAL_ZEROS.map(treeOf);
const ZEROS_OF_CHROMA = CHROMA_ZEROS.map(treeOf);
const RUN_BEFORE = RUNS.map(treeOf);
const OF_CHROMA_DC = 4;

/** The first types of macroblocks that do not refer to pictures, by the type of the slice (tables 7-13, 7-14). */
const FIRST_INTRA = { I: 0, P: 5, B: 23 } as const;

/** Reads macroblocks under CAVLC (ISO/IEC 14496-10 § 7.3.4, 7.3.5), of 4:2:0 and without MBAFF. */
export class CavlcReader {
  readonly #width: number;
  readonly #count: number;
  readonly #isRead: Uint8Array;
  /** The number of coefficients of blocks of 4 x 4: 16 of luma, 4 of Cb and 4 of Cr. */
  readonly #coefficients: Uint8Array;
  #mb = 0;
  #hasLeft = false;
  #hasTop = false;

  constructor(
    private readonly bits: BitReader,
    private readonly header: H264SliceHeader,
  ) {
    const { width, height } = header.sequence;
    this.#width = width;
    this.#count = width * (header.isField ? height / 2 : height);
    this.#isRead = new Uint8Array(this.#count);
    this.#coefficients = new Uint8Array(this.#count * 24);
  }

  /** Throws `SyntaxBroken` where a rule is broken, or the slice does not end with its last macroblock. */
  read(): void {
    const bits = this.bits;
    const { stop } = bits;
    let mb = this.header.firstMacroblock;
    do {
      if (this.header.type !== 'I') {
        const skipped = bits.ue();
        if (mb + skipped > this.#count) throw new SyntaxBroken('has more macroblocks than its picture');
        this.#isRead.fill(1, mb, mb + skipped);
        mb += skipped;
        if (bits.position >= stop) break;
      }
      if (mb >= this.#count) throw new SyntaxBroken('has more macroblocks than its picture');
      this.#mb = mb;
      this.#hasLeft = mb % this.#width > 0 && this.#isRead[mb - 1] === 1;
      this.#hasTop = mb >= this.#width && this.#isRead[mb - this.#width] === 1;
      this.#macroblock();
      this.#isRead[mb] = 1;
      mb += 1;
    } while (bits.position < stop);
    if (bits.position !== stop) throw new SyntaxBroken('does not end with its last macroblock');
  }

  #macroblock(): void {
    const { type } = this.header;
    const kind = this.bits.ue();
    const intra = kind - FIRST_INTRA[type];
    if (intra > 25) throw new SyntaxBroken('has a macroblock type that there is not');
    if (intra >= 0) this.#intra(intra);
    else if (type === 'P') {
      const parts = P_PARTS[kind];
      if (parts) this.#inter(parts, true);
      else this.#interOf8x8(P_SUB_PARTS, kind === 4);
    } else if (kind === 22) this.#interOf8x8(B_SUB_PARTS, false);
    else this.#inter(B_PARTS[kind] ?? [], kind > 0 || this.header.sequence.direct8x8);
  }

  #intra(kind: number): void {
    const bits = this.bits;
    if (kind === 25) {
      const { lumaBits, chromaBits } = this.header.sequence;
      while (bits.position % 8 !== 0)
        if (bits.bit() === 1) throw new SyntaxBroken('is not padded with zeros');
      bits.skip(256 * lumaBits + 128 * chromaBits);
      this.#coefficients.fill(16, this.#mb * 24, this.#mb * 24 + 24);
      return;
    }
    if (kind === 0) {
      const is8x8 = this.header.picture.transform8x8 && bits.bit() === 1;
      for (let block = 0; block < (is8x8 ? 4 : 16); block += 1) if (bits.bit() === 0) bits.skip(3);
    }
    if (bits.ue() > 3) throw new SyntaxBroken('predicts chroma as can not be');
    if (kind === 0) {
      const coded = this.#codedPattern(0);
      if (coded > 0) this.#residual(coded, false);
    } else {
      const chroma = Math.floor((kind - 1) / 4) % 3;
      this.#residual((kind > 12 ? 15 : 0) | (chroma << 4), true);
    }
  }

  #codedPattern(table: 0 | 1): number {
    const coded = CODED_PATTERNS[table]?.[this.bits.ue()];
    if (coded === undefined) throw new SyntaxBroken('has a coded_block_pattern that there is not');
    return coded;
  }

  #interOf8x8(table: readonly SubPart[], isFirst: boolean): void {
    const kinds = [0, 1, 2, 3].map(() => {
      const kind = table[this.bits.ue()];
      if (!kind) throw new SyntaxBroken('has a macroblock type that there is not');
      return kind;
    });
    const { parts, may8x8 } = partsOf8x8(kinds, this.header.sequence.direct8x8);
    this.#inter(parts, may8x8, isFirst);
  }

  #inter(parts: readonly MotionPart[], may8x8: boolean, isFirst = false): void {
    const bits = this.bits;
    for (let list = 0; list < 2; list += 1) {
      const count = this.header.references[list] ?? 1;
      if (count < 2 || isFirst) continue;
      for (const { lists } of parts) {
        if ((lists & (1 << list)) === 0) continue;
        const reference = count === 2 ? 1 - bits.bit() : bits.ue();
        if (reference >= count) throw new SyntaxBroken('refers to a picture that there is not');
      }
    }
    for (let list = 0; list < 2; list += 1) {
      for (const { lists, inside } of parts) {
        if ((lists & (1 << list)) === 0) continue;
        for (let vector = 0; vector < 2 * inside.length; vector += 1) {
          if (Math.abs(bits.se()) > 32_768) throw new SyntaxBroken('moves farther than may be');
        }
      }
    }
    const coded = this.#codedPattern(1);
    if ((coded & 15) !== 0 && may8x8 && this.header.picture.transform8x8) bits.skip(1);
    if (coded > 0) this.#residual(coded, false);
  }

  #residual(coded: number, is16x16: boolean): void {
    const more = 3 * (this.header.sequence.lumaBits - 8);
    const delta = this.bits.se();
    if (delta < -26 - more || delta > 25 + more) {
      throw new SyntaxBroken('changes the quantizer by more than may be');
    }
    if (is16x16) this.#block(this.#tokensOf(0, 0, 0), 16);
    for (let block = 0; block < 16; block += 1) {
      if ((coded & (1 << (block >> 2))) === 0) continue;
      const x = BLOCK_X[block] ?? 0;
      const y = BLOCK_Y[block] ?? 0;
      this.#coefficients[this.#mb * 24 + y * 4 + x] = this.#block(this.#tokensOf(0, x, y), is16x16 ? 15 : 16);
    }
    if (coded & 0x30) for (let plane = 0; plane < 2; plane += 1) this.#block(OF_CHROMA_DC, 4);
    if ((coded & 0x20) === 0) return;
    for (let plane = 1; plane < 3; plane += 1) {
      for (let block = 0; block < 4; block += 1) {
        const count = this.#block(this.#tokensOf(plane, block & 1, block >> 1), 15);
        this.#coefficients[this.#mb * 24 + 12 + 4 * plane + block] = count;
      }
    }
  }

  /** The table of coeff_token, by the coefficients of the blocks to the left and above (§ 9.2.1). */
  #tokensOf(plane: number, x: number, y: number): number {
    const size = plane === 0 ? 4 : 2;
    const at = (mb: number, column: number, row: number) =>
      this.#coefficients[mb * 24 + (plane === 0 ? 0 : 12 + 4 * plane) + row * size + column] ?? 0;
    const hasLeft = x > 0 || this.#hasLeft;
    const hasTop = y > 0 || this.#hasTop;
    const left = x > 0 ? at(this.#mb, x - 1, y) : hasLeft ? at(this.#mb - 1, size - 1, y) : 0;
    const top = y > 0 ? at(this.#mb, x, y - 1) : hasTop ? at(this.#mb - this.#width, x, size - 1) : 0;
    const near = hasLeft && hasTop ? (left + top + 1) >> 1 : left + top;
    return near < 2 ? 0 : near < 4 ? 1 : near < 8 ? 2 : 3;
  }

  /** residual_block_cavlc (§ 7.3.5.3.2): returns the number of coefficients. */
  #block(tokens: number, size: number): number {
    const bits = this.bits;
    const token = readCode(bits, TOKENS[tokens] ?? new Int16Array());
    const count = token >> 2;
    const ones = token & 3;
    if (count > size) throw new SyntaxBroken('has more coefficients than a block');
    if (count === 0) return 0;
    bits.skip(ones);
    this.#levels(count, ones);
    let zeros = 0;
    if (count < size) {
      zeros = readCode(bits, (size === 4 ? ZEROS_OF_CHROMA : ZEROS)[count - 1] ?? new Int16Array());
      if (zeros + count > size) throw new SyntaxBroken('has more coefficients than a block');
    }
    for (let index = 1; index < count && zeros > 0; index += 1) {
      zeros -= readCode(bits, RUN_BEFORE[Math.min(zeros, 7) - 1] ?? new Int16Array());
      if (zeros < 0) throw new SyntaxBroken('has more zeros than it said');
    }
    return count;
  }

  #levels(count: number, ones: number): void {
    const bits = this.bits;
    let length = count > 10 && ones < 3 ? 1 : 0;
    for (let index = ones; index < count; index += 1) {
      let prefix = 0;
      while (bits.bit() === 0) {
        prefix += 1;
        if (prefix > 25) throw new SyntaxBroken('has a coefficient larger than may be');
      }
      let level = Math.min(15, prefix) << length;
      const suffix = prefix === 14 && length === 0 ? 4 : prefix >= 15 ? prefix - 3 : length;
      level += bits.bits(suffix);
      if (prefix >= 15 && length === 0) level += 15;
      if (prefix >= 16) level += (1 << (prefix - 3)) - 4096;
      if (index === ones && ones < 3) level += 2;
      const size = (level >> 1) + 1;
      if (length === 0) length = 1;
      if (size > 3 << (length - 1) && length < 6) length += 1;
    }
  }
}

/** Nodes of a tree, two numbers each: the next node, or a code as its complement; 0 where no code goes on. */
type CodeTree = Int16Array;

/** @param words code words with a 1 before their first bit, at the index of their value; 0 for none */
function treeOf(words: readonly number[]): CodeTree {
  const nodes: number[] = [0, 0];
  words.forEach((word, code) => {
    let node = 0;
    for (let bit = 30 - Math.clz32(word); bit >= 0; bit -= 1) {
      const branch = 2 * node + ((word >> bit) & 1);
      if (bit === 0) nodes[branch] = ~code;
      else {
        if (nodes[branch] === 0) {
          nodes[branch] = nodes.length / 2;
          nodes.push(0, 0);
        }
        node = nodes[branch] ?? 0;
      }
    }
  });
  return Int16Array.from(nodes);
}

function readCode(bits: BitReader, tree: CodeTree): number {
  let node = 0;
  while (true) {
    const next = tree[2 * node + bits.bit()] ?? 0;
    if (next < 0) return ~next;
    if (next === 0) throw new SyntaxBroken('has a code that there is not');
    node = next;
  }
}
