import { BitReader, SyntaxBroken } from './bit-reader';
import type { Cabac } from './cabac';
import { CONTEXT, HEVC_CONTEXTS } from './hevc-contexts';
import type { HevcFrame } from './hevc-frame';
import type { HevcSegment } from './hevc-slice-header';
import { TransformReader } from './hevc-transform';

const PLANAR = 0;
const DC = 1;
const VERTICAL = 26;
/** Modes of chroma by intra_chroma_pred_mode. */
const CHROMA_MODES = [PLANAR, VERTICAL, 10, DC];

/** Width and height together of each part of a coding unit that is predicted from other pictures, in quarters of its size. */
const WHOLE: readonly number[] = [8];
const HALVES: readonly number[] = [6, 6];
const QUARTERS: readonly number[] = [4, 4, 4, 4];
const SMALL_FIRST: readonly number[] = [5, 7];
const SMALL_SECOND: readonly number[] = [7, 5];

/**
 * Reads the data of one slice segment (ISO/IEC 23008-2 § 7.3.8), without making a picture of them: a segment that was
 * decrypted well ends with a coding tree block at its last bit, and that of a picture with its last block; noise does not.
 */
export class CodingTreeReader {
  readonly #transform: TransformReader;
  #hasLeft = false;
  #hasTop = false;

  constructor(
    private readonly cabac: Cabac,
    private readonly bytes: Buffer,
    private readonly segment: HevcSegment,
    private readonly frame: HevcFrame,
  ) {
    this.#transform = new TransformReader(cabac, segment);
  }

  /** `start` is the first byte of the data. */
  read(start: number): void {
    const cabac = this.cabac;
    const frame = this.frame;
    const { picture, sequence } = this.segment;
    const { treeBlock } = sequence;
    cabac.start(start);
    this.#begin(true);
    for (;;) {
      const address = frame.order[frame.next] ?? 0;
      frame.slices[address] = frame.sliceAddress + 1;
      const column = address % frame.columns;
      this.#hasLeft = column > 0 && frame.isNear(address - 1, address);
      this.#hasTop = frame.isNear(address - frame.columns, address);
      this.#offsets();
      this.#quadtree(column << treeBlock, Math.floor(address / frame.columns) << treeBlock, treeBlock, 0);
      if (picture.isSynchronized && column === (frame.tileStarts[address] ?? 0) + 1) {
        frame.rowStates = cabac.copyStates();
      }
      frame.next += 1;
      if (cabac.terminate() === 1) break;
      if (frame.isWhole) throw new SyntaxBroken('goes on beyond the picture');
      const following = frame.order[frame.next] ?? 0;
      const isNewTile = frame.tiles[following] !== frame.tiles[address];
      const isNewRow = picture.isSynchronized && following % frame.columns === frame.tileStarts[following];
      if (isNewTile || isNewRow) {
        if (cabac.terminate() === 0) throw new SyntaxBroken('goes on beyond a row or a tile');
        cabac.start(this.#aligned());
        this.#begin(false);
      }
    }
    if (picture.hasDependent) frame.segmentStates = cabac.copyStates();
  }

  /** Where the byte after the bits that are read begins; those between are a 1 and zeros. */
  #aligned(): number {
    const bits = new BitReader(this.bytes);
    bits.skip(this.cabac.position - 1);
    if (bits.bit() === 0) throw new SyntaxBroken('is not aligned');
    while (bits.position % 8 !== 0) if (bits.bit() === 1) throw new SyntaxBroken('is not aligned');
    return bits.position / 8;
  }

