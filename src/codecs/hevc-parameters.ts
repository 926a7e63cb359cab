import { BitReader, rbspOf, SyntaxBroken } from './bit-reader';

/** One picture that a picture may refer to: how far off, and whether the picture itself does. */
interface Reference {
  readonly delta: number;
  readonly isUsed: boolean;
}

export type HevcSequence = ReturnType<typeof readSequence>;
export type HevcPicture = ReturnType<typeof readPicture>;

export class HevcParameters {
  readonly sequences = new Map<number, HevcSequence>();
  readonly pictures = new Map<number, HevcPicture>();
  /** Whether one could not be read, so that slices may name one that is missing here alone. */
  hasUnread = false;

  take(nal: Buffer): void {
    const type = (nal[0] ?? 0) >> 1;
    try {
      if (type === 33) {
        const sequence = readSequence(new BitReader(rbspOf(nal.subarray(2))));
        this.sequences.set(sequence.id, sequence);
      } else if (type === 34) {
        const picture = readPicture(new BitReader(rbspOf(nal.subarray(2))));
        this.pictures.set(picture.id, picture);
      }
    } catch (error) {
      if (!(error instanceof SyntaxBroken)) throw error;
      this.hasUnread = true;
    }
  }
}

/** Level 6.2 has 35,651,584 luma samples. */
const MOST_SAMPLES = 36_000_000;

/** The part of a sequence parameter set for reading slices (ISO/IEC 23008-2 § 7.3.2.2). */
function readSequence(bits: BitReader) {
  bits.skip(4);
  const layers = bits.bits(3);
  bits.skip(1);
  const isMain = readProfile(bits, layers);
  const id = bits.ue();
  const chromaFormat = bits.ue();
  if (chromaFormat === 3) bits.skip(1);
  // In luma samples.
  const width = bits.ue();
  const height = bits.ue();
  if (bits.bit() === 1) for (let index = 0; index < 4; index += 1) bits.ue();
  const lumaBits = 8 + bits.ue();
  const chromaBits = 8 + bits.ue();
  const orderBits = bits.ue() + 4;
  for (let layer = bits.bit() === 1 ? 0 : layers; layer <= layers; layer += 1) {
    for (let index = 0; index < 3; index += 1) bits.ue();
  }
  // Binary logarithms.
  const minCoding = bits.ue() + 3;
  const treeBlock = minCoding + bits.ue();
  const minTransform = bits.ue() + 2;
  const maxTransform = minTransform + bits.ue();
  const depthInter = bits.ue();
  const depthIntra = bits.ue();
  if (bits.bit() === 1 && bits.bit() === 1) skipScalingLists(bits);
  const hasAsymmetric = bits.bit() === 1;
  const hasOffset = bits.bit() === 1;
  const pcm = bits.bit() === 1 ? readPcm(bits) : undefined;
  const referenceSets: Reference[][] = [];
  const count = bits.ue();
  if (count > 64) throw new SyntaxBroken('has more reference sets than there may be');
  for (let index = 0; index < count; index += 1) {
    referenceSets.push(readReferenceSet(bits, index, referenceSets, count));
  }
  // Whether the current picture uses each long-term reference; undefined where there are none.
  let longTerm: boolean[] | undefined;
  if (bits.bit() === 1) {
    longTerm = [];
    for (let left = bits.ue(); left > 0; left -= 1) {
      bits.skip(orderBits);
      longTerm.push(bits.bit() === 1);
    }
  }
  const hasTemporalMotion = bits.bit() === 1;
  // Of 4:2:0 and without extensions that change the syntax of slices, as Main and Main 10 are.
  const isKnown = chromaFormat === 1 && (isMain || !hasExtensions(bits, layers));
  const isPossible =
    width * height > 0 &&
    width * height <= MOST_SAMPLES &&
    orderBits <= 16 &&
    treeBlock <= 6 &&
    minTransform < minCoding &&
    maxTransform <= Math.min(treeBlock, 5) &&
    Math.max(lumaBits, chromaBits) <= 16;
  if (!isPossible) throw new SyntaxBroken('has sizes that there are not');
  return {
    ...{ id, isKnown, width, height, lumaBits, chromaBits, orderBits, minCoding },
    ...{ treeBlock, minTransform, maxTransform, depthInter, depthIntra, hasAsymmetric, hasOffset, pcm },
    ...{ referenceSets, longTerm, hasTemporalMotion },
  };
}

