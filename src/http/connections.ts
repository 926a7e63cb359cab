import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { networkOf } from './address';
import {
  type Connection,
  type ConnectionLimits,
  type ConnectionState,
  type ConnectionTimes,
  createAhead,
  DEFAULT_LIMITS,
  destroy,
  isBusy,
  peerOf,
  RANKS,
  RESERVE,
  type RefusalCause,
  stateOf,
  TIMES,
} from './connection';
import type { HttpError } from './errors';
import { createCrowd, createTurns, listenersOf, takeInTurn } from './intake';
import { answerThrough, BUSY, type UnreadableCause, USE_HTTPS, wholeAnswer } from './last-answer';

export interface ConnectionOptions {
  readonly limits?: ConnectionLimits;
  /** Whether a request comes from somebody with a valid key: such connections are kept when places run out. */
  readonly isTrusted?: (request: IncomingMessage) => boolean;
  /** Whether a request is a probe, which is answered also when all places are taken. */
  readonly isProbe?: (request: IncomingMessage) => boolean;
  /** Takes every connection that is refused. Must not throw. */
  readonly onRefused?: (cause: RefusalCause, network: string) => void;
  readonly times?: ConnectionTimes;
}

/** The connections of one server: which there are, which has to go when places run out, whose turn it is. */
export interface Connections {
  /** Begins to follow a server's connections. To be called once, before it listens. */
  follow(server: Server | SecureServer, secure: boolean): void;
  /** Runs a request when it is its connection's turn. */
  arrived(request: IncomingMessage, response: ServerResponse, run: () => void): void;
  /** How many connections are in each state. */
  counts(): Readonly<Record<ConnectionState, number>>;
  /** How many connections were refused since the start, by cause. */
  refused(): Readonly<Record<RefusalCause, number>>;
  /** Ends a connection whose next request can't be read, once those before it are answered. */
  refuse(socket: Duplex, cause: UnreadableCause, answer: HttpError): void;
  /** Ends the connections on which no request is under way, and has the others end with their answers. */
  drain(): void;
}

