import type { Problem } from '../../../http/faults';
import type { Log } from '../../../http/log';
import { problemOfFolder } from '../media-folder';
import { type ProgramEnd, type RunningProgram, runProgram, secretsOfAddress } from '../running-program';
import type { Programs, StreamKeys } from '../shaka-packager';
import type { LiveRequest, LiveStream } from './live-stream';
import { type MediaKinds, Part } from './part';
import { Simulcast } from './simulcast';
import {
  ChangeWatch,
  PacketReader,
  type ProgramStream,
  readProgramMap,
  StreamCutter,
} from './transport-stream';

/** When a stream counts as silent, stalled or given up, in milliseconds. */
export const LIVE_LIMITS = {
  firstMediaMs: 15_000,
  silentMs: 6000,
  /** When a silent stream is pulled again. */
  goneMs: 35_000,
  /** How many bytes may wait for a process of shaka-packager, or the disk, before the pull is paused. */
  waitingBytes: 8 * 1024 * 1024,
  /** How long the pull may be paused, while a process of shaka-packager takes nothing. */
  stalledMs: 10_000,
  firstSegmentMs: 20_000,
  finishMs: 10_000,
  /** How long to wait before a retry after a failure or end here; five times as long after a failure of the source. */
  retryMs: 1000,
};
export type LiveLimits = Readonly<typeof LIVE_LIMITS>;

export interface SessionDependencies {
  readonly programs: Programs;
  readonly log: Log;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly limits: LiveLimits;
}

/** How a session is over: what the stream is then, and why; or `changed`, when another one goes on at once. */
export type SessionEnd =
  | { readonly state: 'interrupted' | 'refused' | 'failed'; readonly problem: Problem }
  | { readonly state: 'changed'; readonly withSound?: boolean };

/** ffmpeg begins with the tables; a stream without them in so many packets is not from it. */
const MAX_UNKNOWN = 5000;
const LOOK_MS = 100;
/** How long a server may send nothing before ffmpeg gives up by itself, should this process be gone. */
const SILENCE_SECONDS = 40;

/**
 * One pull of a stream, until its encoder goes or nothing more can be done with it. Players see its first part
 * as a period or a discontinuity. Where its keys change, a further part goes on without a discontinuity.
 */
export class Session {
  hasSegment = false;
  readonly #stream: LiveStream;
  readonly #request: LiveRequest;
  readonly #dependencies: SessionDependencies;
  readonly #puller: RunningProgram;
  readonly #simulcasts: readonly Simulcast[];
  readonly #looking: NodeJS.Timeout;
  readonly #packets = new PacketReader();
  /** Data that arrived before the tracks of the stream were known. */
  #unknown: Buffer[] = [];
  #watch: ChangeWatch | undefined;
  #part: Part | undefined;
  /** Other keys than those of the present part; of its sound, some may come. */
  #former: Part | undefined;
  #cutter: StreamCutter | undefined;
  #kinds: MediaKinds = { video: false, audio: false };
  #keys: StreamKeys;
  #partAt = 0;
  #finishing: Promise<void> = Promise.resolve();
  #lastDataAt: number;
  #hasData = false;
  #pausedAt: number | undefined;
  #problem: Problem | undefined;
  #isOver = false;

  /** @param withSound false where an encoder announces sound and sends none. */
  constructor(stream: LiveStream, request: LiveRequest, keys: StreamKeys, withSound: boolean) {
    this.#stream = stream;
    this.#request = request;
    this.#dependencies = stream.dependencies;
    this.#keys = keys;
    const { programs, now } = this.#dependencies;
    this.#lastDataAt = now();
    this.#simulcasts = request.simulcast.map((address) => new Simulcast(address, this.#dependencies));
    this.#puller = pull(request.source, withSound, programs);
    this.#puller.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    void this.#puller.ended.then((end) => this.#pullEnded(end));
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
  }

  get isFlowing(): boolean {
    const { now, limits } = this.#dependencies;
    return this.#hasData && !this.#isOver && now() - this.#lastDataAt < limits.silentMs;
  }

