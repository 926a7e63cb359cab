/** Of a packet of a transport stream (ISO/IEC 13818-1 § 2.4.3). */
const PACKET_BYTES = 188;
const SYNC_BYTE = 0x47;
/** As many packets behind one another must begin with the sync byte before a place counts as one between packets. */
const SYNC_PACKETS = 3;

export interface Packet {
  /** Where it begins, in bytes from the beginning of the input. */
  readonly offset: number;
  readonly bytes: Buffer;
}

interface LostBytes {
  readonly offset: number;
  readonly lost: number;
}

/** Cuts a stream of bytes into its packets, and finds back to them behind bytes that are none. */
export class PacketCutter {
  private rest: Buffer = Buffer.alloc(0);
  private offset = 0;
  private inSync = false;
  private lost = 0;

  /** The packets that are whole now, and before each one that follows such bytes, those that are no packet. */
  push(chunk: Buffer): (Packet | LostBytes)[] {
    this.rest = this.rest.length > 0 ? Buffer.concat([this.rest, chunk]) : chunk;
    return this.cut(false);
  }

  /** What is left at the end of the input. */
  end(): (Packet | LostBytes)[] {
    const cut = this.cut(true);
    this.lost += this.rest.length;
    this.offset += this.rest.length;
    this.rest = Buffer.alloc(0);
    return [...cut, ...this.takeLost()];
  }

  private cut(isEnd: boolean): (Packet | LostBytes)[] {
    const found: (Packet | LostBytes)[] = [];
    let at = 0;
    const { rest } = this;
    const needed = isEnd ? PACKET_BYTES : (SYNC_PACKETS - 1) * PACKET_BYTES + 1;
    while (rest.length - at >= PACKET_BYTES) {
      if (this.inSync && rest[at] === SYNC_BYTE) {
        const bytes = rest.subarray(at, at + PACKET_BYTES);
        found.push(...this.takeLost(at), { offset: this.offset + at, bytes });
        at += PACKET_BYTES;
        continue;
      }
      this.inSync = false;
      if (rest.length - at < needed) break;
      if (isPacketAt(rest, at)) {
        this.inSync = true;
      } else {
        const next = rest.indexOf(SYNC_BYTE, at + 1);
        const skipped = (next < 0 ? rest.length : next) - at;
        this.lost += skipped;
        at += skipped;
      }
    }
    this.offset += at;
    this.rest = rest.subarray(at);
    return found;
  }

  private takeLost(at = 0): LostBytes[] {
    if (this.lost === 0) return [];
    const { lost } = this;
    this.lost = 0;
    return [{ offset: this.offset + at - lost, lost }];
  }
}

/** Whether packets begin here, as far as there are bytes. */
function isPacketAt(bytes: Buffer, at: number): boolean {
  for (let packet = 0; packet < SYNC_PACKETS; packet += 1) {
    const place = at + packet * PACKET_BYTES;
    if (place < bytes.length && bytes[place] !== SYNC_BYTE) return false;
  }
  return true;
}

export const pidOf = (packet: Buffer): number => packet.readUInt16BE(1) & 0x1fff;

/** Whether a section or a packet of an elementary stream (PES) begins in its payload. */
export const beginsUnit = (packet: Buffer): boolean => ((packet[1] ?? 0) & 0x40) !== 0;

export function payloadOf(packet: Buffer): Buffer {
  const control = ((packet[3] ?? 0) >> 4) & 3;
  if ((control & 1) === 0) return packet.subarray(PACKET_BYTES);
  const start = control === 3 ? 5 + (packet[4] ?? 0) : 4;
  return packet.subarray(Math.min(start, PACKET_BYTES));
}

/** Gathers the packets of a table until one of its sections is whole. */
export class SectionReader {
  private packets: Packet[] = [];
  private bytes: Buffer = Buffer.alloc(0);

  /** The section that this packet completes, with the packets that it came in. */
  push(packet: Packet): { section: Buffer; packets: readonly Packet[] } | undefined {
    const payload = payloadOf(packet.bytes);
    if (beginsUnit(packet.bytes)) {
      this.packets = [packet];
      // The pointer field tells how much of a former section goes before.
      this.bytes = payload.subarray(1 + (payload[0] ?? 0));
    } else if (this.packets.length > 0) {
      this.packets.push(packet);
      this.bytes = Buffer.concat([this.bytes, payload]);
    } else {
      return undefined;
    }
    if (this.bytes.length < 3) return undefined;
    const length = 3 + (this.bytes.readUInt16BE(1) & 0x0fff);
    if (this.bytes.length < length) return undefined;
    const { packets, bytes } = this;
    this.packets = [];
    return { section: bytes.subarray(0, length), packets };
  }
}