export function createConnections({
  limits = DEFAULT_LIMITS,
  isTrusted = () => false,
  isProbe = () => false,
  onRefused = () => undefined,
  times: { freshMs, answerMs, drainMs, lingerMs, lateMs, checkMs } = TIMES,
}: ConnectionOptions = {}): Connections {
  const all = new Set<Connection>();
  const ofNetwork = new Map<string, Set<Connection>>();
  const giveTurn = createTurns();
  const isCrowded = createCrowd();
  const ofSocket = new WeakMap<Socket, Connection>();
  /** What listened for a socket's end before Node's HTTP server did. */
  const endsBefore = new WeakMap<Socket, ReturnType<typeof listenersOf>>();
  /** Connections without a finished TLS handshake, by the client's address and port. */
  const unsecured = new Map<string, Connection>();
  const refused = {
    limit: 0,
    address_limit: 0,
    request_timeout: 0,
    answer_timeout: 0,
    pipelined: 0,
    not_http: 0,
  };
  let changes = 0;
  let draining = false;

  const touch = (connection: Connection) => {
    changes += 1;
    connection.changed = changes;
  };

  const isFromTrusted = (connection: Connection): boolean => {
    connection.trusted ??= connection.request !== undefined && isTrusted(connection.request);
    return connection.trusted;
  };

  const count = ({ network }: Connection, cause: RefusalCause) => {
    refused[cause] += 1;
    onRefused(cause, network);
  };

  const cut = (connection: Connection, cause: RefusalCause) => {
    count(connection, cause);
    destroy(connection);
  };

  const ahead = createAhead(isFromTrusted);

  /** How soon a connection has to go for another: the lowest rank first; undefined: never. */
  const rankOf = (connection: Connection): number | undefined => {
    const state = stateOf(connection);
    if (state === 'closing') return RANKS.closing;
    if (state === 'opening') return connection.fresh ? RANKS.fresh : RANKS.opening;
    if (isFromTrusted(connection)) return state === 'idle' ? RANKS.trustedIdle : undefined;
    if (state === 'idle') return RANKS.idle;
    return state === 'working' ? RANKS.working : RANKS.transferring;
  };

  /** Ends the connection that can be spared best, up to a rank, and answers whether there was one. */
  const makeRoom = (forWhom: Connection, cause: RefusalCause, most: number): boolean => {
    const among = cause === 'limit' ? all : ofNetwork.get(forWhom.network);
    let chosen: Connection | undefined;
    let least = most;
    for (const connection of among ?? []) {
      const rank = connection === forWhom ? undefined : rankOf(connection);
      if (rank === undefined || rank > least) continue;
      if (rank === least && chosen && chosen.changed < connection.changed) continue;
      chosen = connection;
      least = rank;
    }
    if (chosen) cut(chosen, cause);
    return chosen !== undefined;
  };

  /** Why there is no place for a connection, or undefined. */
  const lacks = ({ network }: Connection): RefusalCause | undefined => {
    if ((ofNetwork.get(network)?.size ?? 0) > limits.perAddress) return 'address_limit';
    return all.size > limits.total ? 'limit' : undefined;
  };

  const admit = (connection: Connection) => {
    const { network } = connection;
    const own = ofNetwork.get(network) ?? new Set();
    ofNetwork.set(network, own.add(connection));
    all.add(connection);
    const cause = lacks(connection);
    if (!cause || makeRoom(connection, cause, RANKS.working)) return;
    connection.reserve = true;
    const isFull = all.size > limits.total + RESERVE || own.size > limits.perAddress + RESERVE;
    if (isFull && !makeRoom(connection, cause, RANKS.fresh)) cut(connection, cause);
  };

  /** Gives a connection of the reserve a place, if its first request earns one; answers why not. */
  const promote = (connection: Connection): RefusalCause | undefined => {
    const cause = lacks(connection);
    if (cause && !(isFromTrusted(connection) && makeRoom(connection, cause, RANKS.trustedIdle))) return cause;
    connection.reserve = false;
    return undefined;
  };

  const leave = (connection: Connection) => {
    const { network } = connection;
    ahead.forget(connection);
    all.delete(connection);
    const own = ofNetwork.get(network);
    own?.delete(connection);
    if (own?.size === 0) ofNetwork.delete(network);
  };

  const open = (raw: Socket): Connection => {
    const connection: Connection = {
      raw,
      socket: raw,
      // Asked now: of a connection that is reset meanwhile Node would know no address.
      network: networkOf(raw.remoteAddress),
      changed: 0,
      fresh: true,
      reserve: false,
      request: undefined,
      trusted: undefined,
      response: undefined,
      waiting: [],
      late: undefined,
      closing: false,
      intake: undefined,
    };
    touch(connection);
    const age = setTimeout(() => {
      connection.fresh = false;
    }, freshMs).unref();
    raw.once('close', () => {
      clearTimeout(age);
      leave(connection);
    });
    admit(connection);
    return connection;
  };

  /** Follows a connection on which HTTP is spoken from now on. */
  const speak = (connection: Connection, socket: Socket) => {
    connection.socket = socket;
    ofSocket.set(socket, connection);
    const source = {
      isBusy: () => isBusy(connection),
      isFull: () => ahead.isFull(connection),
      isReceiving: () => connection.request?.complete === false,
    };
    connection.intake = takeInTurn(socket, source, giveTurn, endsBefore.get(socket) ?? []);
    // Node takes its own away when it takes the parser away; an error without one would end the process.
    socket.on('error', () => undefined);
    socket.on('timeout', () => {
      // Node ends the connection; it also times out idle ones.
      if (stateOf(connection) === 'answering') count(connection, 'answer_timeout');
    });
  };

  const begin = (
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    run: () => void,
  ) => {
    touch(connection);
    connection.request = request;
    connection.trusted = undefined;
    connection.response = response;
    response.on('close', () => {
      connection.response = undefined;
      touch(connection);
      if (!connection.socket.writable) {
        ahead.forget(connection);
        return;
      }
      if (!request.complete) giveUpOn(connection, request);
      if (connection.waiting.length > 0) giveTurn(() => goOn(connection));
      else {
        connection.intake?.release();
        lookAgain(connection);
      }
    });
    if (connection.reserve && !isProbe(request)) {
      const cause = promote(connection);
      if (cause) {
        count(connection, cause);
        answerThrough(response, BUSY);
        return;
      }
    }
    // Node drops what came in one piece with a request that asks for another protocol: so it is the last.
    if (draining || connection.reserve || request.headers.upgrade !== undefined)
      response.setHeader('connection', 'close');
    if (isCrowded() && !isProbe(request) && !isFromTrusted(connection)) {
      giveTurn(() => {
        if (connection.response === response) run();
      });
    } else run();
  };

  /** Runs what waits next. */
  const goOn = (connection: Connection) => {
    const { socket, intake } = connection;
    if (!socket.writable) ahead.forget(connection);
    ahead.take(connection)?.();
    // Behind a request whose body is not whole there is nothing but what is wrong with that body.
    if (connection.request?.complete === false) ahead.take(connection)?.();
    // Of the request that has begun just now the body may be what waits.
    if (!isBusy(connection)) intake?.release();
  };

  /** Gives a head that was late behind requests under way its time from now on. */
  const lookAgain = (connection: Connection) => {
    const { late, request } = connection;
    if (!late) return;
    connection.late = undefined;
    setTimeout(() => {
      if (connection.request === request && !connection.socket.destroyed) late();
    }, lateMs).unref();
  };

  /** Waits a little for the rest of a body that nobody reads: a client may look for the answer only behind it. */
  const giveUpOn = (connection: Connection, request: IncomingMessage) => {
    setTimeout(() => {
      if (connection.request === request && !request.complete && !connection.socket.destroyed)
        cut(connection, 'request_timeout');
    }, lingerMs).unref();
  };

  const refuse: Connections['refuse'] = (socket, cause, answer) => {
    if (!(socket instanceof Socket)) return;
    const connection = ofSocket.get(socket);
    if (!connection || connection.closing) return;
    const { request, response } = connection;
    if (isBusy(connection)) {
      // A head whose rest waits here is not late; Node will not tell of it again.
      if (cause === 'request_timeout') {
        connection.late = () => refuse(socket, cause, answer);
        return;
      }
      connection.intake?.discard();
      ahead.letWait(connection, () => refuse(socket, cause, answer));
      return;
    }
    if (cause === 'request_timeout' && !request && socket.bytesRead === 0) {
      cut(connection, cause);
      return;
    }
    count(connection, cause);
    connection.closing = true;
    touch(connection);
    connection.intake?.discard();
    // Not at once: what the client has sent meanwhile would reset the connection before it has read the answer.
    setTimeout(() => connection.raw.destroy(), lingerMs).unref();
    if (response?.headersSent) destroy(connection);
    else if (response) {
      // Who reads the body must learn that it ends here; Node tells it only while there is no answer.
      response.once('finish', () => request?.destroy());
      answerThrough(response, answer);
    } else connection.socket.end(wholeAnswer(answer));
  };

  const check = () => {
    for (const connection of all) {
      const { socket, response } = connection;
      if (!response || stateOf(connection) !== 'answering') continue;
      const timeout = draining && !isFromTrusted(connection) ? drainMs : answerMs;
      if (socket.timeout === timeout) continue;
      // The socket's own timeout: it sees whether anything of the answer is taken.
      socket.setTimeout(timeout);
      response.once('close', () => {
        if (socket.timeout === timeout) socket.setTimeout(0);
      });
    }
  };

  return {
    follow(server, secure) {
      const checkAgain = () => {
        check();
        checks = setTimeout(checkAgain, checkMs).unref();
      };
      let checks = setTimeout(checkAgain, checkMs).unref();
      server.on('close', () => clearTimeout(checks));
      server.prependListener(secure ? 'secureConnection' : 'connection', (socket: Socket) => {
        endsBefore.set(socket, listenersOf(socket, 'end'));
      });
      server.on('connection', (raw: Socket) => {
        const connection = open(raw);
        if (!secure) {
          speak(connection, raw);
          return;
        }
        const peer = peerOf(raw);
        ofSocket.set(raw, connection);
        unsecured.set(peer, connection);
        raw.once('close', () => {
          if (unsecured.get(peer) === connection) unsecured.delete(peer);
        });
      });
      server.on('secureConnection', (socket: TLSSocket) => {
        const peer = peerOf(socket);
        const connection = unsecured.get(peer);
        if (!connection) {
          socket.destroy();
          return;
        }
        unsecured.delete(peer);
        // As over plain HTTP: a client that ends its side behind its requests gets the answers.
        socket.allowHalfOpen = true;
        speak(connection, socket);
      });
      // Before Node's own listener, which would take the client for one that can be answered through TLS.
      server.prependListener('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
        const connection = unsecured.get(peerOf(socket));
        if (connection && error.code === 'ERR_SSL_HTTP_REQUEST')
          refuse(connection.raw, 'not_http', USE_HTTPS);
        if (connection && error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') cut(connection, 'request_timeout');
        socket.destroy();
      });
    },
    arrived(request, response, run) {
      const connection = ofSocket.get(request.socket);
      if (!connection || connection.closing) return;
      if (isBusy(connection)) ahead.letWait(connection, () => begin(connection, request, response, run));
      else begin(connection, request, response, run);
    },
    counts() {
      const counts = { opening: 0, idle: 0, receiving: 0, working: 0, answering: 0, closing: 0 };
      for (const connection of all) counts[stateOf(connection)] += 1;
      return counts;
    },
    refused: () => refused,
    refuse,
    drain() {
      draining = true;
      for (const connection of all) {
        const { response, fresh } = connection;
        const state = stateOf(connection);
        if (response && !response.headersSent) response.setHeader('connection', 'close');
        const isUnderWay = state !== 'closing' && response !== undefined;
        if (!isUnderWay && !(state === 'opening' && fresh)) connection.raw.destroy();
      }
      check();
    },
  };
}
