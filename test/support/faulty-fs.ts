import { promisify } from 'node:util';
import { gate } from './until';

const real = jest.requireActual<typeof import('node:fs')>('node:fs');

const CALLS = [
  'open',
  'fchmod',
  'write',
  'fdatasync',
  'close',
  'rename',
  'fsync',
  'unlink',
  'opendir',
  'ftruncate',
] as const;
export type FsCall = (typeof CALLS)[number];

export interface FsEvent {
  readonly call: FsCall;
  readonly moment: 'start' | 'end';
  /** The path that the call names, or the one its descriptor was opened with. */
  readonly path: string;
  /** The other arguments of the call. */
  readonly more: readonly unknown[];
}

type Callback = (error: unknown, result?: unknown) => void;
type Plain = (...args: unknown[]) => void;

interface Gate {
  readonly call: FsCall;
  readonly reached: () => void;
  readonly opened: Promise<void>;
}

let events: FsEvent[] = [];
let faults: { call: FsCall; nth: number; code: string }[] = [];
let gates: Gate[] = [];
let watchers: (() => void)[] = [];
let mostBytes = Number.POSITIVE_INFINITY;
const paths = new Map<number, string>();

afterEach(reset);

/** Replaces `node:fs`: passes every callback call on, records it, and fails, holds or shortens chosen ones. */
export const faultyFs = {
  ...real,
  ...Object.fromEntries(CALLS.map((call) => [call, wrap(call)])),
  openSync: (...given: Parameters<typeof real.openSync>) => {
    // Reads of key files give their flags as a number; they are not what is counted here.
    if (typeof given[1] === 'number') return real.openSync(...given);
    const path = named(String(given[0]));
    const descriptor = atOnce('open', path, given.slice(1), () => real.openSync(...given));
    paths.set(descriptor, path);
    return descriptor;
  },
  closeSync: (descriptor: number) => {
    const path = paths.get(descriptor);
    if (path === undefined) return real.closeSync(descriptor);
    paths.delete(descriptor);
    atOnce('close', path, [], () => real.closeSync(descriptor));
  },
};

/** A path as a reader knows it: a folder that is held open is named by its descriptor. */
function named(path: string): string {
  const [, held, rest = ''] = /^(\/proc\/self\/fd\/\d+)(.*)$/.exec(path) ?? [];
  return held === undefined ? path : real.realpathSync(held) + rest;
}

/** Forgets calls, faults and gates; so does the end of each test. */
export function reset(): void {
  events = [];
  faults = [];
  gates = [];
  watchers = [];
  mostBytes = Number.POSITIVE_INFINITY;
}

/** Every call since the last reset, in the order of its start and its end. */
export function recorded(): readonly FsEvent[] {
  return events;
}

/** Lets the nth call of a function, counted from the last reset, fail with a system code. A close that fails closes yet. */
export function fail(call: FsCall, nth: number, code: string): void {
  faults.push({ call, nth, code });
}

/** Holds the next call of a function until it is released; one that is made at once can't be held. */
export function hold(call: FsCall): { reached: Promise<void>; release: () => void } {
  const [start, end] = [gate(), gate()];
  gates.push({ call, reached: start.open, opened: end.opened });
  return { reached: start.opened, release: end.open };
}

/** Resolves when so many calls of a function have ended since the last reset. */
export function ended(call: FsCall, times: number): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (times <= events.filter((event) => event.call === call && event.moment === 'end').length) resolve();
    };
    watchers.push(look);
    look();
  });
}

/** Lets no write take more than so many bytes. */
export function shortenWrites(bytes: number): void {
  mostBytes = bytes;
}

/** Descriptors that were opened and not closed. */
export function openDescriptors(): string[] {
  return [...paths.values()];
}

/** A synchronous call: recorded and failed like the others. A close that fails closes yet. */
function atOnce<T>(call: FsCall, path: string, more: readonly unknown[], run: () => T): T {
  record({ call, moment: 'start', path, more });
  const failure = nextFailure(call);
  if (failure && call !== 'close') throw failure;
  try {
    const result = run();
    if (failure) throw failure;
    return result;
  } finally {
    record({ call, moment: 'end', path, more });
  }
}

function nextFailure(call: FsCall): Error | undefined {
  const nth = events.filter((event) => event.call === call && event.moment === 'start').length;
  const fault = faults.find((candidate) => candidate.call === call && candidate.nth === nth);
  return fault && Object.assign(new Error(`${fault.code}: injected`), { code: fault.code });
}

function wrap(call: FsCall): Plain {
  const original = real[call] as unknown as Plain;
  const wrapped = (...given: unknown[]) => {
    const callback = given.pop() as Callback;
    const [subject, ...more] = given;
    const path = typeof subject === 'number' ? (paths.get(subject) ?? 'no open descriptor') : String(subject);
    record({ call, moment: 'start', path, more });
    const failure = nextFailure(call);
    const end: Callback = (error, result) => {
      record({ call, moment: 'end', path, more });
      callback(error, result);
    };
    const run = () => {
      if (failure && call !== 'close') end(failure);
      else
        original(...shortened(call, given), (error: unknown, result: unknown) => {
          if (call === 'open' && typeof result === 'number') paths.set(result, path);
          if (call === 'close' && typeof subject === 'number') paths.delete(subject);
          end(failure ?? error, result);
        });
    };
    const at = gates.findIndex((candidate) => candidate.call === call);
    const [held] = at < 0 ? [] : gates.splice(at, 1);
    if (!held) return run();
    held.reached();
    void held.opened.then(run);
  };
  if (call !== 'write') return wrapped;
  // Node's own promisified write answers an object, not the number.
  const asPromise = (...given: unknown[]) =>
    new Promise((resolve, reject) => {
      wrapped(...given, (error: unknown, bytesWritten: unknown) =>
        error ? reject(error) : resolve({ bytesWritten }),
      );
    });
  return Object.assign(wrapped, { [promisify.custom]: asPromise });
}

function shortened(call: FsCall, given: unknown[]): unknown[] {
  if (call !== 'write') return given;
  const [descriptor, bytes, at, length] = given as [number, Buffer, number, number];
  // As Node does, also of a write that is shortened.
  if (at + length > bytes.length) throw new RangeError('The write goes beyond its buffer');
  return [descriptor, bytes, at, Math.min(length, mostBytes)];
}

function record(event: FsEvent): void {
  events.push(event);
  for (const look of watchers) look();
}
