import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { networkOf } from './app';
import { answerAndClose, type HttpError, httpError, rawAnswer } from './errors';
import { LINGER_MS, PiecewiseSocket } from './piecewise';

export interface ConnectionLimits {
  readonly total: number;
  /** IPv6 addresses with the same first 64 bits count as one. */
  readonly perAddress: number;
}

/** Idle connections must not take the file descriptors that files need; 1024 is a usual limit for both. */
export const DEFAULT_LIMITS: ConnectionLimits = { total: 512, perAddress: 256 };

/** Places beyond the limit. Their first request is answered if it is a probe, else refused with 503. */
const RESERVE = 16;
/** Real clients do not pipeline. A connection with more requests under way is destroyed. */
const MAX_UNDER_WAY = 4;
/** No real head is cut into many such pieces, and no piece holds many requests. */
const PIECE_BYTES = 512;
/** Pieces of a body of a client with a key: the size of Node's reads. */
const BODY_PIECE_BYTES = 64 * 1024;
/** From this number of waiting requests without a key on, there is a pause after each. */
const CROWD = 16;
const CROWD_PAUSE_MS = 2;
/** A client that reads nothing of its answer for this time loses the connection. */
const ANSWER_MS = 5000;
/**
 * `limit`: another connection needed the place. `request_timeout`: a head, a body or a TLS handshake was
 * late. `answer_timeout`: the client did not read its answer. `pipelined`: too many requests were under way.
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

/**
 * `opening`: no complete head has arrived. `receiving`: a body is arriving. `working`: the answer is being
 * made. `answering`: the client has not read the answer. `closing`: refused, and not closed yet.
 */
export const CONNECTION_STATES = ['opening', 'idle', 'receiving', 'working', 'answering', 'closing'] as const;
type ConnectionState = (typeof CONNECTION_STATES)[number];

class Connection {
  readonly network: string;
  /** undefined before the TLS handshake is done. */
  socket: PiecewiseSocket | undefined;
  /** Whether a request with a valid key came on it. */
  trusted = false;
  reserve = false;
  refused = false;
  /** Requests that are not answered. They are served one after another. */
  underWay = 0;
  readonly waiting: (() => void)[] = [];
  /** Serves the latest request, unless it is being served. */
  begin: (() => void) | undefined;
  request: IncomingMessage | undefined;
  response: ServerResponse | undefined;
  /** The response that is being made or taken, while later ones wait for it. */
  served: ServerResponse | undefined;

  constructor(readonly raw: Socket) {
    this.network = networkOf(raw.remoteAddress);
  }
}

export interface ConnectionOptions {
  readonly limits?: ConnectionLimits;
  /** Whether a request has a valid key. Without this, every connection with a request counts as trusted. */
  readonly isTrusted?: (request: IncomingMessage) => boolean;
  /** A probe is answered when all places are taken. */
  readonly isProbe?: (request: IncomingMessage) => boolean;
  /** Called with every connection that is refused or cut. Must not throw. */
  readonly onRefused?: (cause: RefusalCause, network: string) => void;
  readonly answerMs?: number;
}

export type Connections = ReturnType<typeof createConnections>;