  get problem(): Problem | undefined {
    return this.#hasData && !this.isFlowing ? problemOf('encoder_silent') : this.#problem;
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
    // ffmpeg hangs when it waits for a server; its buffered data is lost in any case.
    this.#puller.kill();
    for (const simulcast of this.#simulcasts) simulcast.end();
    this.#endFormer();
    if (this.#part) this.#complete(this.#part, this.#part.finish(this.#dependencies.limits.finishMs));
  }

  #complete({ record }: Part, ending: Promise<void>): void {
    const done = ending.then(() => this.#stream.partDone(record));
    this.#finishing = Promise.all([this.#finishing, done]).then(() => undefined);
  }

  #endFormer(): void {
    const former = this.#former;
    this.#former = undefined;
    if (former) this.#complete(former, former.finish(this.#dependencies.limits.finishMs));
  }

  #end(end: SessionEnd): void {
    if (this.#isOver) return;
    this.#close();
    this.#stream.sessionEnded(this, end);
  }

  #pullEnded({ notStarted, lastWords }: ProgramEnd): void {
    if (notStarted !== undefined) {
      const description = `${this.#dependencies.programs.ffmpeg} can't be started (${notStarted}). Install ffmpeg, or set PACKAGER_FFMPEG.`;
      this.#end({ state: 'failed', problem: { code: 'ffmpeg_missing', description } });
    } else if (this.#hasData) {
      this.#end({ state: 'interrupted', problem: problemOf('encoder_gone') });
    } else {
      const said = lastWords === '' ? 'nothing is streamed there' : lastWords;
      const description = `The source can't be pulled: ${said}. The packager tries again.`;
      this.#end({ state: 'interrupted', problem: { code: 'source_unavailable', description } });
    }
  }

