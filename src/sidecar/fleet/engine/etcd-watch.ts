import { setTimeout as pause } from 'node:timers/promises';
import { isJsonObject, type JsonObject, parseJson } from '../../../drm/bytes';
import { textProperty } from '../../../http/errors';
import {
  EngineError,
  type EngineFault,
  type KeyRange,
  type Moment,
  type Watch,
  type WatchEnd,
  type WatchedEvent,
  type WatchOptions,
} from './engine';
import {
  EtcdError,
  faultOfAnswer,
  faultOfText,
  fields,
  list,
  momentOf,
  rangeOf,
  storedValue,
  text,
  whole,
} from './etcd-answers';
import { type Calls, pauseBefore } from './etcd-calls';

/** Only servers with a majority answer. Watches share an answer of the last second, unless `fresh`. @throws Failed */
type Heartbeat = (server: string, fresh: boolean) => Promise<Moment>;

/** A server without a leader keeps its watches for this number of heartbeats, at an eighth of the interval. */
const ELECTION_HEARTBEATS = 6;

class Ended extends Error {
  constructor(readonly end: WatchEnd) {
    super(end);
  }
}

export function watchRange(
  calls: Calls,
  heartbeat: Heartbeat,
  range: KeyRange,
  { from, since, onEvents, onHeartbeat, onLost, onEnd }: WatchOptions,
): Watch {
  const closing = new AbortController();
  const { signal } = closing;
  /** Everything up to this revision was reported. */
  let reported = from - 1;
  /** The next heartbeat must not be before this moment. */
  let floor: Moment = { ...since, revision: Math.max(since.revision, reported) };
  let lostBy: EngineFault | undefined;
  /** Attempts since the last connection that lasted. */
  let attempts = 0;
  /** A token that is refused twice in a row is not refused for its age. */
  let isTokenRefused = false;

  /** @throws Ended */
  const check = (at: Moment): void => {
    if (signal.aborted) return;
    if (at.cluster !== floor.cluster || at.term < floor.term || at.revision < floor.revision)
      throw new Ended('restored');
    // Changes reported since may be newer than this heartbeat.
    floor = { ...at, revision: Math.max(at.revision, reported) };
    [lostBy, isTokenRefused] = [undefined, false];
    onHeartbeat?.(at);
  };

  const lose = (thrown: unknown): void => {
    const cause =
      thrown instanceof EngineError
        ? thrown
        : new EngineError('unavailable', 'the watch failed', { cause: thrown });
    if (lostBy === cause.kind || signal.aborted || thrown instanceof Ended) return;
    lostBy = cause.kind;
    onLost?.(cause);
  };

  /** Checks that the server of a connection still has a majority. @throws Failed, Ended */
  const heartbeatWhile = async (connection: AbortSignal, server: string): Promise<void> => {
    const { heartbeatMs } = calls.pace;
    for (let leaderless = 0; ; ) {
      await pause(leaderless > 0 ? heartbeatMs / 8 : heartbeatMs, undefined, { ref: false });
      if (connection.aborted) return;
      try {
        const at = await heartbeat(server, leaderless > 0);
        if (connection.aborted) return;
        [attempts, leaderless] = [0, 0];
        check(at);
      } catch (thrown) {
        leaderless += 1;
        if (thrown instanceof EtcdError && thrown.fault.isLeaderless && leaderless <= ELECTION_HEARTBEATS)
          continue;
        lose(thrown);
        throw thrown;
      }
    }
  };

  const follow = async (server: string): Promise<unknown> => {
    const [key, range_end] = rangeOf(range);
    // Without fragments, a message of many large changes would take several times its size in memory.
    const options = { start_revision: String(reported + 1), progress_notify: true, fragment: true };
    const body = { create_request: { key, range_end, ...options } };
    const { response, signInAgain } = await calls.open(server, '/v3/watch', body);
    const ending = new AbortController();
    const end = (thrown: unknown) => {
      ending.abort(thrown);
      response.destroy();
    };
    const onClose = () => end(undefined);
    signal.addEventListener('abort', onClose);
    const limit = setTimeout(
      () => end(troubleOf(server, 'did not begin the watch in time')),
      calls.pace.attemptMs,
    ).unref();
    /** Unreported changes: those of a revision may come in several messages. */
    let events: WatchedEvent[] = [];
    let rest = '';
    try {
      if (signal.aborted) return undefined;
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = `${rest}${chunk}`.split('\n');
        rest = lines.pop() ?? '';
        let last: JsonObject | undefined;
        for (const line of lines.filter((each) => each !== '')) {
          const message = readMessage(server, line);
          if (message.canceled === true) throw endOrFault(server, message, signInAgain);
          if (message.created === true) {
            clearTimeout(limit);
            check(await heartbeat(server, true));
            heartbeatWhile(ending.signal, server).catch(end);
          }
          events.push(...list(message.events).map(eventOf));
          last = message;
        }
        if (last) events = await report(events, last);
      }
      return ending.signal.reason ?? troubleOf(server, 'ended the watch');
    } catch (thrown) {
      if (ending.signal.aborted) return ending.signal.reason;
      return thrown instanceof EngineError || thrown instanceof Ended
        ? thrown
        : troubleOf(server, `the watch was cut: ${textProperty(thrown, 'message')}`);
    } finally {
      clearTimeout(limit);
      signal.removeEventListener('abort', onClose);
      end(undefined);
    }
  };

  /** Returns the changes of the last revision if more of it may come after a message. */
  const report = async (events: readonly WatchedEvent[], message: JsonObject): Promise<WatchedEvent[]> => {
    const at = momentOf(message) ?? floor;
    const newest = events.at(-1)?.revision;
    const open = message.fragment === true ? events.filter(({ revision }) => revision === newest) : [];
    const whole = events.slice(0, events.length - open.length);
    if (whole.length > 0 && !signal.aborted) {
      await onEvents(whole, at).catch((cause: unknown) => {
        throw new EngineError('unavailable', 'the changes were not taken', { cause });
      });
      reported = Math.max(reported, whole.at(-1)?.revision ?? 0);
    }
    // A message without changes, except the first, reports that there are none up to its revision.
    const isProgress = list(message.events).length === 0 && message.created !== true;
    if (isProgress && open.length === 0) reported = Math.max(reported, at.revision);
    return open;
  };

  /** In ms; 0 until every server was tried. */
  const waitAfter = (server: string, thrown: unknown): number => {
    const { kind, why, signIn = false } = thrown instanceof EtcdError ? thrown.fault : {};
    const isTokenOld = signIn && !isTokenRefused;
    isTokenRefused = signIn;
    if (isTokenOld) return 0;
    lose(thrown);
    if (kind === 'denied') return calls.pace.deniedMs;
    // Otherwise `onEvents` failed: that is no fault of the server.
    if (why !== undefined) calls.skip(server, why);
    attempts += 1;
    return pauseBefore(attempts - calls.servers.length);
  };

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const server = calls.current;
      const thrown = await follow(server).catch((caught: unknown) => caught);
      if (signal.aborted) return;
      if (thrown instanceof Ended) {
        onEnd(thrown.end);
        return;
      }
      const ms = waitAfter(server, thrown);
      if (ms > 0) await pause(ms, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  void run();
  return { close: () => closing.abort() };
}

function eventOf(event: unknown): WatchedEvent {
  const { type, kv } = fields(event);
  const { key, value, revision } = storedValue(kv);
  return { key, value: type === 'DELETE' ? undefined : value, revision };
}

/** @throws Failed */
function readMessage(server: string, line: string): JsonObject {
  const json = parseJson(line);
  if (!isJsonObject(json) || json.error !== undefined || json.result === undefined)
    throw new EtcdError(server, faultOfAnswer(200, line));
  return fields(json.result);
}

function endOrFault(server: string, message: JsonObject, signInAgain: () => void): Ended | EtcdError {
  const failed = troubleOf(server, text(message.cancel_reason) || 'cancelled the watch');
  if (whole(message.compact_revision) > 0 || failed.kind === 'compacted') return new Ended('compacted');
  if (failed.fault.signIn) signInAgain();
  return failed;
}

/** 14 is gRPC's code `UNAVAILABLE`, unless the text says more. */
function troubleOf(server: string, why: string): EtcdError {
  return new EtcdError(server, faultOfText(why, 14));
}
