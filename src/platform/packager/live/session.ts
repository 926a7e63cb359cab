import type { Problem } from '../../../http/faults';
import type { Log } from '../../../http/log';
import { whyNotWritable } from '../media-folder';
import type { Latency } from '../playlists/hls-playlists';
import { ChangeWatch, type ProgramStream, readProgramMap } from '../program-map';
import { type ProgramEnd, type RunningProgram, runProgram, secretsOfAddress } from '../running-program';
import type { Programs, StreamKeys } from '../shaka-packager';
import { type MediaKinds, Part } from './part';
import { Simulcast } from './simulcast';
import { type CutStep, StreamCutter } from './stream-cutter';

/** When a stream counts as silent, stalled or given up, in milliseconds. */
export const LIVE_LIMITS = {
  /** How long the first media may take to come. */
  firstMediaMs: 15_000,
  /** When a stream that sends nothing counts as interrupted. */
  silentMs: 6000,
  /** When it is pulled again. */
  goneMs: 35_000,
  /** How many bytes may wait for a process of shaka-packager, or the disk, before the pull is paused. */
  waitingBytes: 8 * 1024 * 1024,
  /** How long a process of shaka-packager may take nothing. */
  stalledMs: 10_000,
  /** How long media may come without a segment. */
  firstSegmentMs: 20_000,
  /** How long a process may take to write what has come when a part is over. */
  finishMs: 10_000,
  /** How long to wait before what failed is tried again: the first time; it doubles each time. */
  retryMs: 1000,
};
export type LiveLimits = Readonly<typeof LIVE_LIMITS>;

export interface SessionSurroundings {
  readonly programs: Programs;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly limits: LiveLimits;
}

/** How a session is over: what the stream is then, and why; or `changed`, when another session goes on at once. */
export type SessionEnd =
  | { readonly state: 'interrupted' | 'refused' | 'failed'; readonly problem: Problem }
  | { readonly state: 'changed' };

interface SessionOptions extends SessionSurroundings {
  readonly source: string;
  /** With which the next part is encrypted. */
  readonly keys: () => StreamKeys;
  readonly simulcast: readonly string[];
  readonly latency: Latency;
  /** The folder of the stream. */
  readonly folder: string;
  /** Names a part of the session, once it is known what it holds: its first one, or one that continues it. */
  readonly newPart: (kinds: MediaKinds, continues: boolean) => string;
  /** Asked at each key frame whether there are new keys, with which the next part begins; undefined: they stay. */
  readonly isKeyDue: (() => boolean) | undefined;
  /** Nothing is written to the part any more. */
  readonly onPartDone: (name: string) => void;
  /** Whether there is a segment of the part. */
  readonly hasSegment: (name: string) => boolean;
  readonly onEnd: (end: SessionEnd) => void;
}

/** ffmpeg begins with the tables; what has none behind so many bytes is not from it. */
const MAX_UNKNOWN = 1024 * 1024;
const LOOK_MS = 100;
/** How long a server may send nothing before ffmpeg gives up by itself, should this process be gone. */
const SILENCE_SECONDS = 40;

/**
 * One pull of a stream: from the moment that it is asked for until its encoder goes, or nothing more can be done with it.
 * A new session is a new part, which players see as a period or a discontinuity; a session has further parts, without a
 * discontinuity, where its keys change.
 */
export class Session {
  readonly #options: SessionOptions;
  readonly #puller: RunningProgram;
  readonly #simulcasts: readonly Simulcast[];
  readonly #looking: NodeJS.Timeout;
  /** What came before it was known what the stream holds. */
  #unknown = Buffer.alloc(0);
  #watch: ChangeWatch | undefined;
  #part: Part | undefined;
  /** Other keys than those of the present part; of its sound, some may come. */
  #former: { readonly part: Part; readonly name: string } | undefined;
  #cutter: StreamCutter | undefined;
  #kinds: MediaKinds = { video: false, audio: false };
  #partName = '';
  #partAt = 0;
  #hasSegment = false;
  #finishing: Promise<void> = Promise.resolve();
  #lastDataAt: number;
  #hasData = false;
  #pausedAt: number | undefined;
  #problem: Problem | undefined;
  #isOver = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { source, programs, now, simulcast, log } = options;
    this.#lastDataAt = now();
    this.#simulcasts = simulcast.map((address) => new Simulcast(address, { programs, log, now }));
    this.#puller = pull(source, programs);
    this.#puller.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    void this.#puller.ended.then((end) => this.#pullEnded(end));
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Whether media comes now. */
  get isFlowing(): boolean {
    const { now, limits } = this.#options;
    return this.#hasData && !this.#isOver && now() - this.#lastDataAt < limits.silentMs;
  }

