import { BANDS, SCALE_FACTOR_CODES, SPECTRAL_CODES } from './aac-tables';
import { BitReader, SyntaxBroken } from './bit-reader';
import { readCode, treeOf } from './code-tree';

/** What frames of AAC are read by. */
export interface AacSetup {
  /** Audio object type: 1 Main, 2 LC, 4 LTP. Others have another syntax. */
  readonly objectType: number;
  /** sampling_frequency_index, 0 to 12. */
  readonly frequency: number;
}

/**
 * Reads an AudioSpecificConfig (ISO/IEC 14496-3 § 1.6.2.1). Undefined where its frames can't be read here: other object
 * types, frames of 960 samples.
 */
export function readAacConfig(config: Buffer): AacSetup | undefined {
  const bits = new BitReader(config);
  try {
    const type = () => {
      const value = bits.bits(5);
      return value === 31 ? 32 + bits.bits(6) : value;
    };
    const frequencyOf = () => {
      const index = bits.bits(4);
      if (index === 15) bits.skip(24);
      return index;
    };
    let objectType = type();
    const frequency = frequencyOf();
    bits.skip(4);
    if (objectType === 5 || objectType === 29) {
      frequencyOf();
      objectType = type();
    }
    const isShort = bits.bit() === 1;
    return [1, 2, 4].includes(objectType) && frequency < BANDS.length && !isShort
      ? { objectType, frequency }
      : undefined;
  } catch (error) {
    if (error instanceof SyntaxBroken) return undefined;
    throw error;
  }
}

/** A frame in its ADTS header (ISO/IEC 13818-7 § 6.2). */
interface AdtsFrame {
  readonly setup: AacSetup;
  /** The whole frame's length. */
  readonly length: number;
  readonly headerLength: number;
  readonly blocks: number;
}

/** Reads an ADTS header; undefined where there is none. */
export function readAdtsHeader(bytes: Buffer, at = 0): AdtsFrame | undefined {
  if (at + 7 > bytes.length || (bytes.readUInt16BE(at) & 0xfff6) !== 0xfff0) return undefined;
  const [, protection = 0, profile = 0, high = 0, middle = 0, low = 0, last = 0] = bytes.subarray(at, at + 7);
  const frequency = (profile >> 2) & 15;
  const length = ((high & 3) << 11) | (middle << 3) | (low >> 5);
  const headerLength = protection & 1 ? 7 : 9;
  if (frequency >= BANDS.length || length < headerLength) return undefined;
  return {
    setup: { objectType: (profile >> 6) + 1, frequency },
    length,
    headerLength,
    blocks: (last & 3) + 1,
  };
}

/**
 * Reads one raw_data_block of AAC with its Huffman codes (ISO/IEC 14496-3 § 4.4.2), without making sound of it. Throws
 * `SyntaxBroken` where it breaks a rule, does not end with its last byte, or has no channel.
 */
export function readAacFrame(frame: Buffer, setup: AacSetup, blocks = 1): void {
  const bits = new BitReader(frame);
  for (let block = 0; block < blocks; block += 1) new FrameReader(bits, setup).read();
  // Some encoders pad with zeros.
  const rest = frame.subarray(bits.position / 8);
  if (rest.some((byte) => byte !== 0)) throw new SyntaxBroken('ends before its last byte');
}

const SHORT_WINDOWS = 2;
const NOISE = 13;
const INTENSITY = [14, 15];

interface Windows {
  readonly isShort: boolean;
  readonly maxBand: number;
  /** The number of windows of each group. */
  readonly groups: readonly number[];
}

class FrameReader {
  readonly #bits: BitReader;
  readonly #setup: AacSetup;

  constructor(bits: BitReader, setup: AacSetup) {
    this.#bits = bits;
    this.#setup = setup;
  }

  read(): void {
    const bits = this.#bits;
    let channels = 0;
    for (let elements = 0; ; elements += 1) {
      if (elements > 64) throw new SyntaxBroken('has more elements than may be');
      const element = bits.bits(3);
      if (element === 7) break;
      if (element === 0 || element === 3) {
        bits.skip(4);
        this.#channel(undefined);
        channels += 1;
      } else if (element === 1) {
        this.#pair();
        channels += 2;
      } else if (element === 4) this.#data();
      else if (element === 5) this.#program();
      else if (element === 6) this.#fill();
      // Coupling channels are of no encoder that streams.
      else throw new SyntaxBroken('has a coupling channel');
    }
    if (channels === 0) throw new SyntaxBroken('has no channel');
    while (bits.position % 8 !== 0) {
      if (bits.bit() === 1) throw new SyntaxBroken('is not padded with zeros');
    }
  }

