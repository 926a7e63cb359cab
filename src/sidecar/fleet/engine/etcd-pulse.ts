import type { Moment } from './engine';
import type { Calls, EtcdServer } from './etcd-calls';
import { Failed } from './etcd-faults';

/** One watch of a server, which wants to know whether that still has a majority. */
export interface PulseListener {
  /** A key that it may read, as it is sent. */
  readonly key: string;
  readonly onPulse: (at: Moment) => void;
  readonly onFailed: (failed: unknown) => void;
}

/** Asks one server every two seconds what only one with a majority can answer, for all watches that it has. */
export interface Pulse {
  /** Asks after now. @throws Failed */
  confirm(key: string): Promise<Moment>;
  /** Tells of each answer from now on; after `onFailed` of nothing. Answers how to leave. */
  join(listener: PulseListener): () => void;
}

const EVERY_MS = 2000;
/** Without an answer for so long, the server is given up. */
const SILENCE_MS = 1500;
/**
 * A server that knows no leader is asked again so soon and so often: after an election its watches go on, and those of
 * hundreds of packagers need not be opened anew.
 */
const ELECTION_EVERY_MS = 250;
const ELECTION_TRIES = 6;

export function createPulse(calls: Calls, server: EtcdServer): Pulse {
  const listeners = new Set<PulseListener>();
  let underWay: Promise<Moment> | undefined;
  let next: Promise<Moment> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let leaderless = 0;

  const ask = async (key: string): Promise<Moment> => {
    const mark = calls.history.mark();
    const body = { key, keys_only: true };
    const answer = await calls.once(server, '/v3/kv/range', body, { silenceMs: SILENCE_MS });
    return calls.history.learn(mark, answer);
  };

  const begin = (key: string): Promise<Moment> => {
    const made = ask(key).finally(() => {
      underWay = undefined;
    });
    underWay = made;
    return made;
  };

  const confirm = (key: string): Promise<Moment> => {
    if (!underWay) return begin(key);
    // One that is on its way may have been answered before now; the next one is for all who ask meanwhile.
    next ??= underWay
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin(key);
      });
    return next;
  };

  const leave = (listener: PulseListener) => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
  };

  const beat = async () => {
    const [asking] = listeners;
    if (!asking) return;
    try {
      const at = await confirm(asking.key);
      leaderless = 0;
      for (const each of [...listeners]) each.onPulse(at);
    } catch (thrown) {
      leaderless = thrown instanceof Failed && thrown.fault.isLeaderless ? leaderless + 1 : 0;
      if (leaderless > 0 && leaderless <= ELECTION_TRIES) {
        beatLater(ELECTION_EVERY_MS);
        return;
      }
      leaderless = 0;
      // A right that one has lost says nothing of the others.
      const isOwn = thrown instanceof Failed && thrown.fault.kind === 'denied';
      for (const each of isOwn ? [asking] : [...listeners]) {
        leave(each);
        each.onFailed(thrown);
      }
    }
    beatLater();
  };

  const beatLater = (ms = EVERY_MS) => {
    clearTimeout(timer);
    if (listeners.size > 0) timer = setTimeout(beat, ms).unref();
  };

  return {
    confirm,
    join(listener) {
      listeners.add(listener);
      if (listeners.size === 1) beatLater();
      return () => leave(listener);
    },
  };
}