  /** Whether a segment was made of it. */
  get hasSegment(): boolean {
    return this.#hasSegment;
  }

  /** What is wrong while it goes on. */
  get problem(): Problem | undefined {
    return this.#hasData && !this.isFlowing ? SILENT : this.#problem;
  }

  /** Ends the pull; resolves when all that came can be played. */
  async stop(): Promise<void> {
    this.#close();
    await this.#finishing;
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#looking);
    this.#puller.stdout.removeAllListeners('data').resume();
    // It hangs when it waits for a server; what it has in hand is lost in any case.
    this.#puller.kill();
    for (const simulcast of this.#simulcasts) simulcast.end();
    const { limits, onPartDone } = this.#options;
    const name = this.#partName;
    this.#endFormer();
    if (this.#part) this.#finish(this.#part.finish(limits.finishMs).then(() => onPartDone(name)));
  }

  #finish(ending: Promise<void>): void {
    this.#finishing = Promise.all([this.#finishing, ending]).then(() => undefined);
  }

  #endFormer(): void {
    const { limits, onPartDone } = this.#options;
    const former = this.#former;
    this.#former = undefined;
    if (former) this.#finish(former.part.finish(limits.finishMs).then(() => onPartDone(former.name)));
  }

  #end(end: SessionEnd): void {
    if (this.#isOver) return;
    this.#close();
    this.#options.onEnd(end);
  }

  #pullEnded({ notStarted, lastWords }: ProgramEnd): void {
    if (notStarted !== undefined) {
      const description = `${this.#options.programs.ffmpeg} can't be started (${notStarted}). Install ffmpeg, or set PACKAGER_FFMPEG.`;
      this.#end({ state: 'failed', problem: { code: 'ffmpeg_missing', description } });
    } else if (this.#hasData) {
      this.#end({ state: 'interrupted', problem: ENCODER_GONE });
    } else {
      const said = lastWords === '' ? 'nothing is streamed there' : lastWords;
      const description = `The source can't be pulled: ${said}. The packager tries again.`;
      this.#end({ state: 'interrupted', problem: { code: 'source_unavailable', description } });
    }
  }

  #take(chunk: Buffer): void {
    const at = this.#options.now();
    this.#hasData = true;
    this.#lastDataAt = at;
    if (!this.#part) {
      this.#unknown = Buffer.concat([this.#unknown, chunk]);
      const streams = this.#unknown.length > MAX_UNKNOWN ? [] : readProgramMap(this.#unknown);
      if (streams) this.#begin(streams);
      return;
    }
    if (this.#watch?.push(chunk)) {
      this.#end({ state: 'changed' });
      return;
    }
    this.#write(this.#part, chunk);
    if (this.#part.waitingBytes > this.#options.limits.waitingBytes && this.#pausedAt === undefined) {
      this.#pausedAt = at;
      this.#puller.stdout.pause();
    }
  }

  #begin(streams: readonly ProgramStream[]): void {
    const problem = problemOfStreams(streams);
    if (problem) {
      this.#end({ state: 'refused', problem });
      return;
    }
    this.#kinds = {
      video: streams.some(({ kind }) => kind === 'video'),
      audio: streams.some(({ kind }) => kind === 'audio'),
    };
    const part = this.#startPart(false);
    if (this.#options.isKeyDue) this.#cutter = new StreamCutter(streams);
    this.#watch = new ChangeWatch(streams);
    const bytes = this.#unknown;
    this.#unknown = Buffer.alloc(0);
    if (this.#watch.push(bytes)) this.#end({ state: 'changed' });
    else this.#write(part, bytes);
  }

  #startPart(continues: boolean): Part {
    const { now, newPart, folder, keys, latency, programs, log } = this.#options;
    const kinds = this.#kinds;
    const name = newPart(kinds, continues);
    this.#partName = name;
    this.#partAt = now();
    this.#hasSegment = false;
    const options = { folder, name, kinds, keys: keys(), latency, programs, log };
    const part = new Part({ ...options, onFailure: (failure) => this.#partFailed(failure) });
    this.#part = part;
    return part;
  }

  #write(part: Part, bytes: Buffer): void {
    const { isKeyDue } = this.#options;
    if (this.#cutter && isKeyDue) this.#divide(part, this.#cutter.push(bytes, isKeyDue));
    else part.write(bytes);
    for (const simulcast of this.#simulcasts) simulcast.write(bytes);
  }

  #divide(part: Part, steps: readonly CutStep[]): void {
    let present = part;
    for (const step of steps) {
      if (step.to === 'former') this.#former?.part.write(step.bytes);
      else if (step.to === 'present') present.write(step.bytes);
      else if (step.to === 'end_of_former') this.#endFormer();
      else {
        this.#former = { part: present, name: this.#partName };
        present = this.#startPart(true);
      }
    }
  }

  #partFailed(problem: Problem): void {
    const { programs, onPartDone } = this.#options;
    const name = this.#partName;
    const part = this.#part;
    this.#part = undefined;
    if (part) this.#finish(part.kill().then(() => onPartDone(name)));
    const unwritable = problemOfFolder(programs.folder);
    this.#end(unwritable ? { state: 'failed', problem: unwritable } : { state: 'interrupted', problem });
  }

  /** Checks what no event reports: the time that passes. */
  #look(): void {
    const { now, limits, hasSegment } = this.#options;
    const at = now();
    const part = this.#part;
    if (part && this.#pausedAt !== undefined) {
      this.#lastDataAt = at;
      if (part.waitingBytes < limits.waitingBytes / 2) {
        this.#pausedAt = undefined;
        this.#puller.stdout.resume();
      } else if (at - this.#pausedAt > limits.stalledMs) {
        this.#partFailed(STALLED);
        return;
      }
    }
    const silentMs = at - this.#lastDataAt;
    if (!this.#hasData && silentMs > limits.firstMediaMs) {
      this.#end({ state: 'interrupted', problem: NO_MEDIA });
    } else if (silentMs > limits.goneMs) {
      this.#end({ state: 'interrupted', problem: SILENT });
    } else if (part && !this.#hasSegment) {
      this.#hasSegment = hasSegment(this.#partName);
      const isLate = !this.#hasSegment && at - this.#partAt > limits.firstSegmentMs;
      this.#problem = isLate ? NO_SEGMENT : undefined;
    }
  }
}

