import {
  beginsUnit,
  type Packet,
  PacketCutter,
  type ProgramStream,
  payloadOf,
  pidOf,
  readAssociation,
  readProgramMap,
  SectionReader,
} from './transport-packets';
import { type ReadUnit, readUnit, Unit } from './transport-units';

/** Why a new part must begin. */
type PartReason = 'jump' | 'parameters' | 'streams';

/** What an inspector tells; offsets count bytes from the beginning of the input. */
export type TransportStreamEvent =
  /** Whole packets that belong to the present part, in their order. */
  | { readonly kind: 'packets'; readonly bytes: Buffer }
  /** The table of streams was read, for the first time or with other streams. */
  | { readonly kind: 'program'; readonly offset: number; readonly streams: readonly ProgramStream[] }
  /** What follows belongs to a new part; it must be given `tables` (the packets of PAT and PMT) first. */
  | {
      readonly kind: 'part';
      readonly offset: number;
      readonly reason: PartReason;
      /** For the log: what changed, and how. */
      readonly description: string;
      readonly tables: Buffer;
    }
  /** Bytes were left out: no packets, of the time before a jump, or ahead of a part's first key frame. */
  | {
      readonly kind: 'dropped';
      readonly offset: number;
      readonly bytes: number;
      readonly reason: 'no_sync' | 'late' | 'no_key_frame';
    };

/** Times of a stream in the present part, in units of 1/90000 s, without the wrap at 33 bits. */
interface StreamTimes {
  readonly firstPts: number;
  readonly lastPts: number;
  readonly firstDts: number;
  readonly lastDts: number;
}

const CLOCK = 90_000;
const WRAP = 2 ** 33;
const JUMP_FORWARD = 10 * CLOCK;
const JUMP_BACKWARD = -1 * CLOCK;
/** So long, by the time of the stream that jumped, the others may go on before their jump. */
const LATE = 5 * CLOCK;
/** A new part waits so long for a key frame, by the time of any stream. */
const LONGEST_WAIT = 10 * CLOCK;
/** Further back than this nothing is held. */
const MAX_HELD_PACKETS = 8192;

/** A packet that is not yet known to belong to the present part or to a new one. */
interface Held extends Packet {
  readonly pid: number;
  /** Of the packet in which one begins. */
  readonly unit: Unit | undefined;
}

/** The part that began with a jump, while other streams have not jumped yet. */
interface Jump {
  readonly by: number;
  readonly from: number;
  readonly pid: number;
  /** The streams that have come in the new time. */
  readonly settled: Set<number>;
}

/**
 * Reads a transport stream beside its way to a packager: tells its streams and times, and where a new part must begin,
 * because a packager takes one continuous time and one set of parameters. Packets are held back until it is known to
 * which part they belong, which is known with the first packets of the next picture. How the input is cut into chunks
 * makes no difference.
 */
export class TransportStreamInspector {
  private readonly cutter = new PacketCutter();
  private readonly association = new SectionReader();
  private map = new SectionReader();
  private mapPid: number | undefined;
  private associationPackets: readonly Packet[] = [];
  private mapPackets: readonly Packet[] = [];
  private program: readonly ProgramStream[] | undefined;
  private held: Held[] = [];
  /** The unit of each stream that may go on. */
  private readonly open = new Map<number, Unit>();
  private readonly times = new Map<number, StreamTimes>();
  /** The last decoding time of each stream, over the parts. */
  private readonly clocks = new Map<number, number>();
  private readonly parameters = new Map<number, Buffer>();
  private jump: Jump | undefined;
  /** When each stream began in a part that waits for its first key frame; undefined once it has one. */
  private waiting: Map<number, number> | undefined;
  /** Streams whose packets are left out for now. */
  private readonly late = new Set<number>();
  private events: TransportStreamEvent[] = [];

  /** The streams of the program; undefined until its table has come. */
  get streams(): readonly ProgramStream[] | undefined {
    return this.program;
  }

  /** Undefined if nothing of the stream has come in the present part. */
  timesOf(pid: number): StreamTimes | undefined {
    return this.times.get(pid);
  }

  /** Takes any piece of the input. */
  push(chunk: Buffer): TransportStreamEvent[] {
    for (const cut of this.cutter.push(chunk)) this.take(cut);
    return this.takeEvents();
  }

