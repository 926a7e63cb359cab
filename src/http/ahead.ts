import type { Connection } from './connection';

/** How many requests of a connection may wait for the one under way, in any case. */
const AHEAD_IN_ANY_CASE = 4;
/** How many more may wait, of all connections: of clients without a valid key, and of those with one. */
const MAX_AHEAD = 1024;
const MAX_AHEAD_TRUSTED = 4096;

/** What clients send ahead: the requests that wait for those under way on their connections. */
interface Ahead {
  letWait(connection: Connection, run: () => void): void;
  /** What waits next on a connection, which waits no longer. */
  take(connection: Connection): (() => void) | undefined;
  forget(connection: Connection): void;
  /** Whether no more requests of a connection may wait. */
  isFull(connection: Connection): boolean;
}

export function createAhead(isFromTrusted: (connection: Connection) => boolean): Ahead {
  /** How many wait, beside those that may in any case. */
  let more = 0;
  return {
    letWait({ waiting }, run) {
      if (waiting.push(run) > AHEAD_IN_ANY_CASE) more += 1;
    },
    take({ waiting }) {
      if (waiting.length > AHEAD_IN_ANY_CASE) more -= 1;
      return waiting.shift();
    },
    forget({ waiting }) {
      more -= Math.max(0, waiting.length - AHEAD_IN_ANY_CASE);
      waiting.length = 0;
    },
    isFull(connection) {
      const own = connection.waiting.length;
      if (own < AHEAD_IN_ANY_CASE) return false;
      return more >= (isFromTrusted(connection) ? MAX_AHEAD_TRUSTED : MAX_AHEAD);
    },
  };
}
