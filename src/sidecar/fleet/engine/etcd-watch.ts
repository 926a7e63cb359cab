import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import {
  EngineError,
  type KeyRange,
  type Moment,
  type Watch,
  type WatchEnd,
  type WatchedEvent,
  type WatchOptions,
} from './engine';
import { type Calls, pauseBefore } from './etcd-calls';
import { Failed, faultOfAnswer, faultOfText, parseAnswer } from './etcd-faults';
import { type Fields, fields, list, momentOf, rangeOf, storedValue, text, whole } from './etcd-json';

/**
 * Asks a server what only one with a majority answers: how far the engine is. Watches share an answer that is at most a
 * second old, unless it has to be `fresh`. @throws Failed
 */
export type Heartbeat = (server: string, fresh: boolean) => Promise<Moment>;

/** While a server has no leader, its watches stay, and so many heartbeats come at an eighth of the interval. */
const ELECTION_HEARTBEATS = 6;
const LINE_FEED = 10;

/** A connection of a watch ended that ends the watch itself. */
class Ended extends Error {
  constructor(readonly end: WatchEnd) {
    super(end.kind);
    this.name = 'Ended';
  }
}

/** `onEvents` rejected. */
class NotTaken extends Error {}

/** Watches a range of keys. */
export class EtcdWatch implements Watch {
  /** Everything up to this revision was reported. */
  #reported: number;
  /** The moment and the revision before which the next heartbeat must not be. */
  #floor: Moment;
  #floorRevision: number;
  #isLost = false;
  readonly #closing = new AbortController();
  /** Attempts since the last connection that lasted. */
  #attempts = 0;
  /** Whether the token was refused at the last attempt: a second time, its age is not the reason. */
  #isTokenRefused = false;
  #stream: IncomingMessage | undefined;

  constructor(
    readonly calls: Calls,
    readonly heartbeat: Heartbeat,
    readonly range: KeyRange,
    readonly options: WatchOptions,
  ) {
    this.#reported = options.from - 1;
    this.#floor = options.since;
    this.#floorRevision = this.#reported;
    void this.#run();
  }

