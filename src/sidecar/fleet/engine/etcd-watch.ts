import type { IncomingMessage } from 'node:http';
import {
  EngineError,
  type KeyRange,
  type Moment,
  type Watch,
  type WatchEnd,
  type WatchedEvent,
  type WatchOptions,
} from './engine';
import { type Calls, type EtcdServer, isOfHistory } from './etcd-calls';
import { Failed, faultOfAnswer, faultOfText, parseAnswer } from './etcd-faults';
import { type Fields, fields, list, momentOf, rangeOf, storedValue, text, whole } from './etcd-json';
import { Lines } from './etcd-lines';
import type { Pulse } from './etcd-pulse';

/** So long a server may take to begin a watch. */
const BEGIN_MS = 1500;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 1000;
/** A right that is lacking is asked for again after so long. */
const DENIED_WAIT_MS = 3000;

/** Why a connection of a watch ended that ends the watch itself. */
class Ended extends Error {
  constructor(readonly end: WatchEnd) {
    super(end.kind);
    this.name = 'Ended';
  }
}

/** Whoever takes the changes failed. */
class NotTaken extends Error {}

/** Watches a range of keys; `pulseOf` is the pulse of a server that all watches share. */
export function openWatch(
  calls: Calls,
  pulseOf: (server: EtcdServer) => Pulse,
  range: KeyRange,
  options: WatchOptions,
): Watch {
  const watch = new EtcdWatch(calls, pulseOf, range, options);
  watch.run();
  return { close: () => watch.close() };
}

class EtcdWatch {
  /** All up to this revision was told. */
  #told: number;
  /** What the next pulse must not be before. What was told since the last one does not count: it may be older. */
  #floor: Moment | undefined;
  #floorRevision: number;
  #isLost = false;
  #isClosed = false;
  /** Attempts since the last connection that lasted. */
  #attempts = 0;
  /** Whether the token was refused at the last attempt: at a second time that is no matter of its age. */
  #isTokenRefused = false;
  #stream: IncomingMessage | undefined;
  #wake: (() => void) | undefined;

  constructor(
    readonly calls: Calls,
    readonly pulseOf: (server: EtcdServer) => Pulse,
    readonly range: KeyRange,
    readonly options: WatchOptions,
  ) {
    this.#told = options.from - 1;
    this.#floor = options.since ?? calls.history.newest;
    this.#floorRevision = this.#told;
  }

  close(): void {
    this.#isClosed = true;
    this.#stream?.destroy();
    this.#wake?.();
  }