  #take(chunk: Buffer): void {
    const at = this.#dependencies.now();
    this.#hasData = true;
    this.#lastDataAt = at;
    const packets = this.#packets.push(chunk);
    if (this.#part) this.#write(packets);
    else {
      this.#unknown.push(...packets);
      const streams = this.#unknown.length > MAX_UNKNOWN ? [] : readProgramMap(this.#unknown);
      if (streams) this.#begin(streams);
    }
    const isBehind = (this.#part?.waitingBytes ?? 0) > this.#dependencies.limits.waitingBytes;
    if (isBehind && this.#pausedAt === undefined && !this.#isOver) {
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
    this.#part = this.#startPart(false);
    this.#cutter = new StreamCutter(streams);
    this.#watch = new ChangeWatch(streams);
    this.#write(this.#unknown);
    this.#unknown = [];
  }

  #startPart(continues: boolean): Part {
    const { folder, dependencies } = this.#stream;
    const { now, programs, log } = dependencies;
    const { latency } = this.#request;
    const [kinds, keys] = [this.#kinds, this.#keys];
    const record = this.#stream.newPart(latency, kinds, keys, continues);
    this.#partAt = now();
    this.hasSegment = false;
    const options = { folder, record, kinds, keys, latency, programs, log };
    return new Part({ ...options, onFailure: (failure) => this.#partFailed(failure) });
  }

  #write(packets: readonly Buffer[]): void {
    if (this.#watch?.push(packets)) {
      this.#end({ state: 'changed' });
      return;
    }
    for (const step of this.#cutter?.push(packets, () => this.#isKeyDue()) ?? []) {
      if (step.to === 'former') this.#former?.write(step.bytes);
      else if (step.to === 'present') this.#part?.write(step.bytes);
      else if (step.to === 'end_of_former') this.#endFormer();
      else {
        this.#former = this.#part;
        this.#part = this.#startPart(true);
      }
    }
    for (const simulcast of this.#simulcasts) simulcast.write(Buffer.concat(packets));
  }

  #isKeyDue(): boolean {
    const keys = this.#stream.otherKeys(this.#request.keyFile, this.#keys);
    this.#keys = keys ?? this.#keys;
    return keys !== undefined;
  }

  #partFailed(problem: Problem): void {
    const part = this.#part;
    this.#part = undefined;
    if (part) this.#complete(part, part.kill());
    const unwritable = problemOfFolder(this.#dependencies.programs.folder);
    this.#end(unwritable ? { state: 'failed', problem: unwritable } : { state: 'interrupted', problem });
  }

  /** Checks the time limits, which no event reports. */
  #look(): void {
    const { now, limits } = this.#dependencies;
    const at = now();
    const part = this.#part;
    if (part && this.#pausedAt !== undefined) {
      this.#lastDataAt = at;
      if (part.waitingBytes < limits.waitingBytes / 2) {
        this.#pausedAt = undefined;
        this.#puller.stdout.resume();
      } else if (at - this.#pausedAt > limits.stalledMs) {
        this.#partFailed(problemOf('packaging_stalled'));
        return;
      }
    }
    const silentMs = at - this.#lastDataAt;
    if (!this.#hasData && silentMs > limits.firstMediaMs) {
      this.#end({ state: 'interrupted', problem: problemOf('no_media') });
    } else if (silentMs > limits.goneMs) {
      this.#end({ state: 'interrupted', problem: problemOf('encoder_silent') });
    } else if (part && !this.hasSegment) {
      this.hasSegment = this.#stream.hasSegment(part.record);
      const waitedMs = at - this.#partAt;
      const isLate = !this.hasSegment && waitedMs > limits.firstSegmentMs;
      this.#problem = isLate ? problemOf('no_segment') : undefined;
      // shaka-packager writes nothing before all that is announced has come.
      if (waitedMs > limits.silentMs && this.#cutter?.isMissingSound)
        this.#end({ state: 'changed', withSound: false });
    }
  }
}

/**
 * Pulls a stream by ffmpeg, which writes it as a transport stream without encoding it again. The address ends
 * with a secret, and goes through ffmpeg's input: arguments would show it to every user of the machine.
 */
function pull(source: string, withSound: boolean, { ffmpeg, folder, env }: Programs): RunningProgram {
  const args = [
    ...['-hide_banner', '-nostdin', '-loglevel', 'error'],
    // ffmpeg would correct times that jump by over 30 hours, or back by seconds: sound and picture would drift.
    ...['-dts_error_threshold', '1e10'],
    ...['-protocol_whitelist', 'pipe,fd,rtmp,rtmps,rtmpt,tcp,tls'],
    ...['-f', 'concat', '-safe', '0', '-i', 'pipe:0'],
    ...['-map', '0:v:0?', ...(withSound ? ['-map', '0:a:0?'] : []), '-c', 'copy'],
    ...['-f', 'mpegts', '-mpegts_copyts', '0', '-flush_packets', '1', '-muxdelay', '0', 'pipe:1'],
  ];
  const program = runProgram(ffmpeg, args, { cwd: folder, env, secrets: secretsOfAddress(source) });
  // By default, ffmpeg waits for twenty pictures to guess their rate, which is not used here, and 90 seconds
  // for sound that is announced and never comes.
  const probing = 'option fpsprobesize 0\noption analyzeduration 5000000\n';
  const options = `option rw_timeout ${SILENCE_SECONDS * 1_000_000}\n${probing}`;
  program.stdin.end(`ffconcat version 1.0\nfile '${source}'\n${options}`);
  return program;
}

function problemOfStreams(streams: readonly ProgramStream[]): Problem | undefined {
  const foreign = streams.find(({ codec }) => codec !== 'H.264' && codec !== 'AAC');
  if (streams.length > 0 && !foreign) return undefined;
  const description = foreign
    ? `The encoder sends ${foreign.kind} as ${foreign.codec}. Set it to H.264 video and AAC audio.`
    : 'The encoder sends neither video nor audio that can be packaged. Set it to H.264 and AAC.';
  return { code: 'codec_unsupported', description };
}

const SENTENCES = {
  encoder_gone: 'The encoder has disconnected. The stream continues when it connects again.',
  encoder_silent: 'The encoder is connected and sends nothing. The stream continues when it sends again.',
  no_media: 'The source sent no media in time. The packager tries again.',
  no_segment: 'No segment can be made of the stream of the encoder. Set it to a key frame every 2 seconds.',
  packaging_stalled: 'shaka-packager has stopped reading. The packager starts it again.',
};

function problemOf(code: keyof typeof SENTENCES): Problem {
  return { code, description: SENTENCES[code] };
}
