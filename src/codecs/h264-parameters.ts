import { BitReader, rbspOf, SyntaxBroken } from './bit-reader';

type H264Sequence = ReturnType<typeof readSequence>;
type H264Picture = ReturnType<typeof readPicture>;

export class H264Parameters {
  readonly sequences = new Map<number, H264Sequence>();
  readonly pictures = new Map<number, H264Picture>();

  /** Ignores unreadable parameter sets. */
  take(nal: Buffer): void {
    const type = (nal[0] ?? 0) & 31;
    try {
      if (type === 7) {
        const sequence = readSequence(new BitReader(rbspOf(nal.subarray(1))));
        this.sequences.set(sequence.id, sequence);
      } else if (type === 8) {
        const picture = readPicture(new BitReader(rbspOf(nal.subarray(1))));
        this.pictures.set(picture.id, picture);
      }
    } catch (error) {
      if (!(error instanceof SyntaxBroken)) throw error;
    }
  }
}

/** A picture parameter set, in the order of its syntax (ISO/IEC 14496-10 § 7.3.2.2). */
function readPicture(bits: BitReader) {
  const flag = () => bits.bit() === 1;
  const picture = {
    id: bits.ue(),
    sequence: bits.ue(),
    isCabac: flag(),
    hasOrder: flag(),
    sliceGroups: bits.ue() + 1,
    references: [bits.ue() + 1, bits.ue() + 1] as const,
    isWeighted: flag(),
    weightedB: bits.bits(2),
    qp: 26 + bits.se(),
    qs: 26 + bits.se(),
    chromaOffset: bits.se(),
    hasDeblocking: flag(),
    constrainedIntra: flag(),
    hasRedundant: flag(),
    transform8x8: bits.position < bits.stop && flag(),
  };
  // They are of the Extended profile, and not read.
  if (picture.sliceGroups > 1) throw new SyntaxBroken('slice groups');
  return picture;
}

/** Those whose syntax goes on with the chroma format. */
const HIGH_PROFILES = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/** The part of a sequence parameter set for reading slices (§ 7.3.2.1). */
function readSequence(bits: BitReader) {
  const profile = bits.bits(8);
  bits.skip(16);
  const id = bits.ue();
  let chromaFormat = 1;
  let separatePlanes = false;
  let lumaBits = 8;
  let chromaBits = 8;
  if (HIGH_PROFILES.includes(profile)) {
    chromaFormat = bits.ue();
    if (chromaFormat === 3) separatePlanes = bits.bit() === 1;
    lumaBits = 8 + bits.ue();
    chromaBits = 8 + bits.ue();
    bits.bit();
    if (bits.bit() === 1) skipScalingLists(bits, chromaFormat === 3 ? 12 : 8);
  }
  const frameNumBits = bits.ue() + 4;
  const orderType = bits.ue();
  let orderBits = 0;
  let orderAlwaysZero = false;
  if (orderType === 0) orderBits = bits.ue() + 4;
  else if (orderType === 1) {
    orderAlwaysZero = bits.bit() === 1;
    bits.se();
    bits.se();
    for (let left = bits.ue(); left > 0; left -= 1) bits.se();
  }
  bits.ue();
  bits.bit();
  // In macroblocks, and the height in those of a frame.
  const width = bits.ue() + 1;
  const units = bits.ue() + 1;
  const framesOnly = bits.bit() === 1;
  const adaptive = !framesOnly && bits.bit() === 1;
  const direct8x8 = bits.bit() === 1;
  const height = framesOnly ? units : units * 2;
  // Level 6.2 has 139,264 macroblocks.
  if (width * height > 140_000 || frameNumBits > 16 || orderBits > 16) throw new SyntaxBroken('too large');
  return {
    ...{ id, chromaFormat, separatePlanes, lumaBits, chromaBits, frameNumBits, orderType, orderBits },
    ...{ orderAlwaysZero, width, height, framesOnly, adaptive, direct8x8 },
  };
}

function skipScalingLists(bits: BitReader, lists: number): void {
  for (let list = 0; list < lists; list += 1) {
    if (bits.bit() === 0) continue;
    let last = 8;
    let next = 8;
    for (let index = 0; index < (list < 6 ? 16 : 64); index += 1) {
      if (next !== 0) next = (last + bits.se() + 256) % 256;
      if (next !== 0) last = next;
    }
  }
}

/** The part of a slice header for reading its data (§ 7.3.3). */
export interface H264SliceHeader {
  readonly firstMacroblock: number;
  readonly type: 'P' | 'B' | 'I';
  readonly sequence: H264Sequence;
  readonly picture: H264Picture;
  readonly isField: boolean;
  readonly cabacInit: number;
  readonly qp: number;
  readonly references: readonly [number, number];
}

