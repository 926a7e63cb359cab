import { constants, createWriteStream, openSync, type WriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { PackagingKeys } from '../../../drm/packaging';
import { describeThrown, systemCode } from '../../../http/errors';
import type { Log } from '../../../http/log';
import type { StreamProblem } from '../packaging-keys';
import type { Programs } from '../programs';
import { type RunProgram, runProgram } from '../running-program';
import { type ShakaJob, type ShakaProcess, type ShakaStream, startShakaPackager } from '../shaka-packager';

/** What is packaged, each by a process of its own with its own key. */
export const SYSTEMS = ['dash', 'hls'] as const;
export type System = (typeof SYSTEMS)[number];

/** What of the transport stream is packaged. */
export interface MediaKinds {
  readonly video: boolean;
  readonly audio: boolean;
}

/** The systems for which there are keys; both, where nothing is to be protected. */
export function systemsOf(keys: PackagingKeys | 'none'): readonly System[] {
  return keys === 'none' ? SYSTEMS : SYSTEMS.filter((system) => keys[system] !== undefined);
}

interface PartOptions {
  /** The folder of the stream. */
  readonly folder: string;
  /** Names the part's folder in it, which has one for each system, and the recording. */
  readonly name: string;
  readonly kinds: MediaKinds;
  readonly keys: PackagingKeys | 'none';
  readonly programs: Programs;
  readonly log: Log;
  /** Called once when it can't go on. Not after `finish` or `kill`. */
  readonly onFailure: (problem: StreamProblem) => void;
}

/** Where the transport stream of a part is kept for recordings, in its folder. */
export const RECORDING = 'recording.ts';

const NULL_PACKET = Buffer.alloc(188, 0xff);
NULL_PACKET.writeUInt32BE(0x471fff10);
/** shaka-packager takes 64 KiB to see that it is a transport stream: of packets that say nothing, so that none wait. */
const PRELUDE = Buffer.concat(Array.from({ length: Math.ceil(65_536 / 188) }, () => NULL_PACKET));

interface Outlet {
  readonly system: System;
  readonly fifo: string;
  /** Until the reader has opened the FIFO, what comes waits here. */
  waiting: Buffer[];
  socket: Socket | undefined;
  process: ShakaProcess | undefined;
}

/**
 * A continuous run of a transport stream with one set of parameters: it is written into one process of shaka-packager
 * for each system, and recorded as it is. All failures are told by `onFailure`.
 */
export class Part {
  readonly #options: PartOptions;
  readonly #outlets: readonly Outlet[];
  readonly #giveUp = new AbortController();
  readonly #opened: Promise<void>;
  #recording: WriteStream | undefined;
  #recorded: Promise<void> = Promise.resolve();
  #unrecorded: Buffer[] = [];
  #isOver = false;

  constructor(options: PartOptions) {
    this.#options = options;
    const { name, keys, programs } = options;
    this.#outlets = systemsOf(keys).map((system) => ({
      system,
      fifo: join(programs.folder, `${options.folder.split('/').at(-1)}-${name}-${system}`),
      waiting: [],
      socket: undefined,
      process: undefined,
    }));
    this.#opened = this.#open().catch((thrown: unknown) => this.#fail('part_not_started', thrown));
  }

  /** Bytes that wait for the slowest reader. */
  get waitingBytes(): number {
    const waiting = this.#outlets.map(
      ({ socket, waiting: queue }) => socket?.writableLength ?? sizeOf(queue),
    );
    return Math.max(this.#recording?.writableLength ?? sizeOf(this.#unrecorded), ...waiting);
  }

  /** Takes whole packets. */
  write(bytes: Buffer): void {
    if (this.#isOver) return;
    for (const { socket, waiting } of this.#outlets) {
      if (socket) socket.write(bytes);
      else waiting.push(bytes);
    }
    if (this.#recording) this.#recording.write(bytes);
    else this.#unrecorded.push(bytes);
  }

  /** Lets the processes write all that has come, and ends those that have not within the time. */
  async finish(limitMs: number): Promise<void> {
    this.#isOver = true;
    const tooLong = setTimeout(() => this.#cut(), limitMs);
    await this.#opened;
    for (const { socket } of this.#outlets) socket?.end();
    this.#recording?.end();
    await Promise.all([this.#recorded, ...this.#outlets.map(({ process }) => process?.ended)]);
    clearTimeout(tooLong);
    await this.#cleanUp();
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    this.#isOver = true;
    this.#cut();
    await this.#opened;
    this.#cut();
    await Promise.all([this.#recorded, ...this.#outlets.map(({ process }) => process?.ended)]);
    await this.#cleanUp();
  }

  async #open(): Promise<void> {
    const { folder, name, programs } = this.#options;
    for (const { system } of this.#outlets) await mkdir(join(folder, name, system), { recursive: true });
    this.#record(join(folder, name, RECORDING));
    await makeFifos(
      this.#outlets.map(({ fifo }) => fifo),
      { cwd: programs.folder, env: programs.env },
    );
    await Promise.all(this.#outlets.map((outlet) => this.#start(outlet)));
  }

  #record(path: string): void {
    const recording = createWriteStream(path, { flags: 'wx', mode: 0o600 });
    recording.on('error', (thrown) => this.#fail('recording_failed', thrown));
    this.#recorded = new Promise((resolve) => recording.once('close', resolve));
    for (const bytes of this.#unrecorded.splice(0)) recording.write(bytes);
    this.#recording = recording;
  }

  async #start(outlet: Outlet): Promise<void> {
    const { programs } = this.#options;
    if (this.#giveUp.signal.aborted) return;
    const process = await startShakaPackager(programs.shakaPackager, this.#jobOf(outlet), programs.env);
    outlet.process = process;
    if (this.#giveUp.signal.aborted) process.kill();
    let isRunning = true;
    const ended = process.ended.then(({ lines, signal, code }) => {
      isRunning = false;
      const how = signal === null ? `exit code ${code}` : signal;
      if (!this.#isOver) this.#fail('packaging_failed', undefined, lines.length > 0 ? lines : [how]);
    });
    // A process that ends before it reads ends the wait, too.
    const wait = new AbortController();
    this.#giveUp.signal.addEventListener('abort', () => wait.abort());
    void ended.then(() => wait.abort());
    const socket = await openFifo(outlet.fifo, wait.signal);
    await rm(outlet.fifo, { force: true });
    if (!socket) return;
    // That the reader has gone is seen when it ends.
    socket.on('error', () => undefined);
    if (!isRunning) socket.destroy();
    for (const bytes of [PRELUDE, ...outlet.waiting.splice(0)]) socket.write(bytes);
    outlet.socket = socket;
  }

  #jobOf({ system, fifo }: Outlet): ShakaJob {
    const { folder, name, kinds, keys } = this.#options;
    const streams = (['video', 'audio'] as const)
      .filter((kind) => kinds[kind])
      .map((kind): ShakaStream => ({ input: fifo, select: kind, name: kind, kind }));
    const job = { streams, folder: join(folder, name, system), live: true };
    if (keys === 'none') return { ...job, output: system, keys };
    const { dash, hls } = keys;
    if (system === 'dash' && dash) return { ...job, output: 'dash', keys: dash };
    if (system === 'hls' && hls) return { ...job, output: 'hls', keys: hls };
    throw new TypeError(`There are no keys for ${system}`);
  }

  #fail(code: string, thrown: unknown, lines: readonly string[] = []): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { log, name, onFailure } = this.#options;
    log.warn('part of a stream failed', {
      part: name,
      code,
      lines,
      ...(thrown === undefined ? {} : { cause: describeThrown(thrown) }),
    });
    const told = lines.slice(-3).join('; ').replace(/\.$/, '');
    const description =
      code === 'packaging_failed'
        ? `shaka-packager ended: ${told}. It is started again.`
        : 'The stream could not be written. The log of the packager has the cause; it is tried again.';
    onFailure({ code, description });
  }

  #cut(): void {
    this.#giveUp.abort();
    for (const { process, socket } of this.#outlets) {
      process?.kill();
      socket?.destroy();
    }
    this.#recording?.destroy();
  }

  async #cleanUp(): Promise<void> {
    await Promise.all(this.#outlets.map(({ fifo }) => rm(fifo, { force: true })));
  }
}

function sizeOf(buffers: readonly Buffer[]): number {
  return buffers.reduce((sum, { length }) => sum + length, 0);
}

/** How often is looked whether the reader has opened it. */
const TRY_MS = 10;

/** Makes FIFOs with mode 0600; Node has no call for it. @throws Error with what `mkfifo` said. */
async function makeFifos(paths: readonly string[], options: RunProgram): Promise<void> {
  const { ended } = runProgram('mkfifo', ['-m', '600', ...paths], options);
  const { code, notStarted, lastWords } = await ended;
  if (code !== 0) throw new Error(`mkfifo: ${notStarted ?? lastWords}`);
}

/**
 * Opens a FIFO for writing when its reader has. It never waits within a call of the system: those of 20 streams would
 * take all of Node's few threads. Undefined when `signal` ends the wait.
 */
async function openFifo(path: string, signal: AbortSignal): Promise<Socket | undefined> {
  while (!signal.aborted) {
    try {
      const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
      return new Socket({ fd, readable: false, writable: true });
    } catch (thrown) {
      if (systemCode(thrown) !== 'ENXIO') throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, TRY_MS));
  }
  return undefined;
}