export function createConnections({
  limits = DEFAULT_LIMITS,
  isTrusted = () => true,
  isProbe = () => false,
  onRefused = () => undefined,
  answerMs = ANSWER_MS,
}: ConnectionOptions = {}) {
  /** By `peerOf`, the oldest first. */
  const open = new Map<string, Connection>();
  const refused = Object.fromEntries(REFUSAL_CAUSES.map((cause) => [cause, 0])) as Record<
    RefusalCause,
    number
  >;
  let draining = false;

  /** Requests without a key take one turn of the event loop each: others are accepted in between. */
  const queue: (() => void)[] = [];
  const next = () => {
    const run = queue.shift();
    if (queue.length > CROWD) setTimeout(next, CROWD_PAUSE_MS);
    else if (queue.length > 0) setImmediate(next);
    run?.();
  };
  const later = (run: () => void) => {
    if (queue.push(run) === 1) setImmediate(next);
  };

  const count = (connection: Connection, cause: RefusalCause) => {
    connection.refused = true;
    refused[cause] += 1;
    onRefused(cause, connection.network);
  };

  const cut = (connection: Connection, cause: RefusalCause) => {
    count(connection, cause);
    // A reset also drops data in the system's buffers for a client that does not read.
    connection.raw.resetAndDestroy();
    connection.raw.destroy();
  };

  /** Takes a place, from another connection if none is free. @returns the reason if there is none. */
  const takePlace = (connection: Connection): RefusalCause | undefined => {
    const all = [...open.values()].filter(({ raw }) => !raw.destroyed);
    const own = all.filter(({ network }) => network === connection.network);
    const isOwnShare = own.length > limits.perAddress;
    if (!isOwnShare && all.length <= limits.total) return undefined;
    const cause = isOwnShare ? 'address_limit' : 'limit';
    const others = (isOwnShare ? own : all).filter((other) => other !== connection && !other.reserve);
    const spared = others.find(({ trusted }) => !trusted) ?? others.find(({ underWay }) => underWay === 0);
    if (!spared) return cause;
    cut(spared, cause);
    return undefined;
  };

  const accept = (raw: Socket) => {
    // Reset before it was taken: its requests would have no address for the audit.
    if (raw.remoteAddress === undefined) return;
    const connection = new Connection(raw);
    const peer = peerOf(raw);
    open.set(peer, connection);
    raw.once('close', () => open.get(peer) === connection && open.delete(peer));
    const cause = takePlace(connection);
    if (!cause) return;
    connection.reserve = true;
    const reserve = [...open.values()].filter((other) => other.reserve && !other.refused);
    if (reserve.length > RESERVE && reserve[0]) cut(reserve[0], cause);
  };

  const limitUnread = () => {
    for (const connection of open.values()) {
      const { socket, served: response } = connection;
      if (!response || stateOf(connection) !== 'answering' || socket?.inner.timeout === answerMs) continue;
      const late = () => count(connection, 'answer_timeout');
      // Node destroys a socket that has timed out.
      socket?.setTimeout(answerMs).once('timeout', late);
      const end = () => {
        socket?.off('timeout', late);
        response.off('drain', end).off('close', end);
        // A stream may pause when the client has read everything, and the next answer has all its time.
        if (connection.response) socket?.setTimeout(0);
      };
      response.once('drain', end).once('close', end);
    }
  };

  const refuse = (connection: Connection | undefined, cause: RefusalCause, error: HttpError) => {
    if (!connection || connection.refused) return;
    const { request, response, raw, socket = raw } = connection;
    // The handler sets the headers that every answer has.
    if (connection.underWay === 1) connection.begin?.();
    if (connection.underWay > 1 || (response?.headersSent && !request?.complete)) {
      cut(connection, cause);
      return;
    }
    count(connection, cause);
    const end = () => {
      setTimeout(() => raw.destroy(), LINGER_MS).unref();
      if (socket.writable) socket.end(rawAnswer(error));
    };
    if (!response) end();
    else if (request?.complete) response.once('finish', end);
    else {
      // A handler that reads the body learns of the end by this.
      response.once('finish', () => request?.destroy());
      answerAndClose(response, error);
    }
  };

  return {
    /** `speak` gets each connection on which HTTP is spoken; a `secure` one after its TLS handshake. */
    follow(server: Server, secure: boolean, speak: (socket: PiecewiseSocket) => void): void {
      const checking = setInterval(limitUnread, answerMs / 5).unref();
      server.on('close', () => clearInterval(checking));
      const begin = (inner: Socket) => {
        const connection = open.get(peerOf(inner));
        if (!connection) {
          inner.destroy();
          return;
        }
        // A client that ends its side gets its answer.
        inner.allowHalfOpen = true;
        const isAsked = () => connection.underWay > 0 && connection.request?.complete === true;
        const isBody = () => connection.trusted && connection.request?.complete === false;
        const pieceBytes = () => (isBody() ? BODY_PIECE_BYTES : PIECE_BYTES);
        connection.socket = new PiecewiseSocket(inner, isAsked, pieceBytes);
        speak(connection.socket);
      };
      server.on('connection', (raw: Socket) => {
        accept(raw);
        if (!secure) begin(raw);
      });
      server.on('secureConnection', begin);
      server.on('tlsClientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
        const connection = open.get(peerOf(socket));
        if (code === 'ERR_SSL_HTTP_REQUEST') refuse(connection, 'not_http', USE_HTTPS);
        else if (connection && code === 'ERR_TLS_HANDSHAKE_TIMEOUT') cut(connection, 'request_timeout');
        else socket.destroy();
      });
    },
    /** Serves a request in its turn: those of a connection one after another. Some limits end it instead. */
    arrived(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
      const connection = open.get(peerOf(request.socket));
      if (!connection || connection.refused) return;
      connection.request = request;
      connection.response = response;
      connection.underWay += 1;
      if (connection.underWay > MAX_UNDER_WAY) {
        cut(connection, 'pipelined');
        return;
      }
      response.on('close', () => {
        connection.underWay -= 1;
        if (connection.response === response) connection.response = undefined;
        connection.served = undefined;
        connection.waiting.shift()?.();
        if (connection.underWay === 0) connection.socket?.passOnEnd();
      });
      connection.trusted ||= isTrusted(request);
      if (connection.reserve && !isProbe(request)) {
        const cause = takePlace(connection);
        if (cause) {
          count(connection, cause);
          answerAndClose(response, BUSY);
          return;
        }
        connection.reserve = false;
      }
      if (draining || connection.reserve) response.setHeader('connection', 'close');
      let hasBegun = false;
      const begin = () => {
        if (!hasBegun && !connection.refused && !response.closed) {
          connection.served = response;
          serve();
        }
        hasBegun = true;
      };
      connection.begin = begin;
      if (connection.underWay > 1) connection.waiting.push(begin);
      else if (connection.trusted) begin();
      else later(begin);
    },
    /** For a connection whose next request cannot be read. */
    refuse: (socket: Peer, cause: RefusalCause, error: HttpError) =>
      refuse(open.get(peerOf(socket)), cause, error),
    counts(): Readonly<Record<ConnectionState, number>> {
      const counts = { opening: 0, idle: 0, receiving: 0, working: 0, answering: 0, closing: 0 };
      for (const connection of open.values()) counts[stateOf(connection)] += 1;
      return counts;
    },
    refused: (): Readonly<Record<RefusalCause, number>> => refused,
    /** Ends idle connections, if `all` also new ones, and the others with their answers. */
    drain(all: boolean): void {
      draining = true;
      for (const { raw, response, request, underWay } of open.values()) {
        if (response && !response.headersSent) response.setHeader('connection', 'close');
        if (underWay === 0 && (all || request)) raw.destroy();
      }
    },
    destroyAll(): void {
      for (const { raw } of open.values()) raw.destroy();
    },
  };
}

function stateOf({ refused, request, response, served }: Connection): ConnectionState {
  if (refused) return 'closing';
  if (!request) return 'opening';
  if (!response) return 'idle';
  if (served?.writableEnded || served?.writableNeedDrain) return 'answering';
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return request.complete || (length ?? coding) === undefined ? 'working' : 'receiving';
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress'>;

/** A client may call two addresses of this machine from the same port of its own. */
function peerOf({ remoteAddress, remotePort, localAddress }: Peer): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

const USE_HTTPS = httpError('https_required');
const BUSY = httpError('too_many_connections');
