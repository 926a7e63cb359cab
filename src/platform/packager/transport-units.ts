import type { ProgramStream } from './transport-packets';

/** As much of a unit is searched for its parameters. */
const MAX_SEARCHED = 256 * 1024;

/** Up to this length it is looked at with each packet; then only when it has grown by half, or its time would be square. */
const ALWAYS_SEARCHED = 8 * 184;

/** The beginning of a PES packet, as far as it has come. */
export class Unit {
  readonly stream: ProgramStream;
  isWhole = false;
  #pieces: Buffer[];
  #length: number;
  #searchedFrom = 0;

  constructor(stream: ProgramStream, bytes: Buffer) {
    this.stream = stream;
    this.#pieces = [bytes];
    this.#length = bytes.length;
  }

  add(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#length += bytes.length;
  }

  get bytes(): Buffer {
    const [first = Buffer.alloc(0), ...others] = this.#pieces;
    if (others.length === 0) return first;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }

  /** Whether all that is read of it has come, as far as has been looked. */
  get isReadable(): boolean {
    if (this.isWhole || this.#length >= MAX_SEARCHED) return true;
    if (this.#length < this.#searchedFrom) return false;
    this.#searchedFrom = this.#length < ALWAYS_SEARCHED ? this.#length + 1 : this.#length * 1.5;
    return hasAllThatIsRead(this.stream, this.bytes);
  }
}

/** What is read of the beginning of a PES packet. */
export interface ReadUnit {
  /** Of 33 bits. */
  readonly pts: number | undefined;
  readonly dts: number | undefined;
  /** What a decoder must be set up with, if the unit brings it; a change of it makes another byte string. */
  readonly parameters: Buffer | undefined;
}

const PES_HEADER_BYTES = 9;

/** Where the payload of a PES packet begins; undefined while its header is not whole. */
function payloadStart(pes: Buffer): number | undefined {
  if (pes.length < PES_HEADER_BYTES) return undefined;
  const start = PES_HEADER_BYTES + (pes[8] ?? 0);
  return pes.length < start ? undefined : start;
}

function hasAllThatIsRead(stream: ProgramStream, bytes: Buffer): boolean {
  const start = payloadStart(bytes);
  if (start === undefined) return false;
  const payload = bytes.subarray(start);
  if (stream.codec === 'H.264') return readNalUnits(payload).hasSlice;
  return stream.codec !== 'AAC' || payload.length >= ADTS_BYTES;
}

/** Its times, and what a decoder needs for it. */
export function readUnit({ stream, bytes }: Unit): ReadUnit {
  const start = payloadStart(bytes);
  if (start === undefined || bytes.readUIntBE(0, 3) !== 1) {
    return { pts: undefined, dts: undefined, parameters: undefined };
  }
  const flags = bytes[7] ?? 0;
  const pts = (flags & 0x80) !== 0 && start >= 14 ? readTime(bytes, 9) : undefined;
  const dts = (flags & 0x40) !== 0 && start >= 19 ? readTime(bytes, 14) : pts;
  const payload = bytes.subarray(start);
  if (stream.codec === 'H.264') return { pts, dts, parameters: readNalUnits(payload).parameters };
  return { pts, dts, parameters: stream.codec === 'AAC' ? readAdts(payload) : undefined };
}

/** The 33 bits of a time stamp, among their marker bits. */
function readTime(bytes: Buffer, at: number): number {
  const high = ((bytes[at] ?? 0) >> 1) & 7;
  return high * 2 ** 30 + (bytes.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (bytes.readUInt16BE(at + 3) >> 1);
}

const ADTS_BYTES = 4;

/** Profile, sampling frequency and channels of an ADTS header. */
function readAdts(payload: Buffer): Buffer | undefined {
  if (payload.length < ADTS_BYTES || (payload.readUInt16BE(0) & 0xfff6) !== 0xfff0) return undefined;
  return Buffer.from([(payload[2] ?? 0) & 0xfd, (payload[3] ?? 0) & 0xc0]);
}

const SLICES = { first: 1, last: 5 };
const SEQUENCE_PARAMETER_SET = 7;
const PICTURE_PARAMETER_SET = 8;

/** Of a picture in byte stream form (ISO/IEC 14496-10 annex B), its parameter sets if it brings them. */
function readNalUnits(payload: Buffer): { hasSlice: boolean; parameters: Buffer | undefined } {
  const sets: Buffer[] = [];
  let hasSequence = false;
  let begun: { at: number; type: number } | undefined;
  const finish = (end: number) => {
    if (begun?.type !== SEQUENCE_PARAMETER_SET && begun?.type !== PICTURE_PARAMETER_SET) return;
    hasSequence ||= begun.type === SEQUENCE_PARAMETER_SET;
    let last = end;
    while (last > begun.at && payload[last - 1] === 0) last -= 1;
    sets.push(Buffer.from([0, 0, 1]), payload.subarray(begun.at, last));
  };
  const parameters = () => (hasSequence ? Buffer.concat(sets) : undefined);
  for (let at = payload.indexOf(START_CODE); at >= 0; at = payload.indexOf(START_CODE, at + 3)) {
    finish(at);
    const header = payload[at + 3];
    if (header === undefined) return { hasSlice: false, parameters: parameters() };
    begun = { at: at + 3, type: header & 0x1f };
    if (begun.type >= SLICES.first && begun.type <= SLICES.last) {
      return { hasSlice: true, parameters: parameters() };
    }
  }
  finish(payload.length);
  return { hasSlice: false, parameters: parameters() };
}

const START_CODE = Buffer.from([0, 0, 1]);
