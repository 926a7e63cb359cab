import type { PackagingKeys } from '../../../drm/packaging';
import type { Log } from '../../../http/log';
import { whyNotWritable } from '../media-folder';
import type { StreamProblem } from '../packaging-keys';
import type { Programs } from '../programs';
import type { ProgramEnd, RunningProgram } from '../running-program';
import type { ProgramStream } from '../transport-packets';
import { type TransportStreamEvent, TransportStreamInspector } from '../transport-stream';
import { type MediaKinds, Part } from './part';
import { pull } from './puller';
import { Simulcast } from './simulcast';

/** When a stream counts as silent, stalled or given up, in milliseconds. */
export interface LiveLimits {
  /** How long the first media may take to come. */
  readonly firstMediaMs: number;
  /** When a stream that sends nothing counts as interrupted. */
  readonly silentMs: number;
  /** When it is pulled anew. */
  readonly goneMs: number;
  /** How many bytes may wait for a process of shaka-packager, or the disk, before the pull is paused. */
  readonly waitingBytes: number;
  /** How long a process of shaka-packager may take nothing. */
  readonly stalledMs: number;
  /** How long media may come without a segment. */
  readonly firstSegmentMs: number;
  /** How often a part may begin: of a time that jumps all the time, no more is packaged than that. */
  readonly partMs: number;
  /** How long a process may take to write what has come when a part is over. */
  readonly finishMs: number;
  /** How long to wait before what failed is tried again: the first time; it doubles each time. */
  readonly retryMs: number;
}

export const LIVE_LIMITS: LiveLimits = {
  firstMediaMs: 15_000,
  silentMs: 6000,
  goneMs: 35_000,
  waitingBytes: 8 * 1024 * 1024,
  stalledMs: 10_000,
  firstSegmentMs: 20_000,
  partMs: 1000,
  finishMs: 10_000,
  retryMs: 1000,
};

export interface SessionSurroundings {
  readonly programs: Programs;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly limits: LiveLimits;
}

/** How a session is over: what the stream is then, and why. */
export interface SessionEnd {
  readonly state: 'interrupted' | 'refused' | 'failed';
  readonly problem: StreamProblem;
}

interface SessionOptions extends SessionSurroundings {
  readonly source: string;
  readonly keys: PackagingKeys | 'none';
  readonly simulcast: readonly string[];
  /** The folder of the stream. */
  readonly folder: string;
  /** Names a new part. */
  readonly newPart: (kinds: MediaKinds) => string;
  /** What of a part can be played is complete: nothing is written to it any more. */
  readonly onPartDone: (name: string, seconds: number) => void;
  /** Whether there is a segment of the part. */
  readonly hasSegment: (name: string) => boolean;
  readonly onEnd: (end: SessionEnd) => void;
}

/** What may come before it is known what the stream holds. */
const MAX_UNKNOWN = 4 * 1024 * 1024;
/** How long a stream that the table lists may take to send its first packet, once another has. */
const KINDS_MS = 3000;
const LOOK_MS = 100;
/** How often processes may fail one after another without a segment. */
const MAX_FAILURES = 5;