/** Reads the header of a slice, and leaves `bits` at its data. Throws `SyntaxBroken` where it breaks a rule. */
export function readSliceHeader(
  bits: BitReader,
  nalHeader: number,
  parameters: H264Parameters,
): H264SliceHeader {
  const isIdr = (nalHeader & 31) === 5;
  const isReference = (nalHeader & 0x60) !== 0;
  const firstMacroblock = bits.ue();
  const typeNumber = bits.ue();
  const picture = parameters.pictures.get(bits.ue());
  const sequence = picture && parameters.sequences.get(picture.sequence);
  if (!picture || !sequence) throw new SyntaxBroken('names a parameter set that there is not');
  const type = (['P', 'B', 'I'] as const)[typeNumber % 5];
  if (typeNumber > 9 || !type) throw new SyntaxBroken('has a slice type that there is not');
  if (isIdr && type !== 'I') throw new SyntaxBroken('refers to pictures before an IDR picture');
  if (sequence.separatePlanes) bits.skip(2);
  bits.skip(sequence.frameNumBits);
  const isField = !sequence.framesOnly && bits.bit() === 1;
  if (isField) bits.skip(1);
  const size = sequence.width * sequence.height;
  if (firstMacroblock >= (isField || sequence.adaptive ? size / 2 : size)) {
    throw new SyntaxBroken('begins outside of the picture');
  }
  if (isIdr && bits.ue() > 65535) throw new SyntaxBroken('has an idr_pic_id that there is not');
  if (sequence.orderType === 0) {
    bits.skip(sequence.orderBits);
    if (picture.hasOrder && !isField) bits.se();
  } else if (sequence.orderType === 1 && !sequence.orderAlwaysZero) {
    bits.se();
    if (picture.hasOrder && !isField) bits.se();
  }
  if (picture.hasRedundant && bits.ue() > 127)
    throw new SyntaxBroken('has a redundant_pic_cnt that there is not');
  if (type === 'B') bits.skip(1);
  const references: [number, number] = [...picture.references];
  if (type !== 'I' && bits.bit() === 1) {
    references[0] = bits.ue() + 1;
    if (type === 'B') references[1] = bits.ue() + 1;
  }
  if (type !== 'I' && Math.max(references[0], type === 'B' ? references[1] : 0) > 32) {
    throw new SyntaxBroken('has more references than there may be');
  }
  readListChanges(bits, type);
  if ((picture.isWeighted && type === 'P') || (picture.weightedB === 1 && type === 'B')) {
    skipWeights(bits, type === 'B' ? references : [references[0]], sequence.chromaFormat !== 0);
  }
  if (isReference) skipMarking(bits, isIdr);
  const cabacInit = picture.isCabac && type !== 'I' ? bits.ue() : 0;
  if (cabacInit > 2) throw new SyntaxBroken('has a cabac_init_idc that there is not');
  const qp = picture.qp + bits.se();
  if (qp < -6 * (sequence.lumaBits - 8) || qp > 51)
    throw new SyntaxBroken('has a quantizer out of its range');
  if (picture.hasDeblocking) {
    const filter = bits.ue();
    if (filter > 2) throw new SyntaxBroken('has a deblocking filter that there is not');
    if (filter !== 1 && (Math.abs(bits.se()) > 6 || Math.abs(bits.se()) > 6)) {
      throw new SyntaxBroken('has a deblocking offset out of its range');
    }
  }
  return { firstMacroblock, type, sequence, picture, isField, cabacInit, qp, references };
}

function readListChanges(bits: BitReader, type: 'P' | 'B' | 'I'): void {
  for (let list = type === 'I' ? 2 : type === 'P' ? 1 : 0; list < 2; list += 1) {
    if (bits.bit() === 0) continue;
    for (let changes = 0; ; changes += 1) {
      const change = bits.ue();
      if (change === 3) break;
      if (change > 3 || changes > 66) throw new SyntaxBroken('reorders references as can not be');
      bits.ue();
    }
  }
}

function skipWeights(bits: BitReader, references: readonly number[], hasChroma: boolean): void {
  const weigh = (count: number) => {
    for (let index = 0; index < count; index += 1) {
      if (Math.abs(bits.se()) > 128) throw new SyntaxBroken('weighs references out of range');
    }
  };
  if (bits.ue() > 7 || (hasChroma && bits.ue() > 7)) throw new SyntaxBroken('weighs references out of range');
  for (const count of references) {
    for (let index = 0; index < count; index += 1) {
      if (bits.bit() === 1) weigh(2);
      if (hasChroma && bits.bit() === 1) weigh(4);
    }
  }
}

function skipMarking(bits: BitReader, isIdr: boolean): void {
  if (isIdr) {
    bits.skip(2);
    return;
  }
  if (bits.bit() === 0) return;
  for (let count = 0; ; count += 1) {
    const operation = bits.ue();
    if (operation === 0) return;
    if (operation > 6 || count > 66) throw new SyntaxBroken('marks references as can not be');
    if (operation !== 5) bits.ue();
    if (operation === 3) bits.ue();
  }
}
