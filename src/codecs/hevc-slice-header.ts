import { type BitReader, SyntaxBroken } from './bit-reader';
import {
  type HevcParameters,
  type HevcPicture,
  type HevcSequence,
  readReferenceSet,
} from './hevc-parameters';

/** The common part of a slice and its dependent segments, for reading their data. */
export interface HevcSlice {
  readonly type: 'B' | 'P' | 'I';
  readonly hasOffsetLuma: boolean;
  readonly hasOffsetChroma: boolean;
  readonly references: readonly [number, number];
  /** mvd_l1_zero_flag. */
  readonly isSecondZero: boolean;
  readonly contexts: number;
  readonly mergeCandidates: number;
  readonly qp: number;
}

/** The header of a slice segment (ISO/IEC 23008-2 § 7.3.6.1). */
export interface HevcSegment {
  readonly sequence: HevcSequence;
  readonly picture: HevcPicture;
  readonly isFirst: boolean;
  readonly isDependent: boolean;
  /** The coding tree block that it begins with, in raster scan. */
  readonly address: number;
  readonly slice: HevcSlice;
}

/** In coding tree blocks; those at the right and lower edge may be cut. */
export function blocksOf({ width, height, treeBlock }: HevcSequence): { columns: number; rows: number } {
  const size = 1 << treeBlock;
  return { columns: Math.ceil(width / size), rows: Math.ceil(height / size) };
}

/** Reads a segment's header, `bits` is left at its data. Undefined where a parameter set is unknown, or its profile. */
export function readSegmentHeader(
  bits: BitReader,
  type: number,
  parameters: HevcParameters,
  before: HevcSlice | undefined,
): HevcSegment | undefined {
  const isFirst = bits.bit() === 1;
  if (type >= 16 && type <= 23) bits.skip(1);
  const picture = parameters.pictures.get(bits.ue());
  const sequence = picture && parameters.sequences.get(picture.sequence);
  if (!picture || !sequence) {
    if (picture || parameters.hasUnread) return undefined;
    throw new SyntaxBroken('names a parameter set that there is not');
  }
  if (!sequence.isKnown || !picture.isKnown) return undefined;
  const { columns, rows } = blocksOf(sequence);
  let isDependent = false;
  let address = 0;
  if (!isFirst) {
    isDependent = picture.hasDependent && bits.bit() === 1;
    address = bits.bits(bitsFor(columns * rows));
    if (address === 0 || address >= columns * rows) throw new SyntaxBroken('begins outside of the picture');
  }
  const slice = isDependent ? before : readSlice(bits, type, sequence, picture);
  if (!slice) throw new SyntaxBroken('depends on a slice that there is not');
  if (picture.tiles || picture.isSynchronized) skipEntryPoints(bits, columns * rows);
  if (picture.hasHeaderExtension) bits.skip(bits.ue() * 8);
  if (bits.bit() === 0) throw new SyntaxBroken('is not aligned');
  while (bits.position % 8 !== 0) if (bits.bit() === 1) throw new SyntaxBroken('is not aligned');
  return { sequence, picture, isFirst, isDependent, address, slice };
}

function bitsFor(count: number): number {
  return Math.ceil(Math.log2(count));
}

