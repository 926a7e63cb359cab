import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Intake } from './intake';

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