  close(): void {
    this.#closing.abort();
    this.#stream?.destroy();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const server = this.calls.current;
      const thrown = await this.#follow(server).catch((caught: unknown) => caught);
      if (this.#isClosed) return;
      if (thrown instanceof Ended) {
        this.close();
        this.options.onEnd(thrown.end);
        return;
      }
      const ms = this.#waitAfter(server, thrown);
      if (ms > 0)
        await pause(ms, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
    }
  }

  /** Watches over one connection; resolves with the reason of its end. */
  async #follow(server: string): Promise<unknown> {
    const [key, range_end] = rangeOf(this.range);
    // Without fragments, a message of many large changes after an absence would take several times its size in memory.
    const options = { start_revision: String(this.#reported + 1), progress_notify: true, fragment: true };
    const body = { create_request: { key, range_end, ...options } };
    const { response, signInAgain } = await this.calls.open(server, '/v3/watch', body);
    this.#stream = response;
    let failed: unknown;
    const fail = (thrown: unknown) => {
      failed ??= thrown;
      response.destroy();
    };
    const limit = setTimeout(
      () => fail(troubleOf(server, 'did not begin the watch in time')),
      this.calls.pace.attemptMs,
    ).unref();
    const lines = new Lines();
    const events = new Assembly();
    try {
      if (this.#isClosed) return undefined;
      for await (const chunk of response) {
        for (const line of lines.add(chunk)) {
          const message = readMessage(server, line);
          if (message.canceled === true) throw endOrFault(server, message, signInAgain);
          if (message.created === true) {
            clearTimeout(limit);
            this.#check(await this.heartbeat(server, true));
            void this.#heartbeatWhile(response, server, fail);
          }
          events.add(message);
        }
        await this.#report(events);
      }
      return failed ?? troubleOf(server, 'ended the watch');
    } catch (thrown) {
      if (failed !== undefined || thrown instanceof Failed || thrown instanceof Ended)
        return failed ?? thrown;
      return thrown instanceof NotTaken
        ? thrown.cause
        : troubleOf(server, `the watch was cut: ${messageOf(thrown)}`);
    } finally {
      clearTimeout(limit);
      response.destroy();
    }
  }

  /** Checks again and again, while a connection lasts, that its server has a majority. */
  async #heartbeatWhile(
    response: IncomingMessage,
    server: string,
    fail: (thrown: unknown) => void,
  ): Promise<void> {
    const { heartbeatMs } = this.calls.pace;
    let leaderless = 0;
    for (;;) {
      const ms = leaderless > 0 ? heartbeatMs / 8 : heartbeatMs;
      await pause(ms, undefined, { ref: false });
      if (response.destroyed) return;
      try {
        const at = await this.heartbeat(server, leaderless > 0);
        if (response.destroyed) return;
        [this.#attempts, leaderless] = [0, 0];
        this.#check(at);
      } catch (thrown) {
        const isElection = thrown instanceof Failed && thrown.fault.isLeaderless === true;
        if (isElection && leaderless < ELECTION_HEARTBEATS) leaderless += 1;
        else {
          this.#lose(thrown);
          fail(thrown);
          return;
        }
      }
    }
  }

  /** @throws Ended */
  #check(at: Moment): void {
    if (this.#isClosed) return;
    const { cluster, term, revision } = this.#floor;
    const isLater = at.cluster === cluster && at.term >= term && at.revision >= revision;
    if (!isLater || at.revision < this.#floorRevision) throw new Ended({ kind: 'restored', at });
    this.#floor = at;
    // What was reported since may be newer than this heartbeat.
    this.#floorRevision = this.#reported;
    this.#isLost = false;
    this.#isTokenRefused = false;
    this.options.onHeartbeat?.(at);
  }

  async #report(events: Assembly): Promise<void> {
    const { batch, at, progress } = events.take();
    if (batch.length > 0 && at && !this.#isClosed) {
      await this.options.onEvents(batch, at).catch((cause: unknown) => {
        throw new NotTaken('the changes were not taken', { cause });
      });
      this.#reported = Math.max(this.#reported, batch.at(-1)?.revision ?? 0);
    }
    this.#reported = Math.max(this.#reported, progress);
  }

  #lose(thrown: unknown): void {
    if (this.#isLost || this.#isClosed || thrown instanceof Ended) return;
    this.#isLost = true;
    this.options.onLost?.(
      thrown instanceof Failed
        ? thrown.toEngineError()
        : new EngineError('unavailable', messageOf(thrown), { cause: thrown }),
    );
  }

  /** The pause before the next attempt: none until every server was tried. */
  #waitAfter(server: string, thrown: unknown): number {
    const { kind, signIn = false } = thrown instanceof Failed ? thrown.fault : {};
    const isTokenOld = signIn && !this.#isTokenRefused;
    this.#isTokenRefused = signIn;
    if (isTokenOld) return 0;
    this.#lose(thrown);
    if (kind === 'denied') return this.calls.pace.deniedMs;
    // Otherwise `onEvents` failed: that is no fault of the server.
    if (thrown instanceof Failed) this.calls.skip(server, thrown.fault.why);
    this.#attempts += 1;
    return pauseBefore(this.#attempts - this.calls.servers.length);
  }
}

/** Splits bytes into lines. */
class Lines {
  #parts: Buffer[] = [];

  /** The lines that are complete now, without their ends. Empty ones are left out. */
  add(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      const line = Buffer.concat([...this.#parts, chunk.subarray(from, end)]);
      this.#parts = [];
      if (line.length > 0) lines.push(line);
      from = end + 1;
    }
    if (from < chunk.length) this.#parts.push(chunk.subarray(from));
    return lines;
  }
}

/** Joins the changes of a revision that come in several messages. */
class Assembly {
  #events: WatchedEvent[] = [];
  #at: Moment | undefined;
  /** Whether more of the last revision may come. */
  #isOpen = false;
  #progress = 0;

  add(message: Fields): void {
    const events = list(message.events);
    for (const event of events) this.#events.push(eventOf(event));
    this.#at = momentOf(message) ?? this.#at;
    this.#isOpen = message.fragment === true;
    // A message without changes, except the first, reports that there are none up to its revision.
    if (events.length === 0 && message.created !== true) this.#progress = this.#at?.revision ?? 0;
  }

  /** The changes of complete revisions, and the revision up to which there are no others. */
  take(): { batch: readonly WatchedEvent[]; at: Moment | undefined; progress: number } {
    const last = this.#events.at(-1)?.revision;
    const open = this.#isOpen ? this.#events.findIndex(({ revision }) => revision === last) : -1;
    const batch = open === -1 ? this.#events : this.#events.slice(0, open);
    this.#events = open === -1 ? [] : this.#events.slice(open);
    const progress = this.#events.length === 0 ? this.#progress : 0;
    this.#progress = 0;
    return { batch, at: this.#at, progress };
  }
}

function eventOf(event: unknown): WatchedEvent {
  const { type, kv } = fields(event);
  const { key, value, revision } = storedValue(kv);
  return { key, value: type === 'DELETE' ? undefined : value, revision };
}

/** @throws Failed */
function readMessage(server: string, line: Buffer): Fields {
  const json = parseAnswer(line);
  if (json === undefined || json.error !== undefined || json.result === undefined)
    throw new Failed(server, faultOfAnswer(200, line));
  return fields(json.result);
}

function endOrFault(server: string, message: Fields, signInAgain: () => void): Ended | Failed {
  const failed = troubleOf(server, text(message.cancel_reason) || 'cancelled the watch');
  if (whole(message.compact_revision) > 0 || failed.fault.kind === 'compacted')
    return new Ended({ kind: 'compacted' });
  if (failed.fault.signIn) signInAgain();
  return failed;
}

/** The fault of a server, by default `unavailable`: gRPC's code 14. */
function troubleOf(server: string, why: string): Failed {
  return new Failed(server, faultOfText(why, 14));
}

function messageOf(thrown: unknown): string {
  if (thrown instanceof Failed) return thrown.fault.why;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
