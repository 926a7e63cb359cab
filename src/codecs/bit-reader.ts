/** Thrown by the readers of a syntax for impossible input. */
export class SyntaxBroken extends Error {}

/** Reads bits, the most significant first. Beyond the end it is broken. */
export class BitReader {
  /** In bits from the start. */
  position = 0;
  readonly length: number;

  constructor(private readonly bytes: Uint8Array) {
    this.length = bytes.length * 8;
  }

  bit(): number {
    const at = this.position;
    if (at >= this.length) throw new SyntaxBroken('ended');
    this.position = at + 1;
    return ((this.bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1;
  }

  skip(count: number): void {
    this.position += count;
    if (this.position > this.length) throw new SyntaxBroken('ended');
  }

  bits(count: number): number {
    let value = 0;
    for (let left = count; left > 0; left -= 1) value = value * 2 + this.bit();
    return value;
  }

  /** An unsigned Exp-Golomb code (ISO/IEC 14496-10 § 9.1). */
  ue(): number {
    let zeros = 0;
    while (this.bit() === 0) {
      zeros += 1;
      if (zeros > 31) throw new SyntaxBroken('code too long');
    }
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  se(): number {
    const code = this.ue();
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
  }

  /** Where the last 1 is, which ends an RBSP; -1 without any. */
  get stop(): number {
    let last = this.bytes.length - 1;
    while (last >= 0 && this.bytes[last] === 0) last -= 1;
    const byte = this.bytes[last] ?? 0;
    return last < 0 ? -1 : last * 8 + 7 - Math.log2(byte & -byte);
  }
}

/** The payload of a NAL unit: emulation prevention bytes are removed (ISO/IEC 14496-10 § 7.4.1). */
export function rbspOf(nal: Buffer): Buffer {
  let found = nal.indexOf(EMULATION);
  if (found < 0) return nal;
  const bytes = Buffer.alloc(nal.length);
  let from = 0;
  let length = 0;
  while (found >= 0) {
    length += nal.copy(bytes, length, from, found + 2);
    from = found + 3;
    found = nal.indexOf(EMULATION, from);
  }
  length += nal.copy(bytes, length, from);
  return bytes.subarray(0, length);
}

const EMULATION = Buffer.from([0, 0, 3]);