function readSlice(
  bits: BitReader,
  nalType: number,
  sequence: HevcSequence,
  picture: HevcPicture,
): HevcSlice {
  const flag = () => bits.bit() === 1;
  bits.skip(picture.extraBits);
  const type = (['B', 'P', 'I'] as const)[bits.ue()];
  if (!type) throw new SyntaxBroken('has a slice type that there is not');
  if (nalType >= 16 && type !== 'I')
    throw new SyntaxBroken('refers to pictures before a random access point');
  if (picture.hasOutputFlag) bits.skip(1);
  const { used, hasMotion } = nalType === 19 || nalType === 20 ? NONE : readReferences(bits, sequence);
  const hasOffsetLuma = sequence.hasOffset && flag();
  const hasOffsetChroma = sequence.hasOffset && flag();
  const references: [number, number] = [...picture.references];
  let isSecondZero = false;
  let mergeCandidates = 0;
  let hasOtherContexts = false;
  if (type !== 'I') {
    if (flag()) {
      references[0] = bits.ue() + 1;
      if (type === 'B') references[1] = bits.ue() + 1;
    }
    if (type === 'P') references[1] = 0;
    if (Math.max(...references) > 16) throw new SyntaxBroken('has more references than there may be');
    if (used === 0) throw new SyntaxBroken('refers to no picture');
    if (picture.changesLists && used > 1) skipListChanges(bits, references, used);
    if (type === 'B') isSecondZero = flag();
    hasOtherContexts = picture.hasCabacInit && flag();
    if (hasMotion) {
      const list = type === 'B' && !flag() ? 1 : 0;
      if (references[list] > 1 && bits.ue() >= references[list]) {
        throw new SyntaxBroken('takes motion of a picture that there is not');
      }
    }
    if (type === 'P' ? picture.isWeighted : picture.isWeightedB) skipWeights(bits, references);
    mergeCandidates = 5 - bits.ue();
    if (mergeCandidates < 1) throw new SyntaxBroken('merges fewer candidates than there may be');
  }
  const qp = picture.qp + bits.se();
  if (qp < -6 * (sequence.lumaBits - 8) || qp > 51)
    throw new SyntaxBroken('has a quantizer out of its range');
  if (picture.hasChromaOffsets && (Math.abs(bits.se()) > 12 || Math.abs(bits.se()) > 12)) {
    throw new SyntaxBroken('has a quantizer of chroma out of its range');
  }
  let noDeblocking = picture.noDeblocking;
  if (picture.overridesDeblocking && flag()) {
    noDeblocking = flag();
    if (!noDeblocking && (Math.abs(bits.se()) > 6 || Math.abs(bits.se()) > 6)) {
      throw new SyntaxBroken('has a deblocking offset out of its range');
    }
  }
  if (picture.filtersAcross && (hasOffsetLuma || hasOffsetChroma || !noDeblocking)) bits.skip(1);
  const contexts = type === 'I' ? 0 : (type === 'P') === hasOtherContexts ? 2 : 1;
  return { type, hasOffsetLuma, hasOffsetChroma, references, isSecondZero, contexts, mergeCandidates, qp };
}

const NONE = { used: 0, hasMotion: false };

function readReferences(bits: BitReader, sequence: HevcSequence): { used: number; hasMotion: boolean } {
  const { referenceSets, longTerm } = sequence;
  const count = referenceSets.length;
  bits.skip(sequence.orderBits);
  const set =
    bits.bit() === 0
      ? readReferenceSet(bits, count, referenceSets, count)
      : referenceSets[count > 1 ? bits.bits(bitsFor(count)) : 0];
  if (!set) throw new SyntaxBroken('names a reference set that there is not');
  let used = set.filter(({ isUsed }) => isUsed).length;
  if (longTerm) {
    const known = longTerm.length > 0 ? bits.ue() : 0;
    const total = known + bits.ue();
    if (total > 33) throw new SyntaxBroken('has more references than there may be');
    for (let index = 0; index < total; index += 1) {
      let isUsed: boolean | undefined;
      if (index < known) isUsed = longTerm[longTerm.length > 1 ? bits.bits(bitsFor(longTerm.length)) : 0];
      else {
        bits.skip(sequence.orderBits);
        isUsed = bits.bit() === 1;
      }
      if (isUsed) used += 1;
      if (bits.bit() === 1) bits.ue();
    }
  }
  return { used, hasMotion: sequence.hasTemporalMotion && bits.bit() === 1 };
}

function skipListChanges(bits: BitReader, references: readonly number[], used: number): void {
  for (const count of references) {
    if (count === 0 || bits.bit() === 0) continue;
    for (let index = 0; index < count; index += 1) {
      if (bits.bits(bitsFor(used)) >= used) throw new SyntaxBroken('names a reference that there is not');
    }
  }
}

/** § 7.3.6.3. */
function skipWeights(bits: BitReader, references: readonly number[]): void {
  const denominator = bits.ue();
  const chroma = denominator + bits.se();
  if (denominator > 7 || chroma < 0 || chroma > 7) throw new SyntaxBroken('weighs references out of range');
  const check = (value: number, most: number) => {
    if (Math.abs(value) > most) throw new SyntaxBroken('weighs references out of range');
  };
  for (const count of references) {
    const flags = Array.from({ length: count * 2 }, () => bits.bit());
    for (let index = 0; index < count; index += 1) {
      if (flags[index] === 1) {
        check(bits.se(), 128);
        check(bits.se(), 128);
      }
      if (flags[count + index] === 1) {
        for (let part = 0; part < 2; part += 1) {
          check(bits.se(), 128);
          check(bits.se(), 512);
        }
      }
    }
  }
}

/** The end of a substream shows the start of the next. */
function skipEntryPoints(bits: BitReader, most: number): void {
  const count = bits.ue();
  if (count > most) throw new SyntaxBroken('has more entry points than there may be');
  if (count === 0) return;
  const length = bits.ue() + 1;
  if (length > 32) throw new SyntaxBroken('has an entry point too far off');
  bits.skip(length * count);
}