  #pair(): void {
    const bits = this.#bits;
    bits.skip(4);
    if (bits.bit() === 0) {
      this.#channel(undefined);
      this.#channel(undefined);
      return;
    }
    const windows = this.#windows();
    const mask = bits.bits(2);
    if (mask === 3) throw new SyntaxBroken('has a stereo mask that there is not');
    if (mask === 1) bits.skip(windows.groups.length * windows.maxBand);
    this.#channel(windows);
    this.#channel(windows);
  }

  #data(): void {
    const bits = this.#bits;
    bits.skip(4);
    const isAligned = bits.bit() === 1;
    let count = bits.bits(8);
    if (count === 255) count += bits.bits(8);
    if (isAligned) this.#align();
    bits.skip(8 * count);
  }

  #fill(): void {
    const bits = this.#bits;
    let count = bits.bits(4);
    if (count === 15) count += bits.bits(8) - 1;
    bits.skip(8 * count);
  }

  #program(): void {
    const bits = this.#bits;
    bits.skip(10);
    const [front, side, back] = [bits.bits(4), bits.bits(4), bits.bits(4)];
    const [low, data, coupling] = [bits.bits(2), bits.bits(3), bits.bits(4)];
    if (bits.bit() === 1) bits.skip(4);
    if (bits.bit() === 1) bits.skip(4);
    if (bits.bit() === 1) bits.skip(3);
    bits.skip(5 * (front + side + back + coupling) + 4 * (low + data));
    this.#align();
    bits.skip(8 * bits.bits(8));
  }

  #align(): void {
    this.#bits.skip((8 - (this.#bits.position % 8)) % 8);
  }

  /** ics_info. */
  #windows(): Windows {
    const bits = this.#bits;
    const bands = BANDS[this.#setup.frequency];
    if (bits.bit() === 1) throw new SyntaxBroken('has a reserved bit set');
    const isShort = bits.bits(2) === SHORT_WINDOWS;
    bits.skip(1);
    const maxBand = bits.bits(isShort ? 4 : 6);
    const limit = (isShort ? bands?.short : bands?.long)?.length ?? 0;
    if (maxBand > limit - 1) throw new SyntaxBroken('has more bands than there are');
    const groups = [1];
    if (isShort) {
      const grouping = bits.bits(7);
      for (let bit = 6; bit >= 0; bit -= 1) {
        if ((grouping >> bit) & 1) groups.push((groups.pop() ?? 0) + 1);
        else groups.push(1);
      }
    } else if (bits.bit() === 1) this.#prediction(maxBand);
    return { isShort, maxBand, groups };
  }

  #prediction(maxBand: number): void {
    const bits = this.#bits;
    const { objectType } = this.#setup;
    if (objectType === 1) {
      if (bits.bit() === 1 && bits.bits(5) > 30)
        throw new SyntaxBroken('resets predictors that there are not');
      bits.skip(Math.min(maxBand, 41));
    } else if (objectType === 4) {
      if (bits.bit() === 1) bits.skip(14 + Math.min(maxBand, 40));
    } else throw new SyntaxBroken('predicts, which its object type does not');
  }

  /** individual_channel_stream. */
  #channel(common: Windows | undefined): void {
    const bits = this.#bits;
    const gain = bits.bits(8);
    const windows = common ?? this.#windows();
    const books = this.#sections(windows);
    this.#scaleFactors(gain, books);
    const bands = BANDS[this.#setup.frequency];
    const offsets = (windows.isShort ? bands?.short : bands?.long) ?? [];
    if (bits.bit() === 1) {
      if (windows.isShort) throw new SyntaxBroken('has pulses in short windows');
      const pulses = bits.bits(2) + 1;
      if (bits.bits(6) >= offsets.length - 1)
        throw new SyntaxBroken('has pulses in a band that there is not');
      bits.skip(9 * pulses);
    }
    if (bits.bit() === 1) this.#noiseShaping(windows);
    if (bits.bit() === 1) throw new SyntaxBroken('controls gain, which its object type does not');
    windows.groups.forEach((count, group) => {
      for (let band = 0; band < windows.maxBand; band += 1) {
        const book = books[group * windows.maxBand + band] ?? 0;
        const width = (offsets[band + 1] ?? 0) - (offsets[band] ?? 0);
        if (book > 0 && book < NOISE) this.#spectrum(book, width * count);
      }
    });
  }

  /** section_data: the codebook of each band. */
  #sections({ isShort, maxBand, groups }: Windows): number[] {
    const bits = this.#bits;
    const size = isShort ? 3 : 5;
    const goesOn = (1 << size) - 1;
    const books: number[] = [];
    for (let group = 1; group <= groups.length; group += 1) {
      while (books.length < group * maxBand) {
        const book = bits.bits(4);
        if (book === 12) throw new SyntaxBroken('names a codebook that there is not');
        let length = 0;
        let more = goesOn;
        while (more === goesOn) {
          more = bits.bits(size);
          length += more;
        }
        if (books.length + length > group * maxBand || length === 0) {
          throw new SyntaxBroken('has a section beyond its bands');
        }
        for (let band = 0; band < length; band += 1) books.push(book);
      }
    }
    return books;
  }

  #scaleFactors(gain: number, books: readonly number[]): void {
    const bits = this.#bits;
    let factor = gain;
    let position = 0;
    let noise: number | undefined;
    for (const book of books) {
      if (book === 0) continue;
      if (INTENSITY.includes(book)) {
        position += this.#scaleFactor();
        if (Math.abs(position) > 255) throw new SyntaxBroken('has a scale factor out of its range');
      } else if (book === NOISE) {
        noise = noise === undefined ? bits.bits(9) - 256 : noise + this.#scaleFactor();
      } else {
        factor += this.#scaleFactor();
        if (factor < 0 || factor > 255) throw new SyntaxBroken('has a scale factor out of its range');
      }
    }
  }

  #scaleFactor(): number {
    return readCode(this.#bits, SCALE_FACTORS) - 60;
  }

  #noiseShaping({ isShort }: Windows): void {
    const bits = this.#bits;
    const most = isShort ? 7 : this.#setup.objectType === 1 ? 20 : 12;
    for (let window = 0; window < (isShort ? 8 : 1); window += 1) {
      const filters = bits.bits(isShort ? 1 : 2);
      const resolution = filters > 0 ? bits.bit() + 3 : 0;
      for (let filter = 0; filter < filters; filter += 1) {
        bits.skip(isShort ? 4 : 6);
        const order = bits.bits(isShort ? 3 : 5);
        if (order > most) throw new SyntaxBroken('shapes noise by more coefficients than may be');
        if (order === 0) continue;
        bits.skip(1);
        const isCompressed = bits.bit();
        bits.skip(order * (resolution - isCompressed));
      }
    }
  }

  #spectrum(book: number, count: number): void {
    const bits = this.#bits;
    const codes = SPECTRA[book - 1];
    const values = SPECTRUM_VALUES[book - 1];
    if (!codes || !values) throw new SyntaxBroken('names a codebook that there is not');
    const { dimensions, base, isSigned } = values;
    for (let index = 0; index < count; index += dimensions) {
      let code = readCode(bits, codes);
      if (isSigned) continue;
      let signs = 0;
      let escapes = 0;
      for (let value = 0; value < dimensions; value += 1) {
        const size = code % base;
        code = (code - size) / base;
        if (size > 0) signs += 1;
        if (size === 16) escapes += 1;
      }
      bits.skip(signs);
      if (book === 11) for (; escapes > 0; escapes -= 1) this.#escape();
    }
  }

  #escape(): void {
    let length = 4;
    while (this.#bits.bit() === 1) {
      length += 1;
      if (length > 12) throw new SyntaxBroken('has a value larger than may be');
    }
    this.#bits.skip(length);
  }
}

const SPECTRA = SPECTRAL_CODES.map(treeOf);
const SCALE_FACTORS = treeOf(SCALE_FACTOR_CODES);

/** What the codes of each codebook stand for (table 4.151). */
const SPECTRUM_VALUES = [3, 3, 3, 3, 9, 9, 8, 8, 13, 13, 17].map((base, index) => ({
  base,
  dimensions: index < 4 ? 4 : 2,
  isSigned: [0, 1, 4, 5].includes(index),
}));
