import { SyntaxBroken } from './bit-reader';

/** ISO/IEC 14496-10 table 9-44, four of each state. */
const LPS_RANGES = new Uint8Array([
  128, 176, 208, 240, 128, 167, 197, 227, 128, 158, 187, 216, 123, 150, 178, 205, 116, 142, 169, 195, 111,
  135, 160, 185, 105, 128, 152, 175, 100, 122, 144, 166, 95, 116, 137, 158, 90, 110, 130, 150, 85, 104, 123,
  142, 81, 99, 117, 135, 77, 94, 111, 128, 73, 89, 105, 122, 69, 85, 100, 116, 66, 80, 95, 110, 62, 76, 90,
  104, 59, 72, 86, 99, 56, 69, 81, 94, 53, 65, 77, 89, 51, 62, 73, 85, 48, 59, 69, 80, 46, 56, 66, 76, 43, 53,
  63, 72, 41, 50, 59, 69, 39, 48, 56, 65, 37, 45, 54, 62, 35, 43, 51, 59, 33, 41, 48, 56, 32, 39, 46, 53, 30,
  37, 43, 50, 29, 35, 41, 48, 27, 33, 39, 45, 26, 31, 37, 43, 24, 30, 35, 41, 23, 28, 33, 39, 22, 27, 32, 37,
  21, 26, 30, 35, 20, 24, 29, 33, 19, 23, 27, 31, 18, 22, 26, 30, 17, 21, 25, 28, 16, 20, 23, 27, 15, 19, 22,
  25, 14, 18, 21, 24, 14, 17, 20, 23, 13, 16, 19, 22, 12, 15, 18, 21, 12, 14, 17, 20, 11, 14, 16, 19, 11, 13,
  15, 18, 10, 12, 15, 17, 10, 12, 14, 16, 9, 11, 13, 15, 9, 11, 12, 14, 8, 10, 12, 14, 8, 9, 11, 13, 7, 9, 11,
  12, 7, 9, 10, 12, 7, 8, 10, 11, 6, 8, 9, 11, 6, 7, 9, 10, 6, 7, 8, 9, 2, 2, 2, 2,
]);

/** The state after a less probable symbol (table 9-45). */
const AFTER_LPS = [
  0, 0, 1, 2, 2, 4, 4, 5, 6, 7, 8, 9, 9, 11, 11, 12, 13, 13, 15, 15, 16, 16, 18, 18, 19, 19, 21, 21, 22, 22,
  23, 24, 24, 25, 26, 26, 27, 27, 28, 29, 29, 30, 30, 30, 31, 32, 32, 33, 33, 33, 34, 34, 35, 35, 35, 36, 36,
  36, 37, 37, 37, 38, 38, 63,
];

/** A state with the more probable symbol as its lowest bit, after either symbol. */
const NEXT_MPS = new Uint8Array(128);
const NEXT_LPS = new Uint8Array(128);
for (let state = 0; state < 64; state += 1) {
  for (let symbol = 0; symbol < 2; symbol += 1) {
    NEXT_MPS[state * 2 + symbol] = (state < 62 ? state + 1 : state) * 2 + symbol;
    NEXT_LPS[state * 2 + symbol] = (AFTER_LPS[state] ?? 0) * 2 + (state === 0 ? 1 - symbol : symbol);
  }
}

/** The arithmetic decoder of ISO/IEC 14496-10 § 9.3, which is that of ISO/IEC 23008-2 § 9.3.4.3 too. */
export class Cabac {
  readonly #states = new Uint8Array(460);
  #at = 0;
  #range = 0;
  /** Nine bits of the offset, and seven that are still to come. */
  #value = 0;
  #needed = 0;

  constructor(private readonly bytes: Uint8Array) {}

  /** `contexts` are m and n of each context, one after the other. */
  initialize(contexts: readonly number[], qp: number): void {
    const clipped = Math.max(0, Math.min(51, qp));
    for (let index = 0; index * 2 < contexts.length; index += 1) {
      const state = (((contexts[2 * index] ?? 0) * clipped) >> 4) + (contexts[2 * index + 1] ?? 0);
      const limited = Math.max(1, Math.min(126, state));
      this.#states[index] = limited <= 63 ? (63 - limited) * 2 : (limited - 64) * 2 + 1;
    }
  }

  copyStates(): Uint8Array {
    return this.#states.slice();
  }

  setStates(states: Uint8Array): void {
    this.#states.set(states);
  }

  /** Begins at a whole byte. */
  start(at: number): void {
    this.#at = at;
    this.#range = 510;
    this.#needed = -8;
    this.#value = (this.#next() << 8) | this.#next();
    if (this.#value >= 510 << 7) throw new SyntaxBroken('begins with a value that CABAC never has');
  }

  /** The number of bits read, from the first byte. */
  get position(): number {
    return this.#at * 8 + 1 + this.#needed;
  }

  #next(): number {
    const at = this.#at;
    this.#at = at + 1;
    const byte = this.bytes[at];
    if (byte !== undefined) return byte;
    if (at > this.bytes.length + 2) throw new SyntaxBroken('goes on beyond its last byte');
    return 0;
  }

  decision(context: number): number {
    const state = this.#states[context] ?? 0;
    const lps = LPS_RANGES[((state >> 1) << 2) | ((this.#range >> 6) & 3)] ?? 2;
    const range = this.#range - lps;
    const scaled = range << 7;
    if (this.#value < scaled) {
      this.#states[context] = NEXT_MPS[state] ?? 0;
      this.#range = range;
      this.#renormalize();
      return state & 1;
    }
    const shift = Math.clz32(lps) - 23;
    this.#value = (this.#value - scaled) << shift;
    this.#range = lps << shift;
    this.#needed += shift;
    if (this.#needed >= 0) {
      this.#value |= this.#next() << this.#needed;
      this.#needed -= 8;
    }
    this.#states[context] = NEXT_LPS[state] ?? 0;
    return (state & 1) ^ 1;
  }

  /** By one bit at most, which is enough after a more probable symbol. */
  #renormalize(): void {
    if (this.#range >= 256) return;
    this.#range <<= 1;
    this.#shift();
  }

  #shift(): void {
    this.#value <<= 1;
    this.#needed += 1;
    if (this.#needed === 0) {
      this.#needed = -8;
      this.#value |= this.#next();
    }
  }

  bypass(): number {
    this.#shift();
    const scaled = this.#range << 7;
    if (this.#value < scaled) return 0;
    this.#value -= scaled;
    return 1;
  }

  /** Up to 24 of them as a number. */
  bypassBits(count: number): number {
    let value = 0;
    for (let left = count; left > 0; left -= 1) value = (value << 1) | this.bypass();
    return value;
  }

  /** After a 1, the last bit read is the stop bit of the slice, or that before the samples of I_PCM (§ 9.3.1.2). */
  terminate(): number {
    this.#range -= 2;
    if (this.#value >= this.#range << 7) return 1;
    this.#renormalize();
    return 0;
  }
}