/** One pull of a stream: from the moment that it is asked for until its encoder goes, or nothing more can be done with it. */
export class Session {
  readonly #options: SessionOptions;
  readonly #puller: RunningProgram;
  readonly #inspector = new TransportStreamInspector();
  readonly #simulcasts: readonly Simulcast[];
  readonly #looking: NodeJS.Timeout;
  readonly #startedAt: number;
  readonly #finishing = new Set<Promise<void>>();
  #streams: readonly ProgramStream[] | undefined;
  #streamsAt = 0;
  /** What came before it was known what the stream holds. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #tables = Buffer.alloc(0);
  #part: Part | undefined;
  #partName = '';
  #partAt = 0;
  #partHasSegment = false;
  #seconds = 0;
  #lastDataAt: number;
  #hasData = false;
  #pausedAt: number | undefined;
  #failures = 0;
  #notBefore = 0;
  #problem: StreamProblem | undefined;
  #isOver = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { source, programs, now, simulcast, log } = options;
    this.#startedAt = now();
    this.#lastDataAt = this.#startedAt;
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

  /** What is wrong while it goes on. */
  get problem(): StreamProblem | undefined {
    if (this.#hasData && !this.isFlowing) return SILENT;
    return this.#problem;
  }

  /** Seconds of media of the part that goes on. */
  get partSeconds(): number {
    return this.#part ? this.#seconds : 0;
  }

  /** Ends the pull; resolves when all that came can be played. */
  async stop(): Promise<void> {
    this.#close();
    this.#finishPart();
    await Promise.all(this.#finishing);
  }

  #close(): void {
    this.#isOver = true;
    clearInterval(this.#looking);
    this.#puller.stdout.removeAllListeners('data').resume();
    // It hangs when it waits for a server; what it has in hand is lost in any case.
    this.#puller.kill();
    for (const simulcast of this.#simulcasts) simulcast.end();
  }

  #end(end: SessionEnd): void {
    if (this.#isOver) return;
    this.#close();
    this.#finishPart();
    this.#options.onEnd(end);
  }

  #pullEnded({ notStarted, lastWords }: ProgramEnd): void {
    if (this.#isOver) return;
    // What was held back until it was known to which part it belongs.
    for (const event of this.#inspector.end()) this.#handle(event);
    if (notStarted !== undefined) {
      const description = `${this.#options.programs.ffmpeg} can't be started (${notStarted}). Install ffmpeg, or set PACKAGER_FFMPEG.`;
      this.#end({ state: 'failed', problem: { code: 'ffmpeg_missing', description } });
    } else if (this.#hasData) {
      this.#end({ state: 'interrupted', problem: ENCODER_GONE });
    } else {
      const said = lastWords === '' ? 'nothing is streamed there' : lastWords;
      const description = `The source can't be pulled: ${said}. It is tried again.`;
      this.#end({ state: 'interrupted', problem: { code: 'source_unavailable', description } });
    }
  }

  #take(chunk: Buffer): void {
    const at = this.#options.now();
    this.#hasData = true;
    this.#lastDataAt = at;
    for (const event of this.#inspector.push(chunk)) {
      if (this.#isOver) return;
      this.#handle(event);
    }
    // Events of a chunk may begin a part with times of its own: those before are as exact as need be.
    this.#seconds = secondsOf(this.#inspector);
    if (
      this.#part &&
      this.#part.waitingBytes > this.#options.limits.waitingBytes &&
      this.#pausedAt === undefined
    ) {
      this.#pausedAt = at;
      this.#puller.stdout.pause();
    }
  }

  #handle(event: TransportStreamEvent): void {
    const { log, now } = this.#options;
    if (event.kind === 'program') {
      this.#streams = event.streams;
      this.#streamsAt = now();
      this.#refuseForeign(event.streams);
    } else if (event.kind === 'part') {
      log.info('new part of a stream', { reason: event.reason, description: event.description });
      this.#tables = Buffer.from(event.tables);
      this.#held = [];
      this.#heldBytes = 0;
      this.#finishPart();
    } else if (event.kind === 'packets') {
      this.#pass(event.bytes);
    }
  }

  #refuseForeign(streams: readonly ProgramStream[]): void {
    const media = streams.filter(({ kind }) => kind !== 'other');
    const foreign = media.find(({ kind, codec }) => codec !== (kind === 'video' ? 'H.264' : 'AAC'));
    if (foreign) {
      const { kind, codec } = foreign;
      const description = `The encoder sends ${kind} as ${codec}. Set it to H.264 video and AAC audio.`;
      this.#end({ state: 'refused', problem: { code: 'codec_unsupported', description } });
    } else if (media.length === 0) {
      const description =
        'The encoder sends neither video nor audio that can be packaged. Set it to H.264 and AAC.';
      this.#end({ state: 'refused', problem: { code: 'codec_unsupported', description } });
    }
  }

  #pass(bytes: Buffer): void {
    if (this.#part) {
      this.#part.write(bytes);
      for (const simulcast of this.#simulcasts) simulcast.write(bytes);
      return;
    }
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    this.#beginPart();
  }

  /** Once it is known what the stream holds, and processes may be started again. */
  #beginPart(): void {
    const { now, newPart, folder, keys, programs, log, limits } = this.#options;
    const kinds = this.#kinds();
    if (this.#heldBytes === 0) return;
    if (!kinds || now() < this.#notBefore) {
      // What is too old to begin with is left out.
      while (this.#heldBytes > MAX_UNKNOWN) this.#heldBytes -= this.#held.shift()?.length ?? 0;
      return;
    }
    const name = newPart(kinds);
    this.#partName = name;
    this.#partAt = now();
    this.#notBefore = this.#partAt + limits.partMs;
    this.#partHasSegment = false;
    const part = new Part({
      ...{ folder, name, kinds, keys, programs, log },
      onFailure: (problem) => this.#partFailed(part, problem),
    });
    this.#part = part;
    const bytes = Buffer.concat([this.#tables, ...this.#held.splice(0)]);
    this.#heldBytes = 0;
    part.write(bytes);
    for (const simulcast of this.#simulcasts) simulcast.write(bytes);
  }

  /** What of the stream is packaged; undefined until each stream has sent something, or has had the time to. */
  #kinds(): MediaKinds | undefined {
    const streams = this.#streams;
    if (!streams) return undefined;
    const wanted = streams.filter(({ kind }) => kind !== 'other');
    const present = wanted.filter(({ pid }) => this.#inspector.timesOf(pid) !== undefined);
    const isLate = this.#options.now() - this.#streamsAt > KINDS_MS;
    if (present.length === 0 || (present.length < wanted.length && !isLate)) return undefined;
    return {
      video: present.some(({ kind }) => kind === 'video'),
      audio: present.some(({ kind }) => kind === 'audio'),
    };
  }

  #finishPart(): void {
    const part = this.#part;
    if (!part) return;
    this.#part = undefined;
    const name = this.#partName;
    const seconds = this.#seconds;
    this.#await(
      part.finish(this.#options.limits.finishMs).then(() => this.#options.onPartDone(name, seconds)),
    );
  }

  #await(finishing: Promise<void>): void {
    const settled = finishing.finally(() => this.#finishing.delete(settled));
    this.#finishing.add(settled);
  }

  #partFailed(part: Part, problem: StreamProblem): void {
    const { now, limits, onPartDone, programs } = this.#options;
    const name = this.#partName;
    if (this.#part === part) this.#part = undefined;
    const seconds = this.#seconds;
    this.#await(part.kill().then(() => onPartDone(name, seconds)));
    this.#resume();
    const unwritable = problemOfFolder(programs.folder);
    if (unwritable) {
      this.#end({ state: 'failed', problem: unwritable });
      return;
    }
    this.#failures = this.#partHasSegment ? 1 : this.#failures + 1;
    if (this.#failures >= MAX_FAILURES) {
      this.#end({ state: 'failed', problem });
      return;
    }
    this.#problem = problem;
    this.#notBefore = now() + Math.max(limits.partMs, limits.retryMs * 2 ** (this.#failures - 1));
  }

  #resume(): void {
    this.#pausedAt = undefined;
    this.#puller.stdout.resume();
  }

  /** What no event tells: time that goes by. */
  #look(): void {
    const { now, limits } = this.#options;
    const at = now();
    const part = this.#part;
    if (this.#pausedAt !== undefined) {
      this.#lastDataAt = at;
      if (!part || part.waitingBytes < limits.waitingBytes / 2) this.#resume();
      else if (at - this.#pausedAt > limits.stalledMs) this.#partFailed(part, STALLED);
    }
    const silentMs = at - this.#lastDataAt;
    if (!this.#hasData && silentMs > limits.firstMediaMs) {
      this.#end({ state: 'interrupted', problem: NO_MEDIA });
    } else if (silentMs > limits.goneMs) {
      this.#end({ state: 'interrupted', problem: SILENT });
    } else if (!part) {
      this.#beginPart();
    } else if (!this.#partHasSegment) {
      this.#partHasSegment = this.#options.hasSegment(this.#partName);
      if (this.#partHasSegment) this.#problem = undefined;
      else if (at - this.#partAt > limits.firstSegmentMs) this.#problem = NO_SEGMENT;
    }
  }
}

const ENCODER_GONE: StreamProblem = {
  code: 'encoder_gone',
  description: 'The encoder has gone. The stream goes on when it comes back.',
};
const SILENT: StreamProblem = {
  code: 'encoder_silent',
  description: 'The encoder is connected and sends nothing. The stream goes on when it does.',
};
const NO_MEDIA: StreamProblem = {
  code: 'no_media',
  description: 'The source was pulled, and sent no media in time. It is tried again.',
};
const NO_SEGMENT: StreamProblem = {
  code: 'no_segment',
  description:
    'Media comes, and no segment can be made of it: set the encoder to a key frame every 2 seconds.',
};
const STALLED: StreamProblem = {
  code: 'packaging_stalled',
  description: 'shaka-packager takes nothing any more. It is started again.',
};

/** Why nothing can be written below a folder, if so. */
export function problemOfFolder(folder: string): StreamProblem | undefined {
  const why = whyNotWritable(folder);
  if (why === undefined) return undefined;
  if (why !== 'ENOSPC' && why !== 'EDQUOT') {
    const description = `Nothing can be written to the folder of the packager (${why}). Correct that; then the stream goes on.`;
    return { code: 'folder_not_writable', description };
  }
  const description =
    'The disk of the packager is full. Make room, or choose another PACKAGER_FOLDER; then the stream goes on.';
  return { code: 'disk_full', description };
}

function secondsOf(inspector: TransportStreamInspector): number {
  const times = (inspector.streams ?? []).flatMap(({ pid }) => inspector.timesOf(pid) ?? []);
  return Math.max(0, ...times.map(({ firstPts, lastPts }) => (lastPts - firstPts) / 90_000));
}
