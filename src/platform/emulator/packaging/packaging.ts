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
  ABSENT,
  isDone,
  type Outcome,
  PACKAGER_LIMITS,
  type PackagerAddress,
  PackagerClient,
  type StreamDocument,
} from './packager-client';
import { createStreamNotes } from './stream-notes';

export const PACKAGING_SETTINGS = {
  ...PACKAGER_LIMITS,
  /** How often the packager is compared with the platform, in milliseconds of real time. */
  everyMs: 2_000,
};
export type PackagingSettings = Readonly<typeof PACKAGING_SETTINGS>;

/** How many files are sent at a time. */
const MAX_SENDING = 2;
/** A refused file is sent again after so many rounds. */
const RETRY_ROUNDS = 8;

interface FileOrder {
  readonly kind: 'file';
  readonly path: string;
  readonly size: number;
  /** Without one it is packaged in the clear. */
  readonly keyFile: string | undefined;
}

/** The wanted stream of an id. `interrupted`: its encoder may come back; `replay`: its event is over. */
type Wanted =
  | { readonly kind: 'live'; readonly order: object }
  | { readonly kind: 'interrupted' | 'replay' }
  | FileOrder;

interface Stream {
  readonly id: string;
  document: StreamDocument | undefined;
  /** The reason that the packager could not be asked, or does not package the stream. */
  problem?: Problem | undefined;
  /** Whether the packager has nothing of an event that is over. */
  isGone?: boolean;
  sent?: string | undefined;
  sending?: { readonly file: string; readonly ending: AbortController } | undefined;
  wait: number;
  calling?: Promise<void> | undefined;
  /** Whether it is to be compared again after the call under way. */
  isDue: boolean;
}

export type Packaged = Readonly<Pick<Stream, 'document' | 'problem' | 'isGone'>>;

interface PackagingParts {
  readonly state: EmulatorState;
  readonly broadcast: Pick<Broadcast, 'sessionOf'>;
  readonly log: Log;
  readonly packager: PackagerAddress | undefined;
  readonly notesFolder: string;
  readonly wallClock: () => Date;
}

/**
 * Reconciles the packager with the platform: in each round, and at each change of an event, a media or a
 * channel, it compares the wanted streams with those of the packager. Without a packager it does nothing.
 */
export class Packaging {
  readonly client: PackagerClient | undefined;
  readonly #parts: PackagingParts;
  readonly #streams = new Map<string, Stream>();
  readonly #files = createSemaphore(MAX_SENDING);
  readonly #notes: ReturnType<typeof createStreamNotes> | undefined;
  readonly #rounds: NodeJS.Timeout | undefined;
  /** Streams without a call that ended since the list was requested, so that the list is up to date. */
  #listed = new Set<Stream>();
  #waiting: (() => void)[] = [];
  #inRound = false;
  #isStopped = false;
  #away: string | undefined;

