import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamId } from '../../../api/stream-id';
import { formatUuid } from '../../../drm/bytes';
import type { PackagingKeys } from '../../../drm/packaging';
import { describeThrown } from '../../../http/errors';
import { writeWhole } from '../media-folder';
import { readKeyFile, type StreamProblem } from '../packaging-keys';
import { isPlayableManifest, secondsOfManifest } from '../playlists/dash-manifest';
import { mediaPlaylistsOf, secondsOfPlaylist } from '../playlists/hls-playlists';
import { ENTRY_FILES } from '../shaka-packager';
import {
  documentOf,
  type PartRecord,
  type Protection,
  type StreamDocument,
  type StreamRecord,
  type StreamState,
} from '../stream-document';
import { type MediaKinds, SYSTEMS, type System, systemsOf } from './part';
import { problemOfFolder, Session, type SessionEnd, type SessionSurroundings } from './session';

/** What somebody wants of a live stream. */
export interface LiveRequest {
  /** An RTMP address; its last part is a secret. */
  readonly source: string;
  /** Undefined where nothing is protected. */
  readonly keyFile: StreamId | undefined;
  readonly protection: Protection;
  /** RTMP addresses, each with a secret. */
  readonly simulcast: readonly string[];
}

export interface LiveSurroundings extends SessionSurroundings {
  readonly clock: () => Date;
  readonly keyFilesPath: string;
  /** Whether the packager has room for more media. */
  readonly hasRoom: () => boolean;
}

/** The longest wait before a source that nobody asks for again is tried, and how long it is tried at all. */
const LONGEST_RETRY_MS = 15_000;
const WANTED_MS = 120_000;
/** How many sessions may fail one after another without a segment. */
const MAX_FAILURES = 5;

/** A live stream: what is known of it on disk, and the session that goes on. */
export class LiveStream {
  readonly #surroundings: LiveSurroundings;
  readonly #folder: string;
  /** Folders of parts that may be played. */
  readonly #playable = new Set<string>();
  readonly #record: StreamRecord;
  #request: LiveRequest | undefined;
  #session: Session | undefined;
  #problem: StreamProblem | undefined;
  #state: Exclude<StreamState, 'running'>;
  #attempts = 0;
  #failures = 0;
  #lastAttemptAt = Number.NEGATIVE_INFINITY;
  #wantedAt = 0;
  #retry: NodeJS.Timeout | undefined;
  /** The end that is under way. */
  #ending: Promise<void> | undefined;
  #isRemoved = false;
  /** Sessions that are over and have media to write still. */
  readonly #closing = new Set<Promise<void>>();

  /** @param record what is on disk of it, for one that a packager before has left. */
  constructor(folder: string, record: StreamRecord, surroundings: LiveSurroundings) {
    this.#folder = folder;
    this.#record = record;
    this.#surroundings = surroundings;
    this.#state = record.isEnded ? 'ended' : record.started === null ? 'starting' : 'interrupted';
    // Its processes went with the packager that had begun them.
    for (const part of record.parts) {
      if (!part.isDone) part.seconds = this.#secondsOnDisk(part);
      part.isDone = true;
    }
  }

  get kind(): 'live' {
    return 'live';
  }

  get record(): StreamRecord {
    return this.#record;
  }

  document(): StreamDocument {
    const session = this.#session;
    return documentOf(this.#record, {
      state: session && this.#state !== 'ended' ? this.#stateOf(session) : this.#state,
      problem: session ? (session.problem ?? this.#problemSoFar(session)) : this.#problem,
      partSeconds: this.#openPartSeconds(),
      isPlayable: (system) => this.#record.parts.some((part) => this.#hasPlaylist(part, system)),
    });
  }