/**
 * Pulls a stream of RTMP and hands it on as a transport stream, as it is. The address, which ends with a secret, goes
 * through the input of ffmpeg: arguments would show it to every user of the machine.
 */
function pull(source: string, { ffmpeg, folder, env }: Programs): RunningProgram {
  const args = [
    ...['-hide_banner', '-nostdin', '-loglevel', 'error'],
    ...['-protocol_whitelist', 'pipe,fd,rtmp,rtmps,rtmpt,tcp,tls'],
    ...['-f', 'concat', '-safe', '0', '-i', 'pipe:0'],
    ...['-map', '0:v:0?', '-map', '0:a:0?', '-c', 'copy'],
    ...['-f', 'mpegts', '-mpegts_copyts', '0', '-flush_packets', '1', '-muxdelay', '0', 'pipe:1'],
  ];
  const program = runProgram(ffmpeg, args, { cwd: folder, env, secrets: secretsOfAddress(source) });
  program.stdin.end(
    `ffconcat version 1.0\nfile '${source}'\noption rw_timeout ${SILENCE_SECONDS * 1_000_000}\n`,
  );
  return program;
}

function problemOfStreams(streams: readonly ProgramStream[]): Problem | undefined {
  const media = streams.filter(({ kind }) => kind !== 'other');
  const foreign = media.find(({ kind, codec }) => codec !== (kind === 'video' ? 'H.264' : 'AAC'));
  const code = 'codec_unsupported';
  if (foreign) {
    const { kind, codec } = foreign;
    return {
      code,
      description: `The encoder sends ${kind} as ${codec}. Set it to H.264 video and AAC audio.`,
    };
  }
  if (media.length > 0) return undefined;
  const description =
    'The encoder sends neither video nor audio that can be packaged. Set it to H.264 and AAC.';
  return { code, description };
}

const ENCODER_GONE: Problem = {
  code: 'encoder_gone',
  description: 'The encoder has disconnected. The stream continues when it connects again.',
};
const SILENT: Problem = {
  code: 'encoder_silent',
  description: 'The encoder is connected and sends nothing. The stream continues when it sends again.',
};
const NO_MEDIA: Problem = {
  code: 'no_media',
  description: 'The source sent no media in time. The packager tries again.',
};
const NO_SEGMENT: Problem = {
  code: 'no_segment',
  description: 'No segment can be made of what the encoder sends. Set it to a key frame every 2 seconds.',
};
const STALLED: Problem = {
  code: 'packaging_stalled',
  description: 'shaka-packager has stopped reading. The packager starts it again.',
};

/** Why nothing can be written below a folder, if so. */
export function problemOfFolder(folder: string): Problem | undefined {
  const why = whyNotWritable(folder);
  if (why === undefined) return undefined;
  if (why !== 'ENOSPC' && why !== 'EDQUOT') {
    const description = `Nothing can be written to the folder of the packager (${why}). Correct this; the stream then continues.`;
    return { code: 'folder_not_writable', description };
  }
  const description =
    'The disk of the packager is full. Make room, or choose another PACKAGER_FOLDER; the stream then continues.';
  return { code: 'disk_full', description };
}
