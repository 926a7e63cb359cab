import { basename } from 'node:path';
import type { Problem } from '../../../http/faults';
import type { Log } from '../../../http/log';
import { createSemaphore } from '../../../http/semaphore';
import type { Broadcast } from '../live/broadcast';
import { isOver } from '../live/live-event';
import { type Channel, keyFileOfChannel } from '../resources/channels';
import { keyFileOf, type Media } from '../resources/media';
import type { EmulatorState } from '../state';
import {
  type FileOrder,
  isDone,
  type LiveOrder,
  type Outcome,
  PACKAGER_LIMITS,
  type PackagerAddress,
  PackagerClient,
  type StreamDocument,
} from './packager-client';
import { StreamNotes } from './stream-notes';

export const PACKAGING_SETTINGS = {
  ...PACKAGER_LIMITS,
  /** How often the packager is compared with what is wanted, in milliseconds of real time. */
  everyMs: 2_000,
};
export type PackagingSettings = Readonly<typeof PACKAGING_SETTINGS>;

/** How many files are sent at a time. */
const FILES = 2;
/** A refused file is sent again after so many rounds. */
const WAIT = 8;

const ABSENT: Outcome<never> = {
  ok: false,
  problem: { code: 'stream_not_found', description: 'The packager has no such stream.' },
  absent: true,
};

/**
 * What the packager is to have under an id. `interrupted`: a live stream whose encoder may come back; `replay`: one that
 * is over.
 */
type Wanted =
  | { readonly kind: 'live'; readonly order: LiveOrder }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'replay' }
  | { readonly kind: 'file'; readonly order: FileOrder };

export type Packaged = Readonly<Pick<Stream, 'document' | 'problem' | 'isGone'>>;

interface Stream {
  readonly id: string;
  document: StreamDocument | undefined;
  /** Why the packager could not be asked, or does not do what is wanted. */
  problem: Problem | undefined;
  /** Whether the packager has nothing of an event that is over. */
  isGone: boolean;
  /** The file that the packager took last. */
  sent?: string | undefined;
  /** The file on its way, and what ends it. */
  sending?: { readonly file: string; readonly ending: AbortController } | undefined;
  /** Rounds to wait before a file is sent again. */
  wait: number;
  /** The calls under way. */
  calling?: Promise<void> | undefined;
  /** Whether it is to be compared again after the call under way. */
  again: boolean;
  /** How many calls were made: a list from before a call is out of date. */
  calls: number;
}

interface PackagingParts {
  readonly state: EmulatorState;
  readonly broadcast: Pick<Broadcast, 'sessionOf'>;
  readonly log: Log;
  readonly packager: PackagerAddress | undefined;
  /** Where it is noted which streams the packager has. */
  readonly notesFolder: string;
  readonly wallClock: () => Date;
}

/**
 * Reconciles the packager with the platform: in each round, and at each change, what is wanted of each event and media is
 * compared with what the packager reports. Without a packager it does nothing.
 */
export class Packaging {
  readonly client: PackagerClient | undefined;
  readonly #parts: PackagingParts;
  readonly #streams = new Map<string, Stream>();
  readonly #files = createSemaphore(FILES);
  readonly #notes: StreamNotes | undefined;
  readonly #rounds: NodeJS.Timeout | undefined;
  readonly #stopMs: number;
  #waiting: (() => void)[] = [];
  #inRound = false;
  #isStopped = false;
  #away: string | undefined;

  constructor(parts: PackagingParts, settings: PackagingSettings) {
    this.#parts = parts;
    this.#stopMs = settings.callMs;
    if (!parts.packager) return;
    const client = new PackagerClient(parts.packager, settings);
    this.client = client;
    this.#notes = new StreamNotes(parts.notesFolder, parts.packager.url, parts.wallClock, parts.log);
    this.#rounds = setInterval(() => void this.#round(client), settings.everyMs).unref();
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
    return this.#streams.get(id);
  }

  /**
   * What can be delivered of an event or a media. Undefined while there is no segment, and for media that were packaged
   * in the clear but are to be protected.
   */
  deliverable(id: string): StreamDocument | undefined {
    const document = this.#streams.get(id)?.document;
    if (!document || !(document.dash || document.hls)) return undefined;
    const media = this.#parts.state.media.find(id);
    // Live streams are always protected.
    const isToBeProtected = !media || keyFileOf(media) !== undefined;
    return document.protection === 'none' && isToBeProtected ? undefined : document;
  }

