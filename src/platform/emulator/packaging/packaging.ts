import type { Problem } from '../../../http/faults';
import type { Log } from '../../../http/log';
import { createSemaphore } from '../../../http/semaphore';
import { keyFileOf, type Media } from '../library/media';
import type { Broadcast } from '../live/broadcast';
import type { EmulatorState } from '../state';
import {
  isDone,
  type PackagerAddress,
  PackagerClient,
  type PackagerLimits,
  type StreamDocument,
  type Told,
} from './packager-client';
import { type Wanted, wantedOf } from './wanted';

export interface PackagingSettings extends PackagerLimits {
  /** How often the packager is told what is wanted, in milliseconds of real time. */
  readonly everyMs: number;
}

export const PACKAGING_SETTINGS: PackagingSettings = {
  everyMs: 2_000,
  callMs: 5_000,
  endMs: 60_000,
  idleMs: 60_000,
  fileMs: 600_000,
};

/** Calls at a time: of some lines, and of whole files. */
const CALLS = 16;
const FILES = 2;

/** A file that was not taken is sent again after so many rounds, twice as many after each further time, up to these. */
const FIRST_WAIT = 4;
const LONGEST_WAIT = 64;

/** What `settled` is of a live stream that is over; of a file it is what was sent. */
const REPLAY = 'replay';

/** What is known of a stream at the packager. */
export interface Packaged {
  /** What the packager said of it last. */
  readonly document: StreamDocument | undefined;
  /** Why the packager could not be asked, or does not do what is wanted. */
  readonly problem: Problem | undefined;
  /** Whether the packager has said that it has nothing, and nothing can come any more. */
  readonly isGone: boolean;
}

interface Stream {
  readonly id: string;
  document: StreamDocument | undefined;
  problem: Problem | undefined;
  /** Whether the packager may have something under the id. */
  mayExist: boolean;
  /** What stands at the packager as it is wanted; nothing is to be done until that changes. */
  settled: string | undefined;
  /** The file that was sent last. */
  sent: string | undefined;
  /** Rounds to wait before a file is sent again, and how many it was the last time. */
  wait: number;
  lastWait: number;
  busy: boolean;
  /** Whether something has changed since the call under way began. */
  again: boolean;
  /** The file on its way, and what ends it. */
  sending: { readonly file: string; readonly ending: AbortController } | undefined;
}

interface PackagingParts {
  readonly state: EmulatorState;
  readonly broadcast: Pick<Broadcast, 'sessionOf'>;
  readonly log: Log;
  readonly packager: PackagerAddress | undefined;
}

/**
 * Brings the packager to where the platform is: what is wanted of each event and media is told again and again, so that a
 * packager that was away, or has forgotten, gets there by itself. Without a packager it does nothing.
 */
export class Packaging {
  readonly client: PackagerClient | undefined;
  readonly #parts: PackagingParts;
  readonly #streams = new Map<string, Stream>();
  readonly #calls = createSemaphore(CALLS);
  readonly #files = createSemaphore(FILES);
  readonly #rounds: NodeJS.Timeout | undefined;
  readonly #afterRound = new Set<() => void>();
  readonly #stopMs: number;
  #asking = false;
  #away: string | undefined;

  constructor(parts: PackagingParts, settings: PackagingSettings) {
    this.#parts = parts;
    this.#stopMs = settings.callMs;
    if (!parts.packager) return;
    this.client = new PackagerClient(parts.packager, settings);
    this.#rounds = setInterval(() => void this.#round(), settings.everyMs).unref();
    const { events, media, channels } = parts.state;
    events.watch(({ id }) => this.look(id));
    media.watch(({ id }) => this.look(id));
    channels.watch(({ currentEventId }) => currentEventId !== undefined && this.look(currentEventId));
  }

  /** Whether there is a packager that can pull no live stream. */
  get isUnreachable(): boolean {
    return this.client !== undefined && this.#parts.packager?.rtmpUrl === undefined;
  }

  /** What is known of the stream of an event or a media; undefined when the packager is to have none. */
  find(id: string): Packaged | undefined {
    const stream = this.#streams.get(id);
    if (!stream) return undefined;
    const { document, problem, settled } = stream;
    return { document, problem, isGone: settled !== undefined && document === undefined };
  }

  /**
   * What can be delivered of an event or a media. Undefined while there is no segment, and for media that stand there in
   * the clear but are to be protected.
   */
  deliverable(id: string): StreamDocument | undefined {
    const document = this.#streams.get(id)?.document;
    if (!document || !(document.dash || document.hls)) return undefined;
    return document.protection === 'none' && this.#isToBeProtected(id) ? undefined : document;
  }

