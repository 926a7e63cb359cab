import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { Part } from './kinds';

/** What the child process is told to do. */
export interface Order {
  readonly port: number;
  readonly parts: readonly Part[];
  /** After that many seconds the process ends in any case. */
  readonly mostSeconds: number;
}

/** What the child process has done so far. */
export interface Deeds {
  readonly opened: number;
  /** Connections that the server closed or refused. */
  readonly lost: number;
  readonly held: number;
  /** How many answers were read, by status. */
  readonly answers: Readonly<Record<string, number>>;
  /** Errors of the system, by code. */
  readonly errors: Readonly<Record<string, number>>;
}

const TICK_MS = 50;
const REOPENED_PER_SECOND = 200;
/** A connection this young may not be in the system's table yet. */
const YOUNG_MS = 300;

interface Slot {
  readonly part: Part;
  socket: Socket | undefined;
  connectedAt: number | undefined;
}

/** Holds connections open and takes a new one for each that the server closes. */
function attack({ port, parts, mostSeconds }: Order): () => Deeds {
  const slots: Slot[] = parts.flatMap((part) =>
    Array.from({ length: part.connections }, () => ({ part, socket: undefined, connectedAt: undefined })),
  );
  const most = slots.length + mostSeconds * REOPENED_PER_SECOND;
  const answers: Record<string, number> = {};
  const errors: Record<string, number> = {};
  let opened = 0;
  let lost = 0;
  let free: Slot[] = [];

  const open = (slot: Slot) => {
    if (opened >= most) return;
    opened += 1;
    const { part } = slot;
    const socket = connect({
      host: '127.0.0.1',
      localAddress: '127.0.0.1',
      port,
      allowHalfOpen: part.halfOpen ?? false,
      ...(part.reads === 'a byte a second' && {
        onread: { buffer: Buffer.alloc(1), callback: () => false },
      }),
    });
    slot.socket = socket;
    if (part.reads === 'nothing') socket.pause();
    if (part.reads === 'all') {
      socket.on('data', (chunk) => {
        const statuses = chunk.toString('latin1').match(/(?<=HTTP\/1\.1 )\d{3}/g) ?? [];
        for (const status of statuses) {
          answers[status] = (answers[status] ?? 0) + 1;
          if (part.again && socket.writable) socket.write(part.opening, 'latin1');
        }
      });
    }
    socket.on('connect', () => {
      slot.connectedAt = performance.now();
      if (part.opening !== '') socket.write(part.opening.repeat(part.times ?? 1), 'latin1');
    });
    socket.on('error', ({ code = 'no code' }: NodeJS.ErrnoException) => {
      errors[code] = (errors[code] ?? 0) + 1;
    });
    socket.on('close', () => {
      lost += 1;
      slot.socket = undefined;
      slot.connectedAt = undefined;
      free.push(slot);
    });
  };

  for (const slot of slots) open(slot);
  setInterval(() => {
    const due = free.slice(0, (REOPENED_PER_SECOND * TICK_MS) / 1000);
    free = free.slice(due.length);
    for (const slot of due) open(slot);
  }, TICK_MS);
  setInterval(() => dripAll(slots), 1000);
  setInterval(() => dropClosed(slots, port), 500);
  return () => ({ opened, lost, held: slots.filter((slot) => slot.connectedAt).length, answers, errors });
}

function dripAll(slots: readonly Slot[]): void {
  for (const { part, socket, connectedAt } of slots) {
    if (!socket || connectedAt === undefined) continue;
    if (part.drip && socket.writable) socket.write(part.drip);
    if (part.reads === 'a byte a second') socket.resume();
  }
}

/** Closes what the server has closed: who does not read is not told by his socket. */
function dropClosed(slots: readonly Slot[], port: number): void {
  const alive = portsHeldBy(port);
  const settled = performance.now() - YOUNG_MS;
  for (const { socket, connectedAt } of slots) {
    if (!socket || connectedAt === undefined || connectedAt > settled) continue;
    if (!alive.has(socket.localPort ?? 0)) socket.destroy();
  }
}

const ESTABLISHED = '01';

/** The client ports of the connections that the server on a port has not let go. */
function portsHeldBy(port: number): Set<number> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const held = new Set<number>();
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (!fields[1]?.endsWith(local)) continue;
    // No inode: the program has closed it, or, when it is established, not accepted it yet.
    if (fields[3] !== ESTABLISHED && fields[9] === '0') continue;
    held.add(Number.parseInt(fields[2]?.split(':')[1] ?? '', 16));
  }
  return held;
}

let deeds: (() => Deeds) | undefined;
process.on('message', (message: Order | 'tell') => {
  if (message === 'tell') {
    process.send?.(deeds?.());
    return;
  }
  deeds = attack(message);
  setTimeout(() => process.exit(0), message.mostSeconds * 1000);
});
// Nobody is left to end this process.
process.on('disconnect', () => process.exit(0));