  /** Whether there is something to play, or may be soon. */
  isExpected(id: string): boolean {
    const stream = this.#streams.get(id);
    if (!stream?.document) return stream !== undefined && !stream.isGone;
    const { dash, hls, kind, state } = stream.document;
    return !!(dash || hls) || (kind === 'live' && state !== 'ended') || !isDone(stream.document);
  }

  /** Whether the packager does not package what is wanted, until somebody corrects it. */
  isRefused(id: string): boolean {
    const state = this.#streams.get(id)?.document?.state;
    return state === 'refused' || state === 'failed';
  }

  /** Why there is nothing to play under an id, and why waiting does not help; undefined otherwise. For the owner alone. */
  whyNothing(id: string): string | undefined {
    const stream = this.#streams.get(id);
    const { document } = stream ?? {};
    if (!stream || document?.dash || document?.hls) return undefined;
    if (!(document ? isDone(document) : stream.isGone)) return undefined;
    return stream.problem?.description ?? 'Nothing of it was recorded.';
  }

  /** Compares what is wanted under an id with what the packager has, now. */
  look(id: string): void {
    if (this.client) void this.#reconcile(this.client, id);
  }

  /** Resolves when the packager was compared once more. */
  nextRound(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** To be called when the state is empty: the packager loses its streams. */
  reset(): void {
    for (const id of this.#streams.keys()) this.look(id);
  }

  /** Ends the rounds, and removes the streams from the packager, as far as it answers in time. The next start does the rest. */
  async stop(): Promise<void> {
    clearInterval(this.#rounds);
    this.#isStopped = true;
    const { client } = this;
    if (!client) return;
    const streams = [...this.#streams.values()];
    for (const { sending } of streams) sending?.ending.abort();
    this.#streams.clear();
    const removed = Promise.all(
      streams.map(async ({ id, calling }) => {
        // A call that is under way would bring the stream back.
        await calling;
        if ((await client.remove(id)).ok) this.#notes?.remove(id);
      }),
    );
    await Promise.race([removed, new Promise((resolve) => setTimeout(resolve, this.#stopMs).unref())]);
    client.stop();
  }

  /** Removes streams of emulators that have ended without doing so. The rest is tried in the next round when one can't be removed. */
  async #removeLeftOver(client: PackagerClient): Promise<void> {
    for (const note of this.#notes?.leftOver() ?? []) {
      const id = basename(note);
      if (!this.#streams.has(id) && !this.#heard(await client.remove(id)).ok) return;
      this.#notes?.drop(note);
    }
  }

  /** Whether a media is delivered encrypted alone, so that its file must not be had. */
  encrypts(media: Pick<Media, 'metadata' | 'keyFile'>): boolean {
    return this.client !== undefined && keyFileOf(media) !== undefined;
  }

  /** What the packager is to have under the id of an event or a media, or undefined when it is to have nothing. */
  #wanted(id: string): Wanted | undefined {
    const { state, broadcast, packager } = this.#parts;
    const event = state.events.find(id);
    const channel = state.channels.find(event?.channelId ?? '');
    if (event && channel && !isOver(event.state)) {
      if (packager?.rtmpUrl === undefined) return undefined;
      if (broadcast.sessionOf(channel.id)?.eventId !== id) return { kind: 'interrupted' };
      return { kind: 'live', order: liveOrder(channel, `${packager.rtmpUrl}/${event.pullToken}`) };
    }
    const media = state.media.find(id);
    if (media?.hostingType !== 'hosted') return undefined;
    const { file } = media;
    if (file) return { kind: 'file', order: { path: file.path, size: file.size, keyFile: keyFileOf(media) } };
    return media.eventId === id ? { kind: 'replay' } : undefined;
  }

  async #round(client: PackagerClient): Promise<void> {
    // The round before may still wait for the packager.
    if (this.#inRound) return;
    this.#inRound = true;
    await this.#removeLeftOver(client);
    const before = new Map([...this.#streams.values()].map((stream) => [stream, stream.calls]));
    const listed: Outcome<readonly StreamDocument[]> =
      before.size === 0 ? { ok: true, value: [] } : this.#heard(await client.list());
    this.#inRound = false;
    for (const [stream, calls] of before) {
      stream.wait = Math.max(stream.wait - 1, 0);
      if (stream.calling || stream.calls !== calls) continue;
      if (listed.ok) {
        const found = listed.value.find(({ id }) => id === stream.id);
        this.#take(stream, found ? { ok: true, value: found } : ABSENT);
        this.look(stream.id);
      } else stream.problem = listed.problem;
    }
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  /** One call at a time for each stream. A change during a call is seen after it. */
  async #reconcile(client: PackagerClient, id: string): Promise<void> {
    // The change under way is completed first: an event is there before its channel knows.
    await undefined;
    const stream = this.#streams.get(id) ?? this.#newStream(id);
    if (!stream) return;
    stream.again = true;
    const { sending } = stream;
    if (sending && sending.file !== fileOf(this.#wanted(id))) sending.ending.abort();
    stream.calling ??= this.#bringAll(client, stream);
  }

  #newStream(id: string): Stream | undefined {
    // A round that was under way at the stop would bring its streams back.
    if (this.#isStopped || !this.#wanted(id)) return undefined;
    const nothing = { document: undefined, problem: undefined, isGone: false };
    const stream = { id, ...nothing, wait: 0, again: false, calls: 0 };
    this.#streams.set(id, stream);
    this.#notes?.add(id);
    return stream;
  }

  async #bringAll(client: PackagerClient, stream: Stream): Promise<void> {
    while (stream.again) {
      stream.again = false;
      await this.#bring(client, stream);
    }
    stream.calling = undefined;
  }

  /** One step from what the packager has to what is wanted. */
  async #bring(client: PackagerClient, stream: Stream): Promise<void> {
    const { id } = stream;
    const wanted = this.#wanted(id);
    if (!wanted || (stream.document && isAnother(stream.document, wanted))) {
      const removed = await client.remove(id);
      this.#take(stream, removed.ok ? ABSENT : removed);
      if (!removed.ok) return;
      stream.problem = undefined;
    }
    if (!wanted) {
      this.#streams.delete(id);
      this.#notes?.remove(id);
    } else if (wanted.kind === 'file') await this.#bringFile(client, stream, wanted.order);
    else if (wanted.kind === 'live') this.#take(stream, await client.putLive(id, wanted.order));
    else if (wanted.kind === 'replay' && stream.document?.state !== 'ended' && !stream.isGone) {
      const ended = this.#take(stream, await client.end(id));
      stream.isGone = !ended.ok && ended.absent;
    }
  }

  async #bringFile(client: PackagerClient, stream: Stream, order: FileOrder): Promise<void> {
    const file = fileOf({ kind: 'file', order }) ?? '';
    if (stream.sent === file || stream.wait > 0) return;
    const ending = new AbortController();
    stream.sending = { file, ending };
    const leave = await this.#files.enter();
    // It may have been deleted, or replaced, while it waited for its turn.
    if (!ending.signal.aborted) {
      const outcome = this.#take(stream, await client.putFile(stream.id, order, ending.signal));
      const isTaken = outcome.ok && !isToBeTriedAgain(outcome.value);
      stream.sent = isTaken ? file : undefined;
      stream.wait = isTaken || ending.signal.aborted ? 0 : WAIT;
    }
    stream.sending = undefined;
    leave();
  }

  /** Keeps the packager's report of a stream. */
  #take(stream: Stream, outcome: Outcome<StreamDocument>): Outcome<StreamDocument> {
    this.#heard(outcome);
    stream.calls += 1;
    if (outcome.ok || outcome.absent) {
      stream.document = outcome.ok ? outcome.value : undefined;
      // Why the packager refused a stream that it does not have holds until the next try.
      if (outcome.ok) stream.problem = outcome.value.problem ?? undefined;
      else if (stream.problem?.code.startsWith('packager_')) stream.problem = undefined;
      if (!outcome.ok) stream.sent = undefined;
    } else stream.problem = outcome.problem;
    return outcome;
  }

  /** Logs once that the packager is away, and once that it is back. */
  #heard<T>(outcome: Outcome<T>): Outcome<T> {
    const { log } = this.#parts;
    const code = outcome.ok || outcome.absent ? '' : outcome.problem.code;
    const away = code.startsWith('packager_') ? code : undefined;
    if (away !== this.#away && code !== 'call_ended') {
      if (away === undefined) log.info('the packager answers again');
      else log.warn('the packager does not answer', { code: away });
      this.#away = away;
    }
    return outcome;
  }
}

function liveOrder(channel: Channel, source: string): LiveOrder {
  const simulcast = channel.metadata.simulcast_targets.map(({ stream_url, stream_key }) => ({
    url: `${stream_url.replace(/\/+$/, '')}/${stream_key}`,
  }));
  const isLow = channel.metadata.latency === 'low';
  return { source, keyFile: keyFileOfChannel(channel), simulcast, ...(isLow && { latency: 'low' }) };
}

/** What distinguishes one order of a file from another. */
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
