import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fs from 'fs-extra';
import type { StreamId } from '../../../api/stream-id';
import { describeThrown } from '../../../http/errors';
import type { Problem } from '../../../http/faults';
import { problemOfFolder, writeWhole } from '../media-folder';
import { readKeys } from '../packaging-keys';
import type { Latency } from '../playlists/hls-playlists';
import { type StreamKeys, SYSTEMS, type System, systemsOf, writtenSeconds } from '../shaka-packager';
import {
  documentOf,
  newPart,
  type PartRecord,
  protectedBy,
  type StreamDocument,
  type StreamRecord,
  type StreamState,
} from '../stream-document';
import type { MediaKinds } from './part';
import { Session, type SessionDependencies, type SessionEnd } from './session';

export interface LiveRequest {
  /** An RTMP address; its last part is a secret, as in those of `simulcast`. */
  readonly source: string;
  /** Undefined: the stream is clear. */
  readonly keyFile: StreamId | undefined;
  readonly simulcast: readonly string[];
  /** A change has its effect when the encoder connects again. */
  readonly latency: Latency;
}

export interface LiveDependencies extends SessionDependencies {
  readonly clock: () => Date;
  readonly keyFilesPath: string;
  /** Whether a key file that changes takes effect at the next key frame, and not when the encoder connects again. */
  readonly rotate: boolean;
  readonly hasRoom: () => boolean;
}

/** How long a source is tried after the last request for it. */
const WANTED_MS = 120_000;
/** How many sessions may fail one after another without a segment; the stream is `failed` then. */
const MAX_FAILURES = 5;

/** The playlists of half a day take 0.1 s to read: the length is measured again after so many times as long. */
const MEASURE_PAUSE = 100;

/** A stream of an encoder that may come and go: its record on disk, and its present session. */
export class LiveStream {
  readonly dependencies: LiveDependencies;
  readonly folder: string;
  readonly #playable = new Set<string>();
  readonly record: StreamRecord;
  #request: LiveRequest | undefined;
  #session: Session | undefined;
  /** Why the present key file can't be used, while the stream goes on with the former one. */
  #keyProblem: string | undefined;
  #problem: Problem | undefined;
  #state: Exclude<StreamState, 'running'>;
  #failures = 0;
  #withSound = true;
  #lastAttemptAt = Number.NEGATIVE_INFINITY;
  #wantedAt = 0;
  #measureAt = Number.NEGATIVE_INFINITY;
  #retry: NodeJS.Timeout | undefined;
  #ending: Promise<void> | undefined;
  #isRemoved = false;
  readonly #closing = new Set<Promise<void>>();

  constructor(folder: string, record: StreamRecord, dependencies: LiveDependencies) {
    this.folder = folder;
    this.record = record;
    this.dependencies = dependencies;
    this.#state = record.isEnded ? 'ended' : record.started === null ? 'starting' : 'interrupted';
    // Its processes ended with the packager that had started them.
    for (const part of record.parts) {
      if (!part.isDone) this.#measure(part);
      part.isDone = true;
    }
  }