  /** Sets the first states of contexts (§ 9.3.1). */
  #begin(isSegment: boolean): void {
    const frame = this.frame;
    const { picture, slice, isDependent } = this.segment;
    const address = frame.order[frame.next] ?? 0;
    const column = address % frame.columns;
    const above = address - frame.columns;
    const isTile = frame.next === 0 || frame.tiles[frame.order[frame.next - 1] ?? 0] !== frame.tiles[address];
    let states: Uint8Array | undefined;
    if (!isTile && picture.isSynchronized && column === frame.tileStarts[address]) {
      // The slice of a segment that is not read yet is known already.
      if (column + 1 < frame.columns && frame.isNear(above + 1, address)) states = frame.rowStates;
    } else if (!isTile && isSegment && isDependent) states = frame.segmentStates;
    if (states) this.cabac.setStates(states);
    else this.cabac.initialize(HEVC_CONTEXTS[slice.contexts] ?? [], slice.qp);
  }

  /** Sample adaptive offsets (§ 7.3.8.3). */
  #offsets(): void {
    const { slice, sequence } = this.segment;
    if (!slice.hasOffsetLuma && !slice.hasOffsetChroma) return;
    const cabac = this.cabac;
    if (this.#hasLeft && cabac.decision(CONTEXT.saoMerge) === 1) return;
    if (this.#hasTop && cabac.decision(CONTEXT.saoMerge) === 1) return;
    let type = 0;
    for (let part = 0; part < 3; part += 1) {
      if (!(part === 0 ? slice.hasOffsetLuma : slice.hasOffsetChroma)) continue;
      if (part < 2) type = cabac.decision(CONTEXT.saoType) === 0 ? 0 : 1 + cabac.bypass();
      if (type === 0) continue;
      const bits = part === 0 ? sequence.lumaBits : sequence.chromaBits;
      const most = (1 << (Math.min(bits, 10) - 5)) - 1;
      let signs = 0;
      for (let index = 0; index < 4; index += 1) {
        let value = 0;
        while (value < most && cabac.bypass() === 1) value += 1;
        if (value > 0) signs += 1;
      }
      // Bands have signs and a position, edges a class that Cr has of Cb.
      if (type === 1) cabac.bypassBits(signs + 5);
      else if (part < 2) cabac.bypassBits(2);
    }
  }

  #quadtree(x: number, y: number, log2: number, depth: number): void {
    const { sequence, picture } = this.segment;
    const size = 1 << log2;
    const mayDivide = log2 > sequence.minCoding;
    let isSplit = mayDivide;
    if (mayDivide && x + size <= sequence.width && y + size <= sequence.height) {
      isSplit = this.cabac.decision(CONTEXT.splitCu + this.#deeperNeighbours(x, y, depth)) === 1;
    }
    if (picture.qpDeltaDepth !== undefined && log2 >= sequence.treeBlock - picture.qpDeltaDepth) {
      this.#transform.beginGroup();
    }
    if (!isSplit) {
      this.#unit(x, y, log2, depth);
      return;
    }
    const half = size >> 1;
    const isWide = x + half < sequence.width;
    this.#quadtree(x, y, log2 - 1, depth + 1);
    if (isWide) this.#quadtree(x + half, y, log2 - 1, depth + 1);
    if (y + half >= sequence.height) return;
    this.#quadtree(x, y + half, log2 - 1, depth + 1);
    if (isWide) this.#quadtree(x + half, y + half, log2 - 1, depth + 1);
  }

  #isLeftThere(x: number): boolean {
    return (x & ((1 << this.segment.sequence.treeBlock) - 1)) !== 0 || this.#hasLeft;
  }

  #isTopThere(y: number): boolean {
    return (y & ((1 << this.segment.sequence.treeBlock) - 1)) !== 0 || this.#hasTop;
  }

  #codingAt(x: number, y: number): number {
    const { minCoding } = this.segment.sequence;
    return (y >> minCoding) * this.frame.codingColumns + (x >> minCoding);
  }

  #deeperNeighbours(x: number, y: number, depth: number): number {
    const { depths } = this.frame;
    const left = this.#isLeftThere(x) && (depths[this.#codingAt(x - 1, y)] ?? 0) > depth ? 1 : 0;
    const top = this.#isTopThere(y) && (depths[this.#codingAt(x, y - 1)] ?? 0) > depth ? 1 : 0;
    return left + top;
  }

  #unit(x: number, y: number, log2: number, depth: number): void {
    const cabac = this.cabac;
    const frame = this.frame;
    const { sequence, picture, slice } = this.segment;
    const isBypassed = picture.hasBypass && cabac.decision(CONTEXT.transquantBypass) === 1;
    const isInter = slice.type !== 'I';
    let isSkipped = false;
    if (isInter) {
      const left = this.#isLeftThere(x) ? (frame.skipped[this.#codingAt(x - 1, y)] ?? 0) : 0;
      const top = this.#isTopThere(y) ? (frame.skipped[this.#codingAt(x, y - 1)] ?? 0) : 0;
      isSkipped = cabac.decision(CONTEXT.skip + left + top) === 1;
    }
    const side = 1 << (log2 - sequence.minCoding);
    for (let row = 0, at = this.#codingAt(x, y); row < side; row += 1, at += frame.codingColumns) {
      frame.depths.fill(depth, at, at + side);
      frame.skipped.fill(isSkipped ? 1 : 0, at, at + side);
    }
    if (isSkipped) {
      this.#mergeIndex();
      this.#setModes(x, y, 1 << log2, DC);
      return;
    }
    const isIntra = !isInter || cabac.decision(CONTEXT.predMode) === 1;
    if (isIntra) {
      this.#intraUnit(x, y, log2, isBypassed);
      return;
    }
    this.#setModes(x, y, 1 << log2, DC);
    const parts = this.#partMode(log2);
    let isMerged = false;
    for (const sides of parts) isMerged = this.#prediction((sides << log2) >> 2, depth);
    const isWhole = parts === WHOLE;
    if (!(isWhole && isMerged) && cabac.decision(CONTEXT.rootCoded) === 0) return;
    const unit = { isIntra, isSplit: false, isWhole, isBypassed, modes: [], chromaMode: DC };
    this.#transform.read(unit, log2);
  }

  #intraUnit(x: number, y: number, log2: number, isBypassed: boolean): void {
    const cabac = this.cabac;
    const { sequence } = this.segment;
    const { pcm } = sequence;
    const isSplit = log2 === sequence.minCoding && cabac.decision(CONTEXT.partMode) === 0;
    if (pcm && !isSplit && log2 >= pcm.min && log2 <= pcm.max && cabac.terminate() === 1) {
      this.#setModes(x, y, 1 << log2, DC);
      const bits = (pcm.lumaBits + pcm.chromaBits / 2) << (2 * log2);
      const end = this.#aligned() + Math.ceil(bits / 8);
      if (end > this.bytes.length) throw new SyntaxBroken('ended');
      cabac.start(end);
      return;
    }
    const count = isSplit ? 4 : 1;
    const size = 1 << (isSplit ? log2 - 1 : log2);
    const likely: number[] = [];
    for (let part = 0; part < count; part += 1) likely.push(cabac.decision(CONTEXT.prevIntra));
    const modes: number[] = [];
    for (let part = 0; part < count; part += 1) {
      const left = x + (part & 1) * size;
      const top = y + (part >> 1) * size;
      const mode = this.#intraMode(left, top, likely[part] === 1);
      modes.push(mode);
      this.#setModes(left, top, size, mode);
    }
    const [first = DC] = modes;
    let chromaMode = first;
    if (cabac.decision(CONTEXT.chromaMode) === 1) {
      const chosen = CHROMA_MODES[cabac.bypassBits(2)] ?? DC;
      chromaMode = chosen === first ? 34 : chosen;
    }
    this.#transform.read({ isIntra: true, isSplit, isWhole: !isSplit, isBypassed, modes, chromaMode }, log2);
  }

  /** The mode by those of neighbours (§ 8.4.2), on which the scan of coefficients depends. */
  #intraMode(x: number, y: number, isLikely: boolean): number {
    const cabac = this.cabac;
    const { modes, modeColumns } = this.frame;
    const at = (y >> 2) * modeColumns + (x >> 2);
    const a = this.#isLeftThere(x) ? (modes[at - 1] ?? DC) : DC;
    const isInside = (y & ((1 << this.segment.sequence.treeBlock) - 1)) !== 0;
    const b = isInside ? (modes[at - modeColumns] ?? DC) : DC;
    let first = a;
    let second = b;
    let third: number;
    if (a === b) {
      if (a < 2) [first, second, third] = [PLANAR, DC, VERTICAL];
      else [second, third] = [2 + ((a + 29) % 32), 2 + ((a - 2 + 1) % 32)];
    } else if (a !== PLANAR && b !== PLANAR) third = PLANAR;
    else third = a !== DC && b !== DC ? DC : VERTICAL;
    if (isLikely) {
      if (cabac.bypass() === 0) return first;
      return cabac.bypass() === 0 ? second : third;
    }
    let mode = cabac.bypassBits(5);
    for (const candidate of [first, second, third].sort((one, other) => one - other)) {
      if (mode >= candidate) mode += 1;
    }
    return mode;
  }

  #setModes(x: number, y: number, size: number, mode: number): void {
    const { modes, modeColumns } = this.frame;
    const side = size >> 2;
    for (let row = 0, at = (y >> 2) * modeColumns + (x >> 2); row < side; row += 1, at += modeColumns) {
      modes.fill(mode, at, at + side);
    }
  }

  #partMode(log2: number): readonly number[] {
    const cabac = this.cabac;
    const { sequence } = this.segment;
    if (cabac.decision(CONTEXT.partMode) === 1) return WHOLE;
    const isRows = cabac.decision(CONTEXT.partMode + 1) === 1;
    if (log2 === sequence.minCoding) {
      if (isRows || log2 === 3) return HALVES;
      return cabac.decision(CONTEXT.partMode + 2) === 1 ? HALVES : QUARTERS;
    }
    if (!sequence.hasAsymmetric || cabac.decision(CONTEXT.partMode + 3) === 1) return HALVES;
    return cabac.bypass() === 1 ? SMALL_SECOND : SMALL_FIRST;
  }

  #mergeIndex(): void {
    const { mergeCandidates } = this.segment.slice;
    if (mergeCandidates < 2 || this.cabac.decision(CONTEXT.mergeIndex) === 0) return;
    for (let index = 2; index < mergeCandidates && this.cabac.bypass() === 1; ) index += 1;
  }

  /** A prediction unit (§ 7.3.8.6); `sides` is its width and height together. Returns whether it is merged. */
  #prediction(sides: number, depth: number): boolean {
    const cabac = this.cabac;
    const { slice } = this.segment;
    if (cabac.decision(CONTEXT.merge) === 1) {
      this.#mergeIndex();
      return true;
    }
    let lists = 1;
    if (slice.type === 'B') {
      if (sides !== 12 && cabac.decision(CONTEXT.interPrediction + depth) === 1) lists = 3;
      else lists = cabac.decision(CONTEXT.interPrediction + 4) === 1 ? 2 : 1;
    }
    for (let list = 0; list < 2; list += 1) {
      if ((lists & (1 << list)) === 0) continue;
      this.#reference(slice.references[list] ?? 1);
      if (!(list === 1 && lists === 3 && slice.isSecondZero)) this.#motion();
      cabac.decision(CONTEXT.motionPredictor);
    }
    return false;
  }

  #reference(count: number): void {
    const cabac = this.cabac;
    for (let index = 0; index < count - 1; index += 1) {
      const isMore = index < 2 ? cabac.decision(CONTEXT.reference + index) : cabac.bypass();
      if (isMore === 0) return;
    }
  }

  /** The difference of a motion vector (§ 7.3.8.9). */
  #motion(): void {
    const cabac = this.cabac;
    const isX = cabac.decision(CONTEXT.motionGreater) === 1;
    const isY = cabac.decision(CONTEXT.motionGreater) === 1;
    const isLongX = isX && cabac.decision(CONTEXT.motionGreater + 1) === 1;
    const isLongY = isY && cabac.decision(CONTEXT.motionGreater + 1) === 1;
    if (isX) this.#motionSize(isLongX);
    if (isY) this.#motionSize(isLongY);
  }

  #motionSize(isLong: boolean): void {
    const cabac = this.cabac;
    if (isLong) {
      let order = 1;
      while (cabac.bypass() === 1) {
        order += 1;
        if (order > 15) throw new SyntaxBroken('moves farther than may be');
      }
      cabac.bypassBits(order);
    }
    cabac.bypass();
  }
}