  async run(): Promise<void> {
    while (!this.#isClosed) {
      const server = this.calls.current;
      const thrown = await this.#follow(server).catch((caught: unknown) => caught);
      if (this.#isClosed) return;
      if (thrown instanceof Ended) {
        this.#isClosed = true;
        this.options.onEnd(thrown.end);
        return;
      }
      await this.#wait(this.#waitAfter(server, thrown));
    }
  }

  /** Watches over one connection until that ends. Never resolves but with why it did. */
  async #follow(server: EtcdServer): Promise<unknown> {
    const [key, range_end] = rangeOf(this.range);
    const body = {
      create_request: {
        key,
        range_end,
        start_revision: String(this.#told + 1),
        progress_notify: true,
        // A message of many large changes, after an absence, would take its size several times in memory.
        fragment: true,
      },
    };
    const { response, signInAnew } = await this.calls.open(server, '/v3/watch', body, BEGIN_MS);
    this.#stream = response;
    let failed: unknown;
    const fail = (thrown: unknown) => {
      failed ??= thrown;
      response.destroy();
    };
    const limit = setTimeout(() => fail(silent(server)), BEGIN_MS).unref();
    let leave: (() => void) | undefined;
    const pulse = this.pulseOf(server);
    const lines = new Lines();
    const events = new Assembly();
    try {
      if (this.#isClosed) return undefined;
      for await (const chunk of response) {
        for (const line of lines.add(chunk)) {
          const message = readMessage(server, line);
          if (message.canceled === true) throw endOrFault(server, message, signInAnew);
          if (message.created === true) {
            clearTimeout(limit);
            this.#check(await pulse.confirm(key));
            leave = pulse.join({
              key,
              onPulse: (at) => {
                this.#attempts = 0;
                try {
                  this.#check(at);
                } catch (thrown) {
                  fail(thrown);
                }
              },
              onFailed: (thrown) => {
                this.#lose(thrown);
                fail(thrown);
              },
            });
          }
          events.add(message);
        }
        await this.#tell(events);
      }
      return failed ?? new Failed(server.url, faultOfText('ended the watch', 14));
    } catch (thrown) {
      if (failed !== undefined || thrown instanceof Failed || thrown instanceof Ended)
        return failed ?? thrown;
      return thrown instanceof NotTaken ? thrown.cause : cut(server, thrown);
    } finally {
      clearTimeout(limit);
      leave?.();
      response.destroy();
    }
  }

  /** Takes what a majority told. @throws Ended */
  #check(at: Moment): void {
    if (this.#isClosed) return;
    if (!isOfHistory(at, this.#floor) || at.revision < this.#floorRevision)
      throw new Ended({ kind: 'restored', at });
    this.#floor = at;
    this.#floorRevision = this.#told;
    this.#isLost = false;
    this.#isTokenRefused = false;
    this.options.onPulse?.(at);
  }

  async #tell(events: Assembly): Promise<void> {
    const { batch, at, progress } = events.take();
    if (batch.length > 0 && at && !this.#isClosed) {
      await this.options.onEvents(batch, at).catch((cause: unknown) => {
        throw new NotTaken('the changes were not taken', { cause });
      });
      this.#told = Math.max(this.#told, batch.at(-1)?.revision ?? 0);
    }
    this.#told = Math.max(this.#told, progress);
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

  /** How long to wait before the next attempt: not at all before each server was tried. */
  #waitAfter(server: EtcdServer, thrown: unknown): number {
    const { kind, signIn = false } = thrown instanceof Failed ? thrown.fault : {};
    const isTokenOld = signIn && !this.#isTokenRefused;
    this.#isTokenRefused = signIn;
    if (isTokenOld) return 0;
    this.#lose(thrown);
    if (kind === 'denied') return DENIED_WAIT_MS;
    // What the one who takes the changes throws is no fault of the server's.
    if (thrown instanceof Failed) this.calls.passOver(server, thrown.fault.why);
    this.#attempts += 1;
    const round = this.#attempts - this.calls.servers.length;
    return round < 0 ? 0 : Math.min(FIRST_WAIT_MS * 2 ** Math.min(round, 10), LONGEST_WAIT_MS);
  }

  async #wait(ms: number): Promise<void> {
    if (ms === 0 || this.#isClosed) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, ms).unref();
    });
  }
}

/** Puts the changes of a revision together that come in several messages. */
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
    // A message without changes says that there are none up to its revision. The first one says nothing yet.
    if (events.length === 0 && message.created !== true) this.#progress = this.#at?.revision ?? 0;
  }

  /** All of whole revisions, and up to where there are no others. */
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
function readMessage(server: EtcdServer, line: Buffer): Fields {
  const json = parseAnswer(line);
  if (json === undefined || json.error !== undefined || json.result === undefined)
    throw new Failed(server.url, faultOfAnswer(200, line));
  return fields(json.result);
}

function endOrFault(server: EtcdServer, message: Fields, signInAnew: () => void): Ended | Failed {
  const reason = text(message.cancel_reason);
  const fault = faultOfText(reason || 'cancelled the watch', 14);
  if (whole(message.compact_revision) > 0 || fault.kind === 'compacted')
    return new Ended({ kind: 'compacted' });
  if (fault.signIn) signInAnew();
  return new Failed(server.url, fault);
}

function silent(server: EtcdServer): Failed {
  return new Failed(server.url, faultOfText('did not begin the watch in time', 14));
}

function cut(server: EtcdServer, thrown: unknown): Failed {
  return new Failed(server.url, faultOfText(`the watch was cut: ${messageOf(thrown)}`, 14));
}

function messageOf(thrown: unknown): string {
  if (thrown instanceof Failed) return thrown.fault.why;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
