import { execFileSync } from 'node:child_process';
import { constants, createWriteStream, openSync, rmSync, type WriteStream } from 'node:fs';
import { Socket } from 'node:net';
import { basename, join } from 'node:path';
import fs from 'fs-extra';
import { describeThrown } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import type { Log } from '../../../http/log';
import type { Latency } from '../playlists/hls-playlists';
import { endText, type RunningProgram } from '../running-program';
import {
  type Programs,
  type StreamKeys,
  type System,
  startShakaPackager,
  systemsOf,
} from '../shaka-packager';
import type { PartRecord } from '../stream-document';

export interface MediaKinds {
  readonly video: boolean;
  readonly audio: boolean;
}

interface PartOptions {
  readonly folder: string;
  /** Its name is that of the part's folder, which has one for each system, and the recording. */
  readonly record: PartRecord;
  readonly kinds: MediaKinds;
  readonly keys: StreamKeys;
  readonly latency: Latency;
  readonly programs: Programs;
  readonly log: Log;
  /** Called once when it can't go on. Not after `finish` or `kill`. */
  readonly onFailure: (problem: Problem) => void;
}

/** The transport stream of a part as it came, in the part's folder: recordings are made of it. */
export const RECORDING = 'recording.ts';

const NULL_PACKET = Buffer.alloc(188, 0xff);
NULL_PACKET.writeUInt32BE(0x471fff10);
/** shaka-packager takes 64 KiB to see that it is a transport stream: of packets that say nothing, so that none wait. */
const PRELUDE = Buffer.concat(Array.from({ length: Math.ceil(65_536 / 188) }, () => NULL_PACKET));

/**
 * A continuous run of a transport stream with one set of parameters: it is written to one process of
 * shaka-packager for each system, and recorded as it came. It never throws: `onFailure` gets all failures.
 */
export class Part {
  readonly #options: PartOptions;
  readonly #path: string;
  readonly #fifos: string[] = [];
  readonly #inputs: Socket[] = [];
  readonly #programs: RunningProgram[] = [];
  #recording: WriteStream | undefined;
  #recorded: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(options: PartOptions) {
    this.#options = options;
    this.#path = join(options.folder, options.record.name);
    try {
      const systems = systemsOf(options.keys);
      for (const system of systems) fs.ensureDirSync(join(this.#path, system));
      this.#record();
      for (const system of systems) this.#start(system);
    } catch (thrown) {
      process.nextTick(() => this.#fail('part_not_started', describeThrown(thrown)));
    }
  }

  get record(): PartRecord {
    return this.#options.record;
  }

  /** Bytes that wait for the slowest reader. */
  get waitingBytes(): number {
    return Math.max(0, ...this.#sinks.map(({ writableLength }) => writableLength));
  }

  /** Takes whole packets. */
  write(bytes: Buffer): void {
    if (!this.#isOver) for (const sink of this.#sinks) sink.write(bytes);
  }

  /** Lets the processes write all that has come, and kills those that have not within the time. */
  async finish(limitMs: number): Promise<void> {
    this.#isOver = true;
    const tooLong = setTimeout(() => this.#cut(), limitMs);
    for (const sink of this.#sinks) sink.end();
    await this.#ended();
    clearTimeout(tooLong);
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    this.#cut();
    await this.#ended();
  }

  get #sinks(): readonly (Socket | WriteStream)[] {
    return this.#recording ? [this.#recording, ...this.#inputs] : [];
  }

  #record(): void {
    const recording = createWriteStream(join(this.#path, RECORDING), { flags: 'wx', mode: 0o600 });
    recording.on('error', (thrown) => this.#fail('recording_failed', describeThrown(thrown)));
    this.#recorded = new Promise((resolve) => recording.once('close', resolve));
    this.#recording = recording;
  }

  #start(system: System): void {
    const { folder, record, kinds, keys, latency, programs } = this.#options;
    const fifo = join(programs.folder, `${basename(folder)}-${record.name}-${system}`);
    this.#fifos.push(fifo);
    // Node has no call for it.
    execFileSync('mkfifo', ['-m', '600', fifo], { env: programs.env, stdio: 'ignore' });
    // Opened for both, it does not wait for a reader; written data waits for one.
    const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
    const input = new Socket({ fd, readable: false, writable: true });
    // The end of the process shows that the reader has gone.
    input.on('error', () => undefined).write(PRELUDE);
    this.#inputs.push(input);
    const streams = (['video', 'audio'] as const)
      .filter((kind) => kinds[kind])
      .map((kind) => ({ input: fifo, select: kind, name: kind, kind, title: kind }));
    const job = { system, keys, streams, folder: join(this.#path, system), live: true, latency };
    const program = startShakaPackager(programs, job);
    this.#programs.push(program);
    void program.ended.then((end) => this.#fail('packaging_failed', endText(end)));
  }

  #fail(code: string, cause: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { log, record, onFailure } = this.#options;
    log.warn('part of a stream failed', { part: record.name, code, cause });
    const description =
      code === 'packaging_failed'
        ? `shaka-packager ended: ${cause}. It is started again.`
        : 'The stream could not be written. The log of the packager has the cause; it is tried again.';
    onFailure({ code, description });
  }

  #cut(): void {
    for (const program of this.#programs) program.kill();
    for (const sink of this.#sinks) sink.destroy();
  }

  async #ended(): Promise<void> {
    await Promise.all([this.#recorded, ...this.#programs.map(({ ended }) => ended)]);
    for (const input of this.#inputs) input.destroy();
    for (const fifo of this.#fifos) rmSync(fifo, { force: true });
  }
}