/** Reads profile_tier_level (§ 7.3.3), and says whether the profile is one without extensions. */
function readProfile(bits: BitReader, layers: number): boolean {
  bits.skip(3);
  const profile = bits.bits(5);
  const compatible = bits.bits(4);
  bits.skip(28 + 48 + 8);
  const present: number[] = [];
  for (let layer = 0; layer < layers; layer += 1) present.push(bits.bits(2));
  if (layers > 0) bits.skip(2 * (8 - layers));
  for (const flags of present) bits.skip((flags & 2 ? 88 : 0) + (flags & 1 ? 8 : 0));
  return (profile >= 1 && profile <= 3) || (compatible & 7) !== 0;
}

/** Reads on to the flags of extensions, after those of display (annex E), which say whether slices are written otherwise. */
function hasExtensions(bits: BitReader, layers: number): boolean {
  bits.skip(1);
  if (bits.bit() === 1) skipDisplay(bits, layers);
  if (bits.bit() === 0) return false;
  const [range, , solid, screen, ...others] = Array.from({ length: 8 }, () => bits.bit());
  if ([solid, screen, ...others].includes(1)) return true;
  return range === 1 && bits.bits(9) !== 0;
}

/** vui_parameters (§ E.2.1). */
function skipDisplay(bits: BitReader, layers: number): void {
  const skipCodes = (count: number) => {
    for (let index = 0; index < count; index += 1) bits.ue();
  };
  if (bits.bit() === 1 && bits.bits(8) === 255) bits.skip(32);
  if (bits.bit() === 1) bits.skip(1);
  if (bits.bit() === 1) {
    bits.skip(4);
    if (bits.bit() === 1) bits.skip(24);
  }
  if (bits.bit() === 1) skipCodes(2);
  bits.skip(3);
  if (bits.bit() === 1) skipCodes(4);
  if (bits.bit() === 1) {
    bits.skip(64);
    if (bits.bit() === 1) skipCodes(1);
    if (bits.bit() === 1) skipBuffering(bits, layers);
  }
  if (bits.bit() === 1) {
    bits.skip(3);
    skipCodes(5);
  }
}

/** hrd_parameters (§ E.2.2). */
function skipBuffering(bits: BitReader, layers: number): void {
  const kinds = bits.bit() + bits.bit();
  const isPartial = kinds > 0 && bits.bit() === 1;
  if (isPartial) bits.skip(19);
  if (kinds > 0) bits.skip(8 + (isPartial ? 4 : 0) + 15);
  for (let layer = 0; layer <= layers; layer += 1) {
    const isFixed = bits.bit() === 1 || bits.bit() === 1;
    let isLowDelay = false;
    if (isFixed) bits.ue();
    else isLowDelay = bits.bit() === 1;
    const buffers = isLowDelay ? 1 : bits.ue() + 1;
    if (buffers > 32) throw new SyntaxBroken('has more buffers than there may be');
    for (let left = buffers * kinds; left > 0; left -= 1) {
      for (let index = 0; index < (isPartial ? 4 : 2); index += 1) bits.ue();
      bits.skip(1);
    }
  }
}

function readPcm(bits: BitReader) {
  const lumaBits = bits.bits(4) + 1;
  const chromaBits = bits.bits(4) + 1;
  const min = bits.ue() + 3;
  const max = min + bits.ue();
  bits.skip(1);
  return { min, max, lumaBits, chromaBits };
}

/** § 7.3.4. */
function skipScalingLists(bits: BitReader): void {
  for (let size = 0; size < 4; size += 1) {
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (bits.bit() === 0) bits.ue();
      else {
        const count = Math.min(64, 16 << (size * 2)) + (size > 1 ? 1 : 0);
        for (let index = 0; index < count; index += 1) bits.se();
      }
    }
  }
}

