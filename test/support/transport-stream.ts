const PACKET_BYTES = 188;

export interface Tables {
  readonly mapPid: number;
  /** Stream types and PIDs. */
  readonly streams: readonly (readonly [number, number])[];
}

/** A PES packet to be. */
export interface Unit {
  readonly pid: number;
  readonly bytes: Buffer;
}

/** Packets of PAT and PMT. Their checksums are zero. */
export function programTables({ mapPid, streams }: Tables): Buffer {
  const association = Buffer.alloc(4);
  association.writeUInt16BE(1, 0);
  association.writeUInt16BE(0xe000 | mapPid, 2);
  const map = streams.flatMap(([type, pid]) => [type, 0xe0 | (pid >> 8), pid & 0xff, 0xf0, 0]);
  const clock = [0xe0 | ((streams[0]?.[1] ?? 0x1fff) >> 8), (streams[0]?.[1] ?? 0x1fff) & 0xff, 0xf0, 0];
  return Buffer.concat([
    ...packetsOf(0, Buffer.concat([Buffer.alloc(1), section(0, association)])),
    ...packetsOf(mapPid, Buffer.concat([Buffer.alloc(1), section(2, Buffer.from([...clock, ...map]))])),
  ]);
}

function section(table: number, body: Buffer): Buffer {
  const length = 5 + body.length + 4;
  const head = [table, 0xb0 | (length >> 8), length & 0xff, 0, 1, 0xc1, 0, 0];
  return Buffer.concat([Buffer.from(head), body, Buffer.alloc(4)]);
}

/** Packets of the tables, if there are any, and of each unit. */
export function transportStream(tables: Tables | undefined, units: readonly Unit[]): Buffer {
  const packets = units.flatMap(({ pid, bytes }) => packetsOf(pid, bytes));
  return Buffer.concat([...(tables ? [programTables(tables)] : []), ...packets]);
}

function packetsOf(pid: number, payload: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  for (let at = 0; at < payload.length || at === 0; ) {
    const piece = payload.subarray(at, at + PACKET_BYTES - 4);
    const stuffing = PACKET_BYTES - 4 - piece.length;
    const field = Buffer.alloc(stuffing, 0xff);
    if (stuffing > 0) field[0] = stuffing - 1;
    if (stuffing > 1) field[1] = 0;
    const start = at === 0 ? 0x40 : 0;
    const head = [0x47, start | (pid >> 8), pid & 0xff, stuffing > 0 ? 0x30 : 0x10];
    packets.push(Buffer.concat([Buffer.from(head), field, piece]));
    at += piece.length || 1;
  }
  return packets;
}

/** A picture; with a sequence parameter set of this content, a key frame. */
export function picture(pid: number, time: number, sps?: string): Unit {
  const code = [0, 0, 0, 1];
  const sets = sps === undefined ? [] : [...code, 0x67, ...Buffer.from(sps), ...code, 0x68, 1, 2, 3];
  const slice = [...code, sps === undefined ? 0x41 : 0x65, ...Buffer.alloc(300, 7)];
  return { pid, bytes: pes(0xe0, time, Buffer.from([...code, 9, 0xf0, ...sets, ...slice])) };
}

/** A frame of AAC. */
export function sound(pid: number, time: number, rate: 48_000 | 44_100 = 48_000): Unit {
  const frequency = rate === 48_000 ? 3 : 4;
  const header = [0xff, 0xf1, 0x40 | (frequency << 2), 0x80, 2, 0x1f, 0xfc];
  return { pid, bytes: pes(0xc0, time, Buffer.from([...header, ...Buffer.alloc(20, 9)])) };
}

function pes(id: number, time: number, payload: Buffer): Buffer {
  const at = ((time % 2 ** 33) + 2 ** 33) % 2 ** 33;
  const high = Math.floor(at / 2 ** 30);
  const middle = Math.floor(at / 2 ** 15) % 2 ** 15;
  const low = at % 2 ** 15;
  const stamp = Buffer.alloc(5);
  stamp[0] = 0x21 | (high << 1);
  stamp.writeUInt16BE((middle << 1) | 1, 1);
  stamp.writeUInt16BE((low << 1) | 1, 3);
  return Buffer.concat([Buffer.from([0, 0, 1, id, 0, 0, 0x80, 0x80, 5]), stamp, payload]);
}