  /** Tells the rest, at the end of the input. */
  end(): TransportStreamEvent[] {
    for (const cut of this.cutter.end()) this.take(cut);
    this.finishUnits();
    this.decide();
    return this.takeEvents();
  }

  private takeEvents(): TransportStreamEvent[] {
    const { events } = this;
    this.events = [];
    return merged(events);
  }

  private finishUnits(): void {
    for (const unit of this.open.values()) unit.isWhole = true;
    this.open.clear();
  }

  private take(cut: Packet | { offset: number; lost: number }): void {
    if ('lost' in cut) {
      this.finishUnits();
      this.decide();
      this.events.push({ kind: 'dropped', offset: cut.offset, bytes: cut.lost, reason: 'no_sync' });
      return;
    }
    const pid = pidOf(cut.bytes);
    const stream = this.program?.find((each) => each.pid === pid);
    const unit = stream ? this.takeUnit(stream, cut.bytes) : undefined;
    this.held.push({ ...cut, pid, unit });
    if (pid === 0) this.takeAssociation(cut);
    else if (pid === this.mapPid) this.takeMap(cut);
    this.decide();
  }

  /** Answers the unit that begins in the packet. */
  private takeUnit(stream: ProgramStream, packet: Buffer): Unit | undefined {
    const open = this.open.get(stream.pid);
    const payload = payloadOf(packet);
    if (beginsUnit(packet)) {
      if (open) open.isWhole = true;
      const unit = new Unit(stream, payload);
      this.open.set(stream.pid, unit);
      return unit;
    }
    if (open && !open.isWhole) open.add(payload);
    return undefined;
  }

  private takeAssociation(packet: Packet): void {
    const read = this.association.push(packet);
    const pid = read && readAssociation(read.section);
    if (!read || pid === undefined) return;
    this.associationPackets = read.packets;
    if (pid !== this.mapPid) this.map = new SectionReader();
    this.mapPid = pid;
  }

  private takeMap(packet: Packet): void {
    const read = this.map.push(packet);
    const streams = read && readProgramMap(read.section);
    if (!read || !streams) return;
    this.mapPackets = read.packets;
    const known = this.program;
    if (known && JSON.stringify(known) === JSON.stringify(streams)) return;
    const offset = read.packets[0]?.offset ?? packet.offset;
    // Whatever was before is decided: another table ends each unit of the old one.
    this.finishUnits();
    this.decide(offset);
    this.release(offset);
    this.program = streams;
    if (known) {
      const names = streams.map(({ codec }) => codec).join(', ') || 'none';
      this.begin(offset, 'streams', `the streams are now ${names}`);
      this.clocks.clear();
      this.jump = undefined;
    }
    this.parameters.clear();
    this.late.clear();
    this.events.push({ kind: 'program', offset, streams });
  }

  /** Judges the held units in their order, and lets go what is known to belong to the part. */
  private decide(before = Number.POSITIVE_INFINITY): void {
    for (;;) {
      const index = this.held.findIndex(({ unit, offset }) => unit !== undefined && offset < before);
      const next = index < 0 ? undefined : this.held[index];
      if (!next?.unit) break;
      const isReady = this.held.length > MAX_HELD_PACKETS || next.unit.isReadable;
      this.release(next.offset);
      if (!isReady) return;
      this.judge(next, next.unit);
      next.unit.isWhole = true;
      const [first, ...others] = this.held;
      if (first) this.held = [{ ...first, unit: undefined }, ...others];
    }
    if (before === Number.POSITIVE_INFINITY) this.release();
  }

  private judge({ offset, pid }: Held, unit: Unit): void {
    const read = readUnit(unit);
    const known = this.parameters.get(pid);
    const isChanged = known !== undefined && read.parameters !== undefined && !known.equals(read.parameters);
    const parameters = isChanged ? `the parameters of ${unit.stream.codec} changed` : undefined;
    const jump = read.dts === undefined ? undefined : this.moveClock(pid, read.dts);
    if (this.late.has(pid)) return;
    if (jump !== undefined) {
      const seconds = (jump / CLOCK).toFixed(3);
      this.begin(offset, 'jump', `the time of ${unit.stream.codec} jumped by ${seconds} s`);
      this.parameters.clear();
    } else if (parameters !== undefined) {
      this.begin(offset, 'parameters', parameters);
      this.parameters.clear();
    }
    if (this.waiting) this.wait(this.waiting, unit, read);
    if (this.waiting) return;
    if (read.parameters !== undefined) this.parameters.set(pid, read.parameters);
    if (read.dts !== undefined && read.pts !== undefined) this.note(pid, read.dts, read.pts);
  }