/** An elementary stream that the program map table lists. */
export interface ProgramStream {
  readonly pid: number;
  readonly kind: 'video' | 'audio' | 'other';
  /** `H.264` and `AAC` are the ones that are packaged. */
  readonly codec: string;
}

/** Of the program association table, the PID of the map of its first program. */
export function readAssociation(section: Buffer): number | undefined {
  if (section[0] !== 0) return undefined;
  for (let at = 8; at + 4 <= section.length - 4; at += 4) {
    // Program 0 stands for the network.
    if (section.readUInt16BE(at) !== 0) return section.readUInt16BE(at + 2) & 0x1fff;
  }
  return undefined;
}

/** Of the program map table, the streams. */
export function readProgramMap(section: Buffer): ProgramStream[] | undefined {
  const isPresent = ((section[5] ?? 0) & 1) === 1;
  if (section[0] !== 2 || !isPresent || section.length < 16) return undefined;
  const streams: ProgramStream[] = [];
  const end = section.length - 4;
  let at = 12 + (section.readUInt16BE(10) & 0x0fff);
  while (at + 5 <= end) {
    const length = section.readUInt16BE(at + 3) & 0x0fff;
    const descriptors = section.subarray(at + 5, Math.min(at + 5 + length, end));
    streams.push({ pid: section.readUInt16BE(at + 1) & 0x1fff, ...codecOf(section[at] ?? 0, descriptors) });
    at += 5 + length;
  }
  return streams;
}

type Codec = Omit<ProgramStream, 'pid'>;

const video = (codec: string): Codec => ({ kind: 'video', codec });
const audio = (codec: string): Codec => ({ kind: 'audio', codec });

/** Stream types (ISO/IEC 13818-1 table 2-34, and those of ATSC). */
const CODECS: ReadonlyMap<number, Codec> = new Map([
  [0x01, video('MPEG-1 video')],
  [0x02, video('MPEG-2 video')],
  [0x03, audio('MPEG-1 audio')],
  [0x04, audio('MPEG-2 audio')],
  [0x0f, audio('AAC')],
  [0x10, video('MPEG-4 part 2')],
  [0x11, audio('AAC in LATM')],
  [0x1b, video('H.264')],
  [0x24, video('H.265')],
  [0x33, video('H.266')],
  [0x42, video('AVS')],
  [0x81, audio('AC-3')],
  [0x82, audio('DTS')],
  [0x87, audio('E-AC-3')],
  [0xdb, video('H.264 under SAMPLE-AES')],
  [0xcf, audio('AAC under SAMPLE-AES')],
]);

/** By the format identifier of a registration descriptor, for private data. */
const REGISTERED: ReadonlyMap<string, Codec> = new Map([
  ['Opus', audio('Opus')],
  ['HEVC', video('H.265')],
  ['AV01', video('AV1')],
  ['VP09', video('VP9')],
  ['AC-3', audio('AC-3')],
  ['EAC3', audio('E-AC-3')],
]);
const PRIVATE_DATA = 0x06;
const REGISTRATION = 0x05;
const DVB: ReadonlyMap<number, Codec> = new Map([
  [0x6a, audio('AC-3')],
  [0x7a, audio('E-AC-3')],
]);

function codecOf(type: number, descriptors: Buffer): Codec {
  const known = CODECS.get(type);
  if (known) return known;
  for (
    let at = 0;
    type === PRIVATE_DATA && at + 2 <= descriptors.length;
    at += 2 + (descriptors[at + 1] ?? 0)
  ) {
    const tag = descriptors[at] ?? 0;
    const format = descriptors.toString('latin1', at + 2, at + 6);
    const codec = tag === REGISTRATION ? REGISTERED.get(format) : DVB.get(tag);
    if (codec) return codec;
  }
  return { kind: 'other', codec: `stream type 0x${type.toString(16).padStart(2, '0')}` };
}