  document(): StreamDocument {
    const session = this.#session;
    this.#measureOpen();
    return documentOf(this.record, {
      state: session && this.#state !== 'ended' ? this.#stateOf(session) : this.#state,
      problem: session ? (session.problem ?? this.#problemSoFar(session)) : this.#problem,
      isPlayable: (system) => this.record.parts.some((part) => this.#isPlayable(part, system)),
    });
  }

  /** Keeps the stream wanted, and tries a failed one again. An ended stream stays as it is. */
  put(request: LiveRequest): void {
    if (this.record.isEnded || this.#ending || this.#isRemoved) return;
    this.#wantedAt = this.dependencies.now();
    const before = this.#request;
    this.#request = request;
    if (before && !isSame(before, request)) {
      this.#lastAttemptAt = Number.NEGATIVE_INFINITY;
      Object.assign(this.record, protectedBy(request.keyFile));
      if (this.#session) {
        this.#closeSession();
        this.#state = this.record.started === null ? 'starting' : 'interrupted';
      }
    }
    if (!this.#session && this.dependencies.now() - this.#lastAttemptAt >= this.#patienceMs) this.#start();
  }

  /** Makes all received media playable, and closes the stream for good. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Ends its processes, but keeps the stream to continue later. */
  async stop(): Promise<void> {
    clearTimeout(this.#retry);
    this.#request = undefined;
    this.#closeSession();
    await Promise.all(this.#closing);
    this.#save();
  }

  /** Ends its processes; the caller removes the folder. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    await this.stop();
  }

  /** Ends the session, because there is no room for more media. The next request tries it again. */
  refuseMore(): void {
    if (!this.#session) return;
    this.#closeSession();
    this.#set('failed', NO_ROOM);
  }

  /** Its last segments may be on their way still; a session that follows writes to other folders. */
  #closeSession(): void {
    const closing = this.#session?.stop().catch((thrown: unknown) => this.#logFailure(thrown));
    this.#session = undefined;
    if (!closing) return;
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }

  async #end(): Promise<void> {
    await this.stop();
    this.record.isEnded = true;
    this.#state = 'ended';
    this.#problem = undefined;
    this.#save();
  }

  /** The least time between two tries: longer for a source that refuses, none for a key file. */
  get #patienceMs(): number {
    if (this.#state === 'refused' && this.#problem?.code.startsWith('key_file')) return 0;
    const { retryMs } = this.dependencies.limits;
    return this.#state === 'interrupted' || this.#state === 'starting' ? retryMs : retryMs * 5;
  }

  #start(): void {
    clearTimeout(this.#retry);
    const { keyFilesPath, now, hasRoom, programs } = this.dependencies;
    const request = this.#request;
    if (!request) return;
    this.#lastAttemptAt = now();
    // Not tried until the folder is writable: each attempt would leave a little on a full disk.
    const why = this.#state === 'failed' ? problemOfFolder(programs.folder) : undefined;
    const problem = hasRoom() ? why : NO_ROOM;
    if (problem) {
      this.#set('failed', problem);
      return;
    }
    const read = readKeys(keyFilesPath, request.keyFile);
    if (!read.ok) {
      this.#set('refused', read.problem);
      return;
    }
    this.#session = new Session(this, request, read.keys, this.#withSound);
  }

  /** A session calls it once at most, and not after its `stop`. */
  sessionEnded(session: Session, end: SessionEnd): void {
    if (this.#session !== session) return;
    const { now, limits, log } = this.dependencies;
    this.#withSound = end.state !== 'changed' || (end.withSound ?? this.#withSound);
    if (end.state === 'changed') {
      const what = this.#withSound ? 'changed its stream' : 'sends none of the sound that it announces';
      log.info(`the encoder ${what}; the packager pulls it again`, { stream: this.record.id });
      this.#closeSession();
      const delay = Math.max(0, limits.retryMs - (now() - this.#lastAttemptAt));
      this.#retry = setTimeout(() => this.#start(), delay).unref();
      return;
    }
    const { problem } = end;
    const isOwnFailure = /^(?:packaging|part|recording)_/.test(problem.code);
    this.#failures = isOwnFailure ? (session.hasSegment ? 1 : this.#failures + 1) : 0;
    const state = this.#failures >= MAX_FAILURES ? 'failed' : end.state;
    if (state === 'failed') this.#failures = 0;
    // A pull also fails when the encoder has gone, which is the helpful message.
    const known = this.#problem?.code === 'encoder_gone' ? this.#problem : undefined;
    const reported = problem.code === 'source_unavailable' ? (known ?? problem) : problem;
    this.#set(state === 'interrupted' && this.record.started === null ? 'starting' : state, reported);
    this.#closeSession();
    if (state !== 'interrupted' || now() - this.#wantedAt > WANTED_MS) return;
    // An encoder whose connection broke is soon back.
    const isSoon = isOwnFailure || problem.code === 'encoder_gone';
    const delay = isSoon ? limits.retryMs : limits.retryMs * 5;
    this.#retry = setTimeout(() => this.#start(), delay).unref();
  }

  #set(state: Exclude<StreamState, 'running'>, problem: Problem): void {
    const { log } = this.dependencies;
    if (this.#problem?.code !== problem.code) {
      const { id } = this.record;
      log.warn('stream not packaged', { stream: id, state, code: problem.code, reason: problem.description });
    }
    this.#state = state;
    this.#problem = problem;
  }

  /**
   * The keys of a key file that has changed, with which the next part begins: asked at each key frame. With one that
   * can't be used, the stream goes on with those it has.
   */
  otherKeys(keyFile: StreamId | undefined, present: StreamKeys): StreamKeys | undefined {
    const { keyFilesPath, log, rotate } = this.dependencies;
    if (!rotate) return undefined;
    const read = readKeys(keyFilesPath, keyFile);
    if (read.ok) {
      this.#keyProblem = undefined;
      return isDeepStrictEqual(read.keys, present) ? undefined : read.keys;
    }
    const { code, description: reason } = read.problem;
    if (code !== this.#keyProblem)
      log.warn('new key file not used; the stream keeps its key', { stream: this.record.id, code, reason });
    this.#keyProblem = code;
    return undefined;
  }

  /** Makes the record of a part, once its tracks are known: the first one of a session, or one that continues it. */
  newPart(latency: Latency, kinds: MediaKinds, keys: StreamKeys, isSameSession: boolean): PartRecord {
    const { clock, log } = this.dependencies;
    const { parts, id } = this.record;
    const now = clock();
    const before = parts.at(-1);
    // A system that the previous part does not have can't continue.
    const continues =
      isSameSession &&
      SYSTEMS.every((system) => (before?.[system] === null) === !systemsOf(keys).includes(system));
    const part = newPart(`part-${parts.length + 1}`, keys, now, continues);
    parts.push(part);
    Object.assign(this.record, { latency, started: this.record.started ?? now.toISOString() });
    this.#problem = undefined;
    log.info('part of a stream started', { stream: id, part: part.name, ...kinds });
    this.#save();
    return part;
  }

  /** Nothing is written to the part any more; its session may have ended. */
  partDone(part: PartRecord): void {
    this.#measure(part);
    part.isDone = true;
    this.#save();
  }

  hasSegment(part: PartRecord): boolean {
    return SYSTEMS.some((system) => this.#isPlayable(part, system));
  }

  #stateOf(session: Session): StreamState {
    // A refused stream is tried again every few seconds, and stays refused until it works.
    if (this.#state === 'refused' && this.#problemSoFar(session)) return 'refused';
    if (this.record.started === null) return 'starting';
    // A client that sees it running may ask for either format.
    const isPlayable = this.record.parts.some((part) =>
      SYSTEMS.every((system) => part[system] === null || this.#isPlayable(part, system)),
    );
    if (session.isFlowing) return isPlayable ? 'running' : 'starting';
    return isPlayable ? 'interrupted' : 'starting';
  }

  /** During a new attempt, the problem of the one before is still reported. */
  #problemSoFar(session: Session): Problem | undefined {
    return session.isFlowing ? undefined : this.#problem;
  }

  /** Whether each track of a part has a segment: a player that sees fewer tracks at first never asks for the others. */
  #isPlayable({ name, ...part }: PartRecord, system: System): boolean {
    const folder = join(this.folder, name, system);
    if (part[system] === null || this.#playable.has(folder)) return part[system] !== null;
    const tracks = writtenSeconds(folder, system);
    const isPlayable = tracks.length > 0 && tracks.every((seconds) => seconds > 0);
    if (isPlayable) this.#playable.add(folder);
    return isPlayable;
  }

  #measureOpen(): void {
    const { now } = this.dependencies;
    const at = now();
    if (at < this.#measureAt) return;
    for (const part of this.record.parts) if (!part.isDone) this.#measure(part);
    const done = now();
    this.#measureAt = done + MEASURE_PAUSE * (done - at);
  }

  #measure(part: PartRecord): void {
    try {
      const systems = SYSTEMS.filter((system) => part[system] !== null);
      const all = systems.flatMap((system) => writtenSeconds(join(this.folder, part.name, system), system));
      part.seconds = Math.max(0, ...all);
    } catch (thrown) {
      this.#logFailure(thrown);
    }
  }

  #save(): void {
    if (this.#isRemoved) return;
    try {
      fs.ensureDirSync(this.folder, 0o700);
      writeWhole(join(this.folder, 'stream.json'), JSON.stringify(this.record));
    } catch (thrown) {
      // A full disk is reported by the part that can't be written.
      this.#logFailure(thrown);
    }
  }

  #logFailure(thrown: unknown): void {
    const { id } = this.record;
    this.dependencies.log.warn('stream not kept', { stream: id, cause: describeThrown(thrown) });
  }
}

const NO_ROOM: Problem = {
  code: 'media_full',
  description: 'All files together have reached the limit (PACKAGER_MAXMB). Delete streams, or raise it.',
};

function isSame(one: LiveRequest, other: LiveRequest): boolean {
  return isDeepStrictEqual({ ...one, latency: other.latency }, other);
}