  /** A packager leaves out pictures up to the first key frame; so sound ahead of it would have none beside it. */
  private wait(waiting: Map<number, number>, { stream }: Unit, { dts, parameters }: ReadUnit): void {
    const from = dts === undefined ? undefined : (waiting.get(stream.pid) ?? dts);
    if (from !== undefined) waiting.set(stream.pid, from);
    const isKeyFrame = stream.codec === 'H.264' && parameters !== undefined;
    const isTooLong = from !== undefined && dts !== undefined && difference(dts, from) > LONGEST_WAIT;
    if (isKeyFrame || isTooLong) this.waiting = undefined;
  }

  /** Follows the clock of a stream; answers by how much it jumped if a new part must begin. */
  private moveClock(pid: number, dts: number): number | undefined {
    const last = this.clocks.get(pid);
    if (last === undefined) {
      this.clocks.set(pid, dts);
      this.jump?.settled.add(pid);
      return undefined;
    }
    const step = difference(dts, last);
    const { jump } = this;
    if (jump && !jump.settled.has(pid)) {
      const passed = difference(this.clocks.get(jump.pid) ?? jump.from, jump.from);
      const isLate = Math.abs(step) < Math.abs(step - jump.by) && passed < LATE;
      this.clocks.set(pid, last + step);
      if (isLate) {
        this.late.add(pid);
      } else {
        this.late.delete(pid);
        jump.settled.add(pid);
      }
      return undefined;
    }
    this.clocks.set(pid, last + step);
    if (step <= JUMP_FORWARD && step >= JUMP_BACKWARD) return undefined;
    this.jump = { by: step, from: last + step, pid, settled: new Set([pid]) };
    return step;
  }

  private note(pid: number, dts: number, pts: number): void {
    const lastDts = this.clocks.get(pid) ?? dts;
    const lastPts = lastDts + difference(pts, dts);
    const times = this.times.get(pid);
    this.times.set(
      pid,
      times ? { ...times, lastDts, lastPts } : { firstPts: lastPts, lastPts, firstDts: lastDts, lastDts },
    );
  }

  private begin(offset: number, reason: PartReason, description: string): void {
    this.times.clear();
    this.waiting = this.program?.some(({ codec }) => codec === 'H.264') ? new Map() : undefined;
    const tables = Buffer.concat([...this.associationPackets, ...this.mapPackets].map(({ bytes }) => bytes));
    this.events.push({ kind: 'part', offset, reason, description, tables });
  }

  /** Lets go the packets before an offset. */
  private release(before = Number.POSITIVE_INFINITY): void {
    const count = this.held.findIndex(({ offset }) => offset >= before);
    const packets = this.held.splice(0, count < 0 ? this.held.length : count);
    for (const { pid, bytes, offset } of packets) {
      const isWaiting = this.waiting !== undefined && this.program?.some((stream) => stream.pid === pid);
      const reason = this.late.has(pid) ? 'late' : isWaiting ? 'no_key_frame' : undefined;
      if (reason) this.events.push({ kind: 'dropped', offset, bytes: bytes.length, reason });
      else this.events.push({ kind: 'packets', bytes });
    }
  }
}

/** The same events, with packets that follow each other in one buffer. */
function merged(events: readonly TransportStreamEvent[]): TransportStreamEvent[] {
  const found: TransportStreamEvent[] = [];
  let packets: Buffer[] = [];
  const flush = () => {
    if (packets.length > 0) found.push({ kind: 'packets', bytes: Buffer.concat(packets) });
    packets = [];
  };
  for (const event of events) {
    if (event.kind === 'packets') {
      packets.push(event.bytes);
      continue;
    }
    flush();
    found.push(event);
  }
  flush();
  return found;
}

/** By how much a time is behind another, on a clock of 33 bits. */
function difference(time: number, other: number): number {
  const ahead = (((time - other) % WRAP) + WRAP) % WRAP;
  return ahead < WRAP / 2 ? ahead : ahead - WRAP;
}
