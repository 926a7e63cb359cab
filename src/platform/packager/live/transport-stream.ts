export interface ProgramStream {
  readonly pid: number;
  /** `media` is video or audio for whose codec a transport stream has no name. */
  readonly kind: 'video' | 'audio' | 'media';
  /** `H.264` and `AAC` are the ones that are packaged. */
  readonly codec: string;
}

/** Of a packet of a transport stream (ISO/IEC 13818-1 § 2.4.3). */
const PACKET_BYTES = 188;

/** Divides a transport stream that begins with a whole packet, as ffmpeg writes it, into packets. */
export class PacketReader {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Buffer[] {
    const bytes = Buffer.concat([this.#rest, chunk]);
    const count = Math.floor(bytes.length / PACKET_BYTES);
    this.#rest = bytes.subarray(count * PACKET_BYTES);
    return Array.from({ length: count }, (_, index) =>
      bytes.subarray(index * PACKET_BYTES, (index + 1) * PACKET_BYTES),
    );
  }
}

/** The streams of the first program, each table in one packet; undefined until the program map has come. */
export function readProgramMap(packets: readonly Buffer[]): ProgramStream[] | undefined {
  let mapPid: number | undefined;
  for (const packet of packets) {
    const pid = pidOf(packet);
    if (pid !== 0 && pid !== mapPid) continue;
    const section = sectionOf(packet);
    if (pid === 0) mapPid = readAssociation(section);
    else return readStreams(section);
  }
  return undefined;
}

const pidOf = (packet: Buffer): number => packet.readUInt16BE(1) & 0x1fff;

const beginsUnit = (packet: Buffer): boolean => ((packet[1] ?? 0) & 0x40) !== 0;

/** Whether decoding can begin at a packet, as its multiplexer says. */
function isRandomAccess(packet: Buffer): boolean {
  return ((packet[3] ?? 0) & 0x20) !== 0 && (packet[4] ?? 0) > 0 && ((packet[5] ?? 0) & 0x40) !== 0;
}

function payloadOf(packet: Buffer): Buffer {
  const hasAdaptation = ((packet[3] ?? 0) & 0x20) !== 0;
  return packet.subarray(hasAdaptation ? 5 + (packet[4] ?? 0) : 4);
}

function sectionOf(packet: Buffer): Buffer {
  const payload = payloadOf(packet);
  // The pointer field says how much of a former section goes before.
  const section = payload.subarray(1 + (payload[0] ?? 0));
  return section.length < 3 ? section : section.subarray(0, 3 + (section.readUInt16BE(1) & 0x0fff));
}

/** Of the program association table, the PID of the map of its first program. */
function readAssociation(section: Buffer): number | undefined {
  for (let at = 8; at + 4 <= section.length - 4; at += 4) {
    // Program 0 is the network.
    if (section.readUInt16BE(at) !== 0) return section.readUInt16BE(at + 2) & 0x1fff;
  }
  return undefined;
}

function readStreams(section: Buffer): ProgramStream[] {
  const streams: ProgramStream[] = [];
  const end = section.length - 4;
  let at = end < 12 ? end : 12 + (section.readUInt16BE(10) & 0x0fff);
  while (at + 5 <= end) {
    const length = section.readUInt16BE(at + 3) & 0x0fff;
    const descriptors = section.subarray(at + 5, Math.min(at + 5 + length, end));
    const pid = section.readUInt16BE(at + 1) & 0x1fff;
    streams.push({ pid, ...codecOf(section[at] ?? 0, descriptors) });
    at += 5 + length;
  }
  return streams;
}

type Codec = Omit<ProgramStream, 'pid'>;

const video = (codec: string): Codec => ({ kind: 'video', codec });
const audio = (codec: string): Codec => ({ kind: 'audio', codec });

/** Stream types (ISO/IEC 13818-1 table 2-34, and those of ATSC) that ffmpeg can take from RTMP. */
const CODECS: ReadonlyMap<number, Codec> = new Map([
  [0x03, audio('MPEG-1 audio')],
  [0x04, audio('MPEG-2 audio')],
  [0x0f, audio('AAC')],
  [0x1b, video('H.264')],
  [0x24, video('H.265')],
  [0x81, audio('AC-3')],
  [0x87, audio('E-AC-3')],
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

function codecOf(type: number, descriptors: Buffer): Codec {
  const known = CODECS.get(type);
  if (known) return known;
  for (
    let at = 0;
    type === PRIVATE_DATA && at + 2 <= descriptors.length;
    at += 2 + (descriptors[at + 1] ?? 0)
  ) {
    const format = descriptors.toString('latin1', at + 2, at + 6);
    const codec = descriptors[at] === REGISTRATION ? REGISTERED.get(format) : undefined;
    if (codec) return codec;
  }
  return { kind: 'media', codec: `stream type 0x${type.toString(16).padStart(2, '0')}` };
}

/** Steps of a decoding time, in units of 1/90,000 s, that no pause of an encoder explains. */
const JUMP_FORWARD = 10 * 90_000;
const JUMP_BACKWARD = -90_000;
/**
 * Where the times of a stream go back, ffmpeg writes the last one plus one unit for each picture, until they
 * are beyond it again. A smaller step than this millisecond shows that: RTMP has no finer times.
 */
const HELD_STEP = 90;
/** So many pictures in a row; those of one moment may be a few. */
const HELD_PICTURES = 10;
const WRAP = 2 ** 33;
const START_CODE = Buffer.from([0, 0, 1]);
const SEQUENCE_PARAMETER_SET = 7;
/** Bytes of a unit to search for the parameters of its picture: an encoder's own data may precede them. */
const SEARCHED_BYTES = 4096;

/** Watches one elementary stream for changes that end a part: other parameters of the picture, or a jump of time. */
export class ChangeWatch {
  readonly #pid: number;
  #unit: Buffer | undefined;
  #dts: number | undefined;
  #held = 0;
  #parameters: Buffer | undefined;

  constructor(streams: readonly ProgramStream[]) {
    this.#pid = (streams.find(({ kind }) => kind === 'video') ?? streams[0])?.pid ?? 0;
  }

  /** Returns whether the stream has changed in these packets. */
  push(packets: readonly Buffer[]): boolean {
    for (const packet of packets) {
      if (pidOf(packet) !== this.#pid) continue;
      const isBeginning = beginsUnit(packet);
      if (isBeginning && this.#hasJumped(payloadOf(packet))) return true;
      if (isBeginning) this.#unit = payloadOf(packet);
      else if (this.#unit) this.#unit = Buffer.concat([this.#unit, payloadOf(packet)]);
      if (this.#unit && this.#hasOtherParameters(this.#unit)) return true;
    }
    return false;
  }

  #hasJumped(pes: Buffer): boolean {
    const dts = decodingTimeOf(pes);
    const before = this.#dts;
    this.#dts = dts ?? before;
    if (dts === undefined || before === undefined) return false;
    const step = stepOf(before, dts);
    this.#held = step < HELD_STEP ? this.#held + 1 : 0;
    return step > JUMP_FORWARD || step < JUMP_BACKWARD || this.#held > HELD_PICTURES;
  }

  /** The parameters go before the first slice of a picture (ISO/IEC 14496-10 annex B). */
  #hasOtherParameters(unit: Buffer): boolean {
    let start = -1;
    for (let at = unit.indexOf(START_CODE); at >= 0; at = unit.indexOf(START_CODE, at + 3)) {
      const type = (unit[at + 3] ?? 0) & 0x1f;
      if (start >= 0 || (type >= 1 && type <= 5)) {
        this.#unit = undefined;
        if (start < 0) return false;
        const known = this.#parameters;
        this.#parameters = Buffer.from(unit.subarray(start, at));
        return known !== undefined && !known.equals(this.#parameters);
      }
      if (type === SEQUENCE_PARAMETER_SET) start = at;
    }
    if (unit.length > SEARCHED_BYTES) this.#unit = undefined;
    return false;
  }
}

/** From one time of 33 bits to another, which may be the earlier one. */
function stepOf(from: number, to: number): number {
  const ahead = (to - from + WRAP) % WRAP;
  return ahead < WRAP / 2 ? ahead : ahead - WRAP;
}

const PTS_AT = 9;
const DTS_AT = 14;

/** The 33 bits of a PES packet's DTS, or of its PTS where that is the same. */
function decodingTimeOf(pes: Buffer): number | undefined {
  return timeAt(pes, ((pes[7] ?? 0) & 0x40) !== 0 ? DTS_AT : PTS_AT);
}

function timeAt(pes: Buffer, at: number): number | undefined {
  if (((pes[7] ?? 0) & 0x80) === 0 || pes.length < at + 5) return undefined;
  const high = ((pes[at] ?? 0) >> 1) & 7;
  return high * 2 ** 30 + (pes.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (pes.readUInt16BE(at + 3) >> 1);
}

/** `next` makes the next part the present one; after `end_of_former`, nothing comes for the one before. */
interface CutStep {
  readonly to: 'former' | 'present' | 'next' | 'end_of_former';
  readonly bytes: Buffer;
}

/**
 * Cuts a transport stream of ffmpeg at key frames, so that each frame is in exactly one part: pictures from
 * the key frame on are in the next one, as is the sound that is heard with them, wherever it is multiplexed.
 */
export class StreamCutter {
  readonly #video: number | undefined;
  readonly #audio: number | undefined;
  /** The newest packet of each table: a part starts with them. */
  readonly #tables = new Map<number, Buffer>();
  /** When the present part begins, while sound of the part before may come. */
  #cutAt: number | undefined;
  #isSoundOfFormer = false;
  #hasSound = false;

  constructor(streams: readonly ProgramStream[]) {
    const pidOfFirst = (kind: ProgramStream['kind']) => streams.find((stream) => stream.kind === kind)?.pid;
    this.#video = pidOfFirst('video');
    this.#audio = pidOfFirst('audio');
  }

  get isMissingSound(): boolean {
    return this.#video !== undefined && this.#audio !== undefined && !this.#hasSound;
  }

  /** @param isDue asked at each key frame whether the next part begins with it. */
  push(packets: readonly Buffer[], isDue: () => boolean): CutStep[] {
    const steps: { readonly to: CutStep['to']; readonly packets: Buffer[] }[] = [];
    const add = (to: CutStep['to'], ...more: Buffer[]) => {
      const last = steps.at(-1);
      if (last?.to === to) last.packets.push(...more);
      else steps.push({ to, packets: more });
    };
    const endFormer = () => {
      if (this.#cutAt === undefined) return;
      this.#cutAt = undefined;
      this.#isSoundOfFormer = false;
      add('end_of_former');
    };
    for (const packet of packets) {
      const pid = pidOf(packet);
      const isSound = pid === this.#audio;
      this.#hasSound ||= isSound;
      if (!isSound && pid !== this.#video) this.#tables.set(pid, Buffer.from(packet));
      const time = beginsUnit(packet) ? timeAt(payloadOf(packet), PTS_AT) : undefined;
      const isKeyFrame = this.#video === undefined ? isSound : !isSound && isRandomAccess(packet);
      if (time !== undefined && isKeyFrame) {
        // One key frame on, no sound of the part before is to be expected.
        endFormer();
        if (isDue()) {
          add('next');
          add('present', ...this.#tables.values());
          this.#cutAt = time;
          if (this.#video === undefined || this.#audio === undefined) endFormer();
        }
      } else if (time !== undefined && isSound && this.#cutAt !== undefined) {
        this.#isSoundOfFormer = stepOf(this.#cutAt, time) < 0;
        if (!this.#isSoundOfFormer) endFormer();
      }
      add(isSound && this.#isSoundOfFormer ? 'former' : 'present', packet);
    }
    return steps.map(({ to, packets: bytes }) => ({ to, bytes: Buffer.concat(bytes) }));
  }
}
