import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Intake } from './intake';

export interface ConnectionLimits {
  /** How many connections a server holds at a time. */
  readonly total: number;
  /** How many of them one address holds; of IPv6, the first 64 bits count as one. */
  readonly perAddress: number;
}

/** Idle connections must not take the file descriptors that files need; 1024 is a usual limit for both. */
export const DEFAULT_LIMITS: ConnectionLimits = { total: 512, perAddress: 256 };

/**
 * Why a connection was ended or refused. `limit`: another one needed its place. `address_limit`: its address had too many.
 * `request_timeout`: a head, a body or a TLS handshake did not come in time. `answer_timeout`: the client did not take
 * its answer. `pipelined`: too many requests were sent ahead. `not_http`: what came is no HTTP.
 */
export const REFUSAL_CAUSES = [
  'limit',
  'address_limit',
  'request_timeout',
  'answer_timeout',
  'pipelined',
  'not_http',
] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** Places beyond the limit, for connections that may turn out to be probes or rightful clients. */
export const RESERVE = 16;

export interface ConnectionTimes {
  /** As long nobody can tell a new connection of a rightful client, whose request is on its way, from a silent one. */
  readonly freshMs: number;
  /** How long nothing of an answer may be taken; the system notices it after one to two such spans. */
  readonly answerMs: number;
  /** The same for clients without a valid key, once the server is to stop. */
  readonly drainMs: number;
  /** How long a client may take to read its last answer, or to send the rest of a body that nobody waits for. */
  readonly lingerMs: number;
  /** How long the rest of a head may take that was late while requests before it were under way. */
  readonly lateMs: number;
  /** How often it is looked who does not take answers. */
  readonly checkMs: number;
}

export const TIMES: ConnectionTimes = {
  freshMs: 250,
  answerMs: 5000,
  drainMs: 1000,
  lingerMs: 3000,
  lateMs: 10_000,
  checkMs: 1000,
};

/**
 * `opening`: nothing, or half the head of the first request, has come, or the TLS handshake is not done. `idle`: between
 * requests. `receiving`: a body is on its way. `working`: the answer is being made. `answering`: the client has not taken
 * the answer yet. `closing`: the last answer is out, and the client has not closed yet.
 */
export const CONNECTION_STATES = ['opening', 'idle', 'receiving', 'working', 'answering', 'closing'] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** One connection of a server, as far as it decides who is served. */
export interface Connection {
  /** The TCP connection. */
  readonly raw: Socket;
  /** What HTTP is spoken on: `raw`, or the TLS connection on it. */
  socket: Socket;
  readonly network: string;
  /** Counts changes of all connections: the least is the oldest. */
  changed: number;
  fresh: boolean;
  /** Whether it has a place for probes only. */
  reserve: boolean;
  /** The latest request. */
  request: IncomingMessage | undefined;
  /** Whether that came with a valid key, once it was asked. */
  trusted: boolean | undefined;
  /** The answer to it, until it is taken. */
  response: ServerResponse | undefined;
  /** What came while a request was under way: the next requests, or a fault. */
  readonly waiting: (() => void)[];
  /** Ends the connection for a head that was late while requests before it were under way. */
  late: (() => void) | undefined;
  closing: boolean;
  intake: Intake | undefined;
}

export function stateOf({ closing, request, response, socket }: Connection): ConnectionState {
  if (closing) return 'closing';
  if (!request) return 'opening';
  if (response?.writableEnded || response?.writableNeedDrain) return 'answering';
  if (!request.complete && announcesBody(request)) return 'receiving';
  if (response) return 'working';
  return socket.destroyed ? 'closing' : 'idle';
}

function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether the next request has to wait. */
export function isBusy({ request, response, waiting, closing }: Connection): boolean {
  return !closing && (waiting.length > 0 || (response !== undefined && request?.complete === true));
}

/** Ends a connection at once; what waits in the system's buffers for a client that does not read is dropped with it. */
export function destroy({ raw }: Connection): void {
  raw.resetAndDestroy();
  // The reset alone would wait for what is still to be sent.
  raw.destroy();
}

/** What tells a client's connections apart, on a TCP connection as on the TLS connection on it. */
export function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** By how well a connection can be spared. Up to `working`, none has shown a valid key, and none is new. */
export const RANKS = {
  closing: 0,
  opening: 1,
  transferring: 2,
  idle: 3,
  working: 4,
  fresh: 5,
  trustedIdle: 6,
};

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