  constructor(parts: PackagingParts, settings: PackagingSettings) {
    this.#parts = parts;
    const { packager, state } = parts;
    if (!packager) return;
    const client = new PackagerClient(packager, settings);
    this.client = client;
    this.#notes = createStreamNotes(packager.url, parts);
    this.#rounds = setInterval(() => void this.#round(client), settings.everyMs).unref();
    state.events.watch(({ id }) => this.#reconcile(id));
    state.media.watch(({ id }) => this.#reconcile(id));
    state.channels.watch(
      ({ currentEventId }) => currentEventId !== undefined && this.#reconcile(currentEventId),
    );
  }

  /** Whether there is a packager, but it can't pull live streams. */
  get isUnreachable(): boolean {
    return this.client !== undefined && this.#parts.packager?.rtmpUrl === undefined;
  }

  /** The known state of an event's or media's stream; undefined when the packager is to have none. */
  find(id: string): Packaged | undefined {
    return this.#streams.get(id);
  }

  /** Undefined while there is no segment, and for media that were packaged clear but are to be protected. */
  deliverable(id: string): StreamDocument | undefined {
    const document = this.#streams.get(id)?.document;
    if (!document || !(document.dash || document.hls)) return undefined;
    const media = this.#parts.state.media.find(id);
    // Live streams are always protected.
    const isToBeProtected = !media || keyFileOf(media) !== undefined;
    return document.protection === 'none' && isToBeProtected ? undefined : document;
  }

  /** Whether there is something to play, or will be soon. */
  isExpected(id: string): boolean {
    const stream = this.#streams.get(id);
    const { document } = stream ?? {};
    if (!document) return stream !== undefined && !stream.isGone;
    if (document.dash || document.hls) return true;
    return document.kind === 'live' ? document.state !== 'ended' : !isDone(document);
  }

  /** Whether the packager refuses the stream until somebody corrects it. */
  isRefused(id: string): boolean {
    const state = this.#streams.get(id)?.document?.state;
    return state === 'refused' || state === 'failed';
  }

  /** The reason that an id has nothing to play and waiting does not help, for the owner alone; undefined otherwise. */
  whyNothing(id: string): string | undefined {
    const stream = this.#streams.get(id);
    const { document } = stream ?? {};
    if (!stream || document?.dash || document?.hls) return undefined;
    if (!(document ? isDone(document) : stream.isGone)) return undefined;
    return stream.problem?.description ?? 'Nothing of it was recorded.';
  }

  /** Whether a media is delivered encrypted alone, so that its file must not be had. */
  encrypts(media: Pick<Media, 'metadata' | 'keyFile'>): boolean {
    return this.client !== undefined && keyFileOf(media) !== undefined;
  }

  /** Resolves when the packager was compared once more. */
  nextRound(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** To be called when the state is empty: the packager loses its streams. */
  reset(): void {
    for (const id of this.#streams.keys()) this.#reconcile(id);
  }

  /** Removes the streams from the packager, as far as it answers in time. The next start does the rest. */
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
        if ((await client.remove(id)).absent) this.#notes?.remove(id);
      }),
    );
    const { callMs } = client.limits;
    await Promise.race([removed, new Promise((resolve) => setTimeout(resolve, callMs).unref())]);
    client.stop();
  }

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
    if (file) return { kind: 'file', path: file.path, size: file.size, keyFile: keyFileOf(media) };
    return media.eventId === id ? { kind: 'replay' } : undefined;
  }

  async #round(client: PackagerClient): Promise<void> {
    // The round before may still wait for the packager.
    if (this.#inRound) return;
    this.#inRound = true;
    await this.#removeLeftOver(client);
    this.#listed = new Set(this.#streams.values());
    const listed = this.#listed.size > 0 ? this.#logReachability(await client.list()) : undefined;
    this.#inRound = false;
    const documents = new Map(listed?.ok ? listed.value.map((document) => [document.id, document]) : []);
    for (const stream of this.#listed) {
      stream.wait = Math.max(stream.wait - 1, 0);
      if (stream.calling || !listed) continue;
      if (listed.ok) {
        const value = documents.get(stream.id);
        this.#take(stream, value ? { ok: true, value } : ABSENT);
        this.#reconcile(stream.id);
      } else stream.problem = listed.problem;
    }
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  /** Removes streams of emulators that ended without doing so. After a failure, the next round continues. */
  async #removeLeftOver(client: PackagerClient): Promise<void> {
    for (const note of this.#notes?.leftOver() ?? []) {
      const id = basename(note);
      if (!this.#streams.has(id) && !this.#logReachability(await client.remove(id)).absent) return;
      this.#notes?.drop(note);
    }
  }

  /** Compares the wanted stream of an id with that of the packager. A change during a call is seen after it. */
  async #reconcile(id: string): Promise<void> {
    const { client } = this;
    // The change under way is completed first: an event is there before its channel knows.
    await undefined;
    const wanted = this.#wanted(id);
    let stream = this.#streams.get(id);
    // A round that was under way at the stop would bring its streams back.
    if (!client || this.#isStopped || !(stream || wanted)) return;
    if (!stream) {
      stream = { id, document: undefined, wait: 0, isDue: false };
      this.#streams.set(id, stream);
      this.#notes?.add(id);
    }
    stream.isDue = true;
    if (stream.sending && stream.sending.file !== fileOf(wanted)) stream.sending.ending.abort();
    stream.calling ??= this.#reconcileUntilDone(client, stream);
  }

  async #reconcileUntilDone(client: PackagerClient, stream: Stream): Promise<void> {
    while (stream.isDue) {
      stream.isDue = false;
      await this.#reconcileOnce(client, stream);
    }
    stream.calling = undefined;
  }

  async #reconcileOnce(client: PackagerClient, stream: Stream): Promise<void> {
    const { id } = stream;
    const wanted = this.#wanted(id);
    if (!wanted || (stream.document && isOfOtherKind(stream.document, wanted))) {
      const removed = await client.remove(id);
      this.#take(stream, removed);
      if (!removed.absent) return;
      stream.problem = undefined;
    }
    if (!wanted) {
      this.#streams.delete(id);
      this.#notes?.remove(id);
    } else if (wanted.kind === 'file') await this.#sendFile(client, stream, wanted);
    else if (wanted.kind === 'live')
      // Changes nothing when it runs.
      this.#take(stream, await client.ask({ method: 'PUT', path: `/streams/${id}`, body: wanted.order }));
    else if (wanted.kind === 'replay' && stream.document?.state !== 'ended' && !stream.isGone) {
      const timeout = client.limits.idleMs;
      const ended = await client.ask({ method: 'POST', path: `/streams/${id}/end`, timeout });
      this.#take(stream, ended);
      stream.isGone = !ended.ok && ended.absent;
    }
  }

  async #sendFile(client: PackagerClient, stream: Stream, order: FileOrder): Promise<void> {
    const file = fileOf(order) ?? '';
    if (stream.sent === file || stream.wait > 0) return;
    const ending = new AbortController();
    const { signal } = ending;
    stream.sending = { file, ending };
    using _turn = await this.#files.enter();
    // It may have been deleted, or replaced, while it waited for its turn.
    if (!signal.aborted) {
      const { keyFile } = order;
      const query = keyFile === undefined ? 'protection=none' : `keyFile=${encodeURIComponent(keyFile)}`;
      const path = `/streams/${stream.id}/file?${query}`;
      const call = { method: 'PUT', path, file: order, signal, timeout: client.limits.fileMs };
      const outcome = await client.ask(call);
      this.#take(stream, outcome);
      const isTaken = outcome.ok && !isRetryable(outcome.value);
      stream.sent = isTaken ? file : undefined;
      stream.wait = isTaken || signal.aborted ? 0 : RETRY_ROUNDS;
    }
    stream.sending = undefined;
  }

  #take(stream: Stream, outcome: Outcome<StreamDocument>): void {
    this.#logReachability(outcome);
    this.#listed.delete(stream);
    if (outcome.ok) {
      stream.document = outcome.value;
      stream.problem = outcome.value.problem ?? undefined;
    } else if (outcome.absent) {
      stream.document = undefined;
      stream.sent = undefined;
      // The problem of a stream that the packager refused and does not have holds until the next try.
      if (stream.problem?.code.startsWith('packager_')) stream.problem = undefined;
    } else stream.problem = outcome.problem;
  }

  /** Logs once that the packager is away, and once that it is back. */
  #logReachability<O extends Outcome<unknown>>(outcome: O): O {
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

function liveOrder(channel: Channel, source: string): object {
  const { simulcast_targets: targets, latency } = channel.metadata;
  const simulcast = targets.map(({ stream_url, stream_key }) => ({
    url: `${stream_url.replace(/\/+$/, '')}/${stream_key}`,
  }));
  const order = { source, keyFile: keyFileOfChannel(channel), simulcast, protection: 'key_file' };
  return { ...order, ...(latency === 'low' && { latency }) };
}

function fileOf(wanted: Wanted | undefined): string | undefined {
  return wanted?.kind === 'file' ? JSON.stringify([wanted.path, wanted.keyFile ?? null]) : undefined;
}

/** The replay of an event got a file of its own, or a file is to be protected otherwise: the packager takes neither. */
function isOfOtherKind({ kind, protection }: StreamDocument, wanted: Wanted): boolean {
  if (wanted.kind !== 'file') return kind !== 'live';
  return kind !== 'file' || protection !== (wanted.keyFile === undefined ? 'none' : 'key_file');
}

/** Its key file may be there the next time; a file that can't be packaged stays so. */
function isRetryable({ state, problem }: StreamDocument): boolean {
  return state === 'refused' && problem?.code.startsWith('key_file') === true;
}