  /** Whether there is something to play, or may be soon. */
  isExpected(id: string): boolean {
    const packaged = this.find(id);
    if (!packaged) return false;
    const { document, isGone } = packaged;
    if (!document) return !isGone;
    const isLive = document.kind === 'live' && document.state !== 'ended';
    return document.dash !== null || document.hls !== null || isLive || !isDone(document);
  }

  /** Compares what is wanted under an id with what the packager has, now. */
  look(id: string): void {
    if (this.client) void this.#reconcile(this.client, id);
  }

  /** Calls back after each round, until what is answered is called. */
  afterRounds(listener: () => void): () => void {
    this.#afterRound.add(listener);
    return () => void this.#afterRound.delete(listener);
  }

  /** To be called when the state is empty: the packager loses all that it was told. */
  reset(): void {
    for (const { id } of this.#streams.values()) this.look(id);
  }

  /** Ends the rounds, and takes from the packager what it was told, as far as it answers now. */
  async stop(): Promise<void> {
    clearInterval(this.#rounds);
    const { client } = this;
    if (!client) return;
    const ids = [...this.#streams.values()].filter(({ mayExist }) => mayExist).map(({ id }) => id);
    for (const { sending } of this.#streams.values()) sending?.ending.abort();
    this.#streams.clear();
    const removed = Promise.all(ids.map((id) => this.#call(() => client.remove(id))));
    await Promise.race([removed, new Promise((resolve) => setTimeout(resolve, this.#stopMs).unref())]);
    client.stop();
  }

  /** Whether a media is delivered encrypted alone, so that its file must not be had. */
  encrypts(media: Pick<Media, 'metadata' | 'keyFile'>): boolean {
    return this.client !== undefined && keyFileOf(media) !== undefined;
  }

  #isToBeProtected(id: string): boolean {
    const media = this.#parts.state.media.find(id);
    // Live streams always are.
    return !media || keyFileOf(media) !== undefined;
  }

  #wanted(id: string): Wanted | undefined {
    const { state, broadcast, packager } = this.#parts;
    return wantedOf({ state, broadcast, rtmpUrl: packager?.rtmpUrl }, id);
  }

  async #round(): Promise<void> {
    // The round before may still wait for the packager.
    if (this.#asking || !this.client) return;
    this.#asking = true;
    try {
      await this.#checkSettled(this.client);
    } finally {
      this.#asking = false;
    }
    for (const stream of this.#streams.values()) {
      stream.wait = Math.max(stream.wait - 1, 0);
      // A slow packager is not asked again as soon as it has answered.
      if (!stream.busy) this.look(stream.id);
    }
    for (const listener of this.#afterRound) listener();
  }

  /** One call for all that needs none of its own: a packager that has forgotten something is told it again. */
  async #checkSettled(client: PackagerClient): Promise<void> {
    const settled = [...this.#streams.values()].filter((stream) => stream.settled !== undefined);
    if (settled.every(({ document }) => document === undefined)) return;
    const listed = await this.#call(() => client.list());
    if (!listed.ok) return;
    const documents = new Map(listed.value.map((document) => [document.id, document]));
    for (const stream of settled) {
      if (stream.settled === undefined || !stream.document) continue;
      stream.document = documents.get(stream.id);
      if (stream.document && (stream.settled !== REPLAY || isDone(stream.document))) continue;
      stream.settled = undefined;
      stream.sent = undefined;
    }
  }

  /** One call at a time for each stream. What changes meanwhile is seen to once, however often it does. */
  async #reconcile(client: PackagerClient, id: string): Promise<void> {
    // What has changed is still changing: an event is there before its channel knows.
    await undefined;
    const stream = this.#streams.get(id) ?? this.#begin(id);
    if (!stream) return;
    if (stream.busy) {
      stream.again = true;
      if (stream.sending && stream.sending.file !== fileOf(this.#wanted(id))) stream.sending.ending.abort();
      return;
    }
    stream.busy = true;
    try {
      do {
        stream.again = false;
        await this.#bring(client, stream);
      } while (stream.again);
    } finally {
      stream.busy = false;
    }
  }

  #begin(id: string): Stream | undefined {
    if (!this.#wanted(id)) return undefined;
    const stream: Stream = {
      id,
      document: undefined,
      problem: undefined,
      mayExist: false,
      settled: undefined,
      sent: undefined,
      wait: 0,
      lastWait: 0,
      busy: false,
      again: false,
      sending: undefined,
    };
    this.#streams.set(id, stream);
    return stream;
  }

  /** One step from what the packager has to what is wanted. */
  async #bring(client: PackagerClient, stream: Stream): Promise<void> {
    const { id } = stream;
    const wanted = this.#wanted(id);
    if (!wanted) {
      if (await this.#remove(client, stream)) this.#streams.delete(id);
      return;
    }
    if (stream.document && isAnother(stream.document, wanted)) {
      if (!(await this.#remove(client, stream))) return;
    }
    if (wanted.kind === 'file') {
      await this.#bringFile(client, stream, wanted);
      return;
    }
    stream.sent = undefined;
    if (wanted.kind === 'live') {
      stream.settled = undefined;
      await this.#tell(stream, () => client.putLive(id, wanted.order));
    } else if (wanted.kind === 'interrupted') {
      stream.settled = undefined;
      if (stream.mayExist) await this.#hear(stream, () => client.find(id));
    } else if (stream.settled !== REPLAY) {
      const told = await this.#hear(stream, () => client.end(id));
      if (told.ok ? isDone(told.value) : told.absent) stream.settled = REPLAY;
    }
  }

  async #bringFile(
    client: PackagerClient,
    stream: Stream,
    wanted: Extract<Wanted, { kind: 'file' }>,
  ): Promise<void> {
    const file = fileOf(wanted) ?? '';
    if (stream.settled === file) return;
    stream.settled = undefined;
    if (stream.sent === file) {
      const told = await this.#hear(stream, () => client.find(stream.id));
      if (told.ok ? isToBeTriedAgain(told.value) : told.absent) stream.sent = undefined;
      else if (told.ok && told.value.state !== 'starting') stream.settled = file;
      return;
    }
    if (stream.wait > 0 && stream.problem) return;
    const ending = new AbortController();
    stream.sending = { file, ending };
    const leave = await this.#files.enter();
    try {
      // It may have been deleted, or replaced, while it waited for its turn.
      if (ending.signal.aborted) return;
      const told = await this.#tell(stream, () => client.putFile(stream.id, wanted.order, ending.signal));
      if (told.ok && !isToBeTriedAgain(told.value)) {
        stream.sent = file;
        stream.lastWait = 0;
        if (told.value.state !== 'starting') stream.settled = file;
        return;
      }
      if (ending.signal.aborted) return;
      stream.lastWait = Math.min(Math.max(stream.lastWait * 2, FIRST_WAIT), LONGEST_WAIT);
      stream.wait = stream.lastWait;
    } finally {
      stream.sending = undefined;
      leave();
    }
  }

  /** Removes what the packager may have. Answers whether it is gone. */
  async #remove(client: PackagerClient, stream: Stream): Promise<boolean> {
    if (stream.mayExist) {
      const told = await this.#call(() => client.remove(stream.id));
      if (!told.ok && !told.absent) {
        stream.problem = told.problem;
        return false;
      }
    }
    stream.mayExist = false;
    stream.document = undefined;
    stream.problem = undefined;
    stream.settled = undefined;
    stream.sent = undefined;
    return true;
  }

  /** A call after which the packager may have the stream. */
  async #tell(stream: Stream, call: () => Promise<Told<StreamDocument>>): Promise<Told<StreamDocument>> {
    const before = stream.mayExist;
    stream.mayExist = true;
    const told = await this.#hear(stream, call);
    if (!told.ok && told.unsent) stream.mayExist = before;
    return told;
  }

  /** Keeps what the packager says of a stream. */
  async #hear(stream: Stream, call: () => Promise<Told<StreamDocument>>): Promise<Told<StreamDocument>> {
    const told = await this.#call(call);
    if (told.ok) {
      stream.document = told.value;
      stream.problem = told.value.problem ?? undefined;
      return told;
    }
    if (told.absent) {
      stream.document = undefined;
      stream.mayExist = false;
    }
    stream.problem = told.absent ? undefined : told.problem;
    return told;
  }

  /** Says in the log once that the packager is away, and once that it is back. */
  async #call<T>(call: () => Promise<Told<T>>): Promise<Told<T>> {
    const leave = await this.#calls.enter();
    const told = await call().finally(leave);
    const away =
      told.ok || told.absent || !told.problem.code.startsWith('packager_') ? undefined : told.problem.code;
    if (away !== this.#away) {
      const { log } = this.#parts;
      if (away === undefined) log.info('packager back');
      else log.warn('packager away', { code: away });
      this.#away = away;
    }
    return told;
  }
}

/** What tells one order of a file from another. */
function fileOf(wanted: Wanted | undefined): string | undefined {
  if (wanted?.kind !== 'file') return undefined;
  return JSON.stringify([wanted.order.path, wanted.order.keyFile ?? null]);
}

/** The replay of an event got a file of its own, or a file is to be protected otherwise: the packager takes neither. */
function isAnother({ kind, protection }: StreamDocument, wanted: Wanted): boolean {
  if (wanted.kind !== 'file') return kind !== 'live';
  return kind !== 'file' || protection !== (wanted.order.keyFile === undefined ? 'none' : 'key_file');
}

/** Its key file may be there the next time; a file that can't be packaged stays what it is. */
function isToBeTriedAgain({ state, problem }: StreamDocument): boolean {
  return state === 'refused' && problem?.code.startsWith('key_file') === true;
}