/** Reads a reference picture set (§ 7.3.7): pictures before, the nearest first, and those behind. A slice's has `count`. */
export function readReferenceSet(
  bits: BitReader,
  index: number,
  sets: readonly (readonly Reference[])[],
  count: number,
): Reference[] {
  const isPredicted = index > 0 && bits.bit() === 1;
  if (isPredicted) return readPredictedSet(bits, index, sets, count);
  const before = bits.ue();
  const behind = bits.ue();
  if (before + behind > 16) throw new SyntaxBroken('has more references than there may be');
  const set: Reference[] = [];
  for (const [number, sign] of [
    [before, -1],
    [behind, 1],
  ] as const) {
    let delta = 0;
    for (let left = number; left > 0; left -= 1) {
      delta += sign * (bits.ue() + 1);
      set.push({ delta, isUsed: bits.bit() === 1 });
    }
  }
  return set;
}

/** § 7.4.8: all of another set moved, without those that are left out or are the picture itself. */
function readPredictedSet(
  bits: BitReader,
  index: number,
  sets: readonly (readonly Reference[])[],
  count: number,
): Reference[] {
  const from = sets[index - 1 - (index === count ? bits.ue() : 0)];
  if (!from) throw new SyntaxBroken('predicts references from a set that there is not');
  const isNegative = bits.bit() === 1;
  const shift = (bits.ue() + 1) * (isNegative ? -1 : 1);
  const set: Reference[] = [];
  for (const delta of [...from.map((each) => each.delta + shift), shift]) {
    const isUsed = bits.bit() === 1;
    const isKept = isUsed || bits.bit() === 1;
    if (isKept && delta !== 0) set.push({ delta, isUsed });
  }
  if (set.length > 16) throw new SyntaxBroken('has more references than there may be');
  return set.sort((a, b) =>
    a.delta < 0 !== b.delta < 0 ? a.delta - b.delta : Math.abs(a.delta) - Math.abs(b.delta),
  );
}

/** A picture parameter set, in the order of its syntax (§ 7.3.2.3). */
function readPicture(bits: BitReader) {
  const flag = () => bits.bit() === 1;
  const picture = {
    id: bits.ue(),
    sequence: bits.ue(),
    hasDependent: flag(),
    hasOutputFlag: flag(),
    extraBits: bits.bits(3),
    hidesSigns: flag(),
    hasCabacInit: flag(),
    references: [bits.ue() + 1, bits.ue() + 1] as const,
    qp: 26 + bits.se(),
    constrainedIntra: flag(),
    hasTransformSkip: flag(),
    /** Undefined where the quantizer does not change within a slice. */
    qpDeltaDepth: flag() ? bits.ue() : undefined,
    chromaOffsets: [bits.se(), bits.se()],
    hasChromaOffsets: flag(),
    isWeighted: flag(),
    isWeightedB: flag(),
    hasBypass: flag(),
    hasTiles: flag(),
    isSynchronized: flag(),
  };
  const filters = {
    /** Undefined where a picture is one tile. */
    tiles: picture.hasTiles ? readTiles(bits) : undefined,
    filtersAcross: flag(),
    ...readDeblocking(bits),
  };
  if (flag()) skipScalingLists(bits);
  return {
    ...picture,
    ...filters,
    changesLists: flag(),
    parallelMerge: bits.ue(),
    hasHeaderExtension: flag(),
    /** Whether it has no extension (range, multilayer, 3D, screen content) that changes the syntax of slices. */
    isKnown: ((flag() ? bits.bits(8) >> 4 : 0) & 0b1011) === 0,
  };
}

function readDeblocking(bits: BitReader) {
  const isControlled = bits.bit() === 1;
  const overridesDeblocking = isControlled && bits.bit() === 1;
  const noDeblocking = isControlled && bits.bit() === 1;
  if (isControlled && !noDeblocking) for (let index = 0; index < 2; index += 1) bits.se();
  return { overridesDeblocking, noDeblocking };
}

function readTiles(bits: BitReader) {
  const columns = bits.ue() + 1;
  const rows = bits.ue() + 1;
  // Level 6.2 has 20 columns and 22 rows.
  if (columns > 64 || rows > 64) throw new SyntaxBroken('has more tiles than there may be');
  const read = (count: number) => Array.from({ length: count - 1 }, () => bits.ue() + 1);
  const sizes = bits.bit() === 1 ? undefined : ([read(columns), read(rows)] as const);
  bits.skip(1);
  return { columns, rows, sizes };
}