  /** Takes what is wanted, and tries again what did not work. An ended stream stays as it is. */
  put(request: LiveRequest): void {
    if (this.#record.isEnded || this.#ending || this.#isRemoved) return;
    this.#wantedAt = this.#surroundings.now();
    const before = this.#request;
    this.#request = request;
    if (before && !isSame(before, request)) {
      this.#attempts = 0;
      this.#lastAttemptAt = Number.NEGATIVE_INFINITY;
      this.#record.keyFile = request.keyFile ?? null;
      if (this.#session) {
        this.#closeSession();
        this.#state = this.#record.started === null ? 'starting' : 'interrupted';
      }
    }
    if (!this.#session && this.#surroundings.now() - this.#lastAttemptAt >= this.#patienceMs) this.#start();
  }

  /** Lets all that came become playable, and closes the stream for good. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Ends its processes, but leaves it to be gone on with. */
  async stop(): Promise<void> {
    clearTimeout(this.#retry);
    this.#request = undefined;
    this.#closeSession();
    await Promise.all(this.#closing);
    if (!this.#isRemoved) this.#save();
  }

  /** Ends its processes; whoever calls it removes the folder. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    await this.stop();
  }

  /** Ends what goes on, because there is no room for more. It is tried again when it is asked for. */
  refuseMore(): void {
    if (!this.#session) return;
    this.#closeSession();
    this.#set('failed', NO_ROOM);
  }

  /** Its last segments may be on their way still; a session that follows writes to other folders. */
  #closeSession(): void {
    const closing = this.#session?.stop().catch((thrown: unknown) => this.#told(thrown));
    this.#session = undefined;
    if (!closing) return;
    this.#closing.add(closing);
    void closing.then(() => this.#closing.delete(closing));
  }

  async #end(): Promise<void> {
    await this.stop();
    this.#record.isEnded = true;
    this.#state = 'ended';
    this.#problem = undefined;
    if (!this.#isRemoved) this.#save();
  }

  /** Who asks again is not put off; but a source that refuses is not asked several times a second. */
  get #patienceMs(): number {
    if (this.#state === 'refused' && this.#problem?.code.startsWith('key_file')) return 0;
    const { retryMs } = this.#surroundings.limits;
    return this.#state === 'interrupted' || this.#state === 'starting' ? retryMs : retryMs * 5;
  }

  #start(): void {
    clearTimeout(this.#retry);
    const { keyFilesPath, now, log, hasRoom, programs } = this.#surroundings;
    const request = this.#request;
    if (!request) return;
    this.#lastAttemptAt = now();
    // What could not be written is not tried before it can: each attempt would leave a little on a full disk.
    const why = this.#state === 'failed' ? problemOfFolder(programs.folder) : undefined;
    const problem = hasRoom() ? why : NO_ROOM;
    if (problem) {
      this.#set('failed', problem);
      return;
    }
    let keys: PackagingKeys | 'none' = 'none';
    if (request.protection === 'key_file') {
      if (request.keyFile === undefined) throw new TypeError('A protected stream has a key file');
      const read = readKeyFile(keyFilesPath, request.keyFile);
      if (!read.ok) {
        this.#set('refused', read.problem);
        return;
      }
      keys = read.keys;
    }
    this.#attempts += 1;
    const taken = keys;
    const session: Session = new Session({
      ...this.#surroundings,
      log,
      source: request.source,
      simulcast: request.simulcast,
      keys,
      folder: this.#folder,
      newPart: (kinds) => this.#newPart(taken, kinds),
      onPartDone: (name) => this.#partDone(name),
      hasSegment: (name) => this.#hasSegment(name),
      onEnd: (end) => this.#sessionEnded(session, end),
    });
    this.#session = session;
  }

  #sessionEnded(session: Session, end: SessionEnd): void {
    if (this.#session !== session) return;
    const { now, limits, log } = this.#surroundings;
    if (end.state === 'changed') {
      log.info('stream changed; it is pulled again', { stream: this.#record.id });
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
    const hadMedia = now() - this.#lastAttemptAt > limits.firstMediaMs || problem.code === 'encoder_gone';
    if (hadMedia) this.#attempts = 1;
    // Where an encoder has gone, nothing can be pulled: that it has gone is what helps.
    const known = this.#problem?.code === 'encoder_gone' ? this.#problem : undefined;
    const told = problem.code === 'source_unavailable' ? (known ?? problem) : problem;
    this.#set(state === 'interrupted' && this.#record.started === null ? 'starting' : state, told);
    this.#closeSession();
    if (state !== 'interrupted' || now() - this.#wantedAt > WANTED_MS) return;
    const delay = Math.min(limits.retryMs * 2 ** Math.max(0, this.#attempts - 1), LONGEST_RETRY_MS);
    this.#retry = setTimeout(() => this.#start(), delay);
    this.#retry.unref();
  }

  #set(state: Exclude<StreamState, 'running'>, problem: StreamProblem): void {
    const { log } = this.#surroundings;
    if (this.#problem?.code !== problem.code) {
      const { id } = this.#record;
      log.warn('stream not packaged', { stream: id, state, code: problem.code, reason: problem.description });
    }
    this.#state = state;
    this.#problem = problem;
  }

  #newPart(keys: PackagingKeys | 'none', kinds: MediaKinds): string {
    const { clock, log } = this.#surroundings;
    const { parts, id } = this.#record;
    const now = clock();
    // A stream that is deleted and made again has other addresses, so that no cache has the segments of the first.
    const name = `part-${parts.length + 1}-${Math.floor(now.getTime() / 1000).toString(36)}`;
    const systems = systemsOf(keys);
    const keyIdsOf = (system: System) => {
      if (!systems.includes(system)) return null;
      const of = keys === 'none' ? undefined : keys[system];
      return of ? [formatUuid(of.keyId)] : [];
    };
    const systemsKeyIds = { dash: keyIdsOf('dash'), hls: keyIdsOf('hls') };
    parts.push({ name, ...systemsKeyIds, bytes: 0, seconds: 0, isDone: false });
    this.#record.started ??= now.toISOString();
    this.#problem = undefined;
    log.info('part of a stream begun', { stream: id, part: name, ...kinds, systems });
    this.#save();
    return name;
  }

  #partDone(name: string): void {
    const part = this.#record.parts.find((each) => each.name === name);
    if (part) {
      part.seconds = this.#secondsOnDisk(part);
      part.isDone = true;
    }
    if (!this.#isRemoved) this.#save();
  }

  /** Seconds that can be played of parts that are written still. */
  #openPartSeconds(): number {
    const open = this.#record.parts.filter(({ isDone }) => !isDone);
    return open.reduce((sum, part) => sum + this.#secondsOnDisk(part), 0);
  }

  #stateOf(session: Session): StreamState {
    if (this.#record.started === null) return 'starting';
    // Who is told that it runs may ask for either format.
    const isPlayable = this.#record.parts.some((part) =>
      SYSTEMS.every((system) => part[system] === null || this.#hasPlaylist(part, system)),
    );
    if (session.isFlowing) return isPlayable ? 'running' : 'starting';
    return isPlayable ? 'interrupted' : 'starting';
  }

  /** While a new attempt goes on, what ended the one before is told still. */
  #problemSoFar(session: Session): StreamProblem | undefined {
    return session.isFlowing ? undefined : this.#problem;
  }

  #hasSegment(name: string): boolean {
    const part = this.#record.parts.find((each) => each.name === name);
    return part !== undefined && SYSTEMS.some((system) => this.#hasPlaylist(part, system));
  }

  /** Whether each track of a part has a segment: a player that sees fewer tracks at first never asks for the others. */
  #hasPlaylist({ name, ...part }: PartRecord, system: System): boolean {
    const folder = join(this.#folder, name, system);
    if (part[system] === null || this.#playable.has(folder)) return part[system] !== null;
    const entry = textOf(folder, ENTRY_FILES[system]);
    const playlists = system === 'hls' ? secondsOfPlaylists(folder, entry) : [];
    const isPlayable =
      system === 'dash'
        ? isPlayableManifest(entry)
        : playlists.length > 0 && playlists.every((seconds) => seconds > 0);
    if (isPlayable) this.#playable.add(folder);
    return isPlayable;
  }

  /** How much can be played of a part whose packager was killed before it could say so. */
  #secondsOnDisk({ name, ...part }: PartRecord): number {
    try {
      const seconds = SYSTEMS.filter((system) => part[system] !== null).map((system) => {
        const folder = join(this.#folder, name, system);
        const entry = textOf(folder, ENTRY_FILES[system]);
        return system === 'dash'
          ? secondsOfManifest(entry)
          : Math.max(0, ...secondsOfPlaylists(folder, entry));
      });
      return Math.max(0, ...seconds);
    } catch (thrown) {
      this.#told(thrown);
      return part.seconds;
    }
  }

  #save(): void {
    if (this.#isRemoved) return;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeWhole(join(this.#folder, 'stream.json'), JSON.stringify(this.#record));
    } catch (thrown) {
      // A full disk is told by the part that can't be written.
      this.#told(thrown);
    }
  }

  #told(thrown: unknown): void {
    const { id } = this.#record;
    this.#surroundings.log.warn('stream not kept', { stream: id, cause: describeThrown(thrown) });
  }
}

function textOf(folder: string, file: string): string {
  return existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : '';
}

/** Of each track that a multivariant playlist names. */
function secondsOfPlaylists(folder: string, master: string): number[] {
  return mediaPlaylistsOf(master).map((file) => secondsOfPlaylist(textOf(folder, file)));
}

const NO_ROOM: StreamProblem = {
  code: 'media_full',
  description: 'All files together have reached the limit (PACKAGER_MAXMB). Delete streams, or raise it.',
};

function isSame(one: LiveRequest, other: LiveRequest): boolean {
  return (
    one.source === other.source &&
    one.keyFile === other.keyFile &&
    one.simulcast.length === other.simulcast.length &&
    one.simulcast.every((address, index) => address === other.simulcast[index])
  );
}
