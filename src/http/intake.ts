import type { Socket } from 'node:net';

/** Gives a connection's bytes to Node's HTTP parser, one request at a time. */
export interface Intake {
  /** Has it go on where it stopped, when its turn comes: the request under way is answered. */
  release(): void;
  /** Reads on, but parses nothing more. */
  discard(): void;
}

type Listener = (...given: unknown[]) => void;

/** The listeners of a socket, as what they are: functions to be called with it as `this`. */
export function listenersOf(socket: Socket, event: 'data' | 'end'): Listener[] {
  return socket.listeners(event).map((each) => each as Listener);
}

/** Gives turns in the order they were asked for. */
type GiveTurn = (turn: () => void) => void;

const CROWD = 32;
const TURNS_AT_A_STRETCH = 8;

/**
 * Lets connections go on with what waits on them, and where many wait, one at each turn of the event loop: Node takes but
 * one new connection at a turn, and hundreds of clients that send ahead must not hold up those who wait for theirs.
 */
export function createTurns(): GiveTurn {
  const waiting: (() => void)[] = [];
  const give = () => {
    const turns = waiting.splice(0, waiting.length > CROWD ? 1 : TURNS_AT_A_STRETCH);
    if (waiting.length > 0) setImmediate(give);
    for (const turn of turns) turn();
  };
  return (turn) => {
    if (waiting.push(turn) === 1) setImmediate(give);
  };
}

/** How many requests are run in one turn of the event loop before clients without a valid key wait. */
const ARRIVALS_AT_A_STRETCH = 64;
/** From so many on they are counted by turn: an immediate for each single request would cost too much. */
const FEW_ARRIVALS = 16;

/** Answers, of each request that comes, whether more came than can be run at a stretch: some then have to wait. */
export function createCrowd(): () => boolean {
  /** How many came in this turn of the event loop; up to `FEW_ARRIVALS` more are from those before. */
  let arrivals = 0;
  return () => {
    arrivals += 1;
    if (arrivals === FEW_ARRIVALS) {
      setImmediate(() => {
        arrivals = 0;
      });
    }
    return arrivals > ARRIVALS_AT_A_STRETCH;
  };
}

/** What an intake asks of its connection. */
interface IntakeSource {
  /** Whether the next request has to wait. */
  isBusy(): boolean;
  /** Whether no more requests may wait. */
  isFull(): boolean;
  /** Whether a body is on its way. */
  isReceiving(): boolean;
}

/**
 * Has a connection's requests run in their order, one at a time, and bounds what a client may send ahead.
 *
 * Node's parser reads by itself, up to 64 KiB at a time, and makes objects for each request in them, some thousand of the
 * smallest. That costs the least, and clients that wait for their answers never come to more than one. So it is left
 * alone until a request comes while another is under way. Of that piece, requests are taken until `isFull`; from then on
 * what comes is handed over in pieces cut behind each head, nothing while a request is under way. So a fault in a later
 * request shows when the earlier are answered, and a connection holds one request and what one read brings.
 *
 * Node's parser must be the only one that listens for the socket's data. `endsBefore` are the listeners for its end that
 * were there before the parser's.
 */
export function takeInTurn(
  socket: Socket,
  source: IntakeSource,
  giveTurn: GiveTurn,
  endsBefore: readonly Listener[],
): Intake {
  const [parse, ...others] = listenersOf(socket, 'data');
  const [finish, ...more] = listenersOf(socket, 'end').filter((each) => !endsBefore.includes(each));
  if (!parse || !finish || others.length + more.length > 0)
    throw new TypeError('The connection is not as Node leaves it to a server');
  let rest: Buffer | undefined;
  /** Whether what comes is handed over here. */
  let taken = false;
  /** Whether the socket is paused by us; Node pauses it as well, while an answer waits to be taken. */
  let paused = false;
  let discarding = false;
  /** Whether the client has ended its side behind requests that still wait. */
  let ended = false;

  const pause = () => {
    paused = true;
    socket.pause();
  };

  const feed = (bytes: Buffer): void => {
    for (let left = bytes; left.length > 0; ) {
      // Of CONNECT and the like Node takes the parser away and ends the connection.
      if (discarding || socket.destroyed) return;
      if (source.isBusy() || socket.isPaused() || isHeldByNode(socket)) {
        rest = left;
        pause();
        return;
      }
      const length = lengthOfPiece(left, source.isReceiving());
      parse.call(socket, length === left.length ? left : left.subarray(0, length));
      left = left.subarray(length);
    }
  };

  const goOn = (): void => {
    if (paused) {
      paused = false;
      socket.resume();
    }
    const left = rest;
    rest = undefined;
    if (left) feed(left);
  };

  const take = (): void => {
    if (taken) return;
    taken = true;
    socket.off('data', parse);
    socket.off('end', finish);
    // Makes Node read into JavaScript.
    socket.on('data', (bytes: Buffer) => {
      // What was read already when the reading stopped.
      if (rest) rest = Buffer.concat([rest, bytes]);
      else feed(bytes);
    });
    // Node resumes a socket whenever a body is read.
    socket.on('resume', () => {
      if (!paused) return;
      if (source.isBusy()) socket.pause();
      else goOn();
    });
    // Node ends a connection, and drops the answer under way, when the client ends its side: it is taken for gone.
    socket.on('end', () => {
      if (!rest && !source.isBusy()) {
        finish.call(socket);
        return;
      }
      ended = true;
      // For body-parser nothing of a body can come where nothing more is read; but what comes now was read before.
      Reflect.defineProperty(socket, 'readable', { value: true, configurable: true });
    });
    socket.on('close', () => {
      rest = undefined;
    });
  };

  const canLook = beforeEachRequest(socket, () => {
    if (!source.isBusy()) return true;
    take();
    pause();
    return !source.isFull();
  });
  if (!canLook) take();

  return {
    release() {
      if (!paused && !ended) return;
      giveTurn(() => {
        if (!source.isBusy()) goOn();
        if (!ended || rest || source.isBusy() || socket.destroyed) return;
        ended = false;
        Reflect.deleteProperty(socket, 'readable');
        finish.call(socket);
      });
    },
    discard() {
      take();
      discarding = true;
      rest = undefined;
      paused = false;
      socket.resume();
    },
  };
}

const HEAD_END = '\r\n\r\n';
/** No head is shorter: `GET / HTTP/1.1`, and its end. Empty lines may come before it. */
const MIN_HEAD = 14;
/** In a body, pieces are no shorter than this: a body may be full of what looks like the end of a head. */
const MIN_IN_BODY = 1024;

/** Where to cut what has come: behind a head. Behind a body's end, the next head may come along. */
function lengthOfPiece(left: Buffer, isInBody: boolean): number {
  const end = left.indexOf(HEAD_END, Math.min(left.length, isInBody ? MIN_IN_BODY : MIN_HEAD));
  return end < 0 ? left.length : end + HEAD_END.length;
}

/** Node's own mark of a connection on which it parses nothing while answers wait; it fails on what it is given then. */
function isHeldByNode(socket: Socket): boolean {
  return Reflect.get(socket, '_paused') === true;
}

type OnIncoming = (request: unknown, keepAlive: unknown) => number;

/** What Node's parser takes for a fault, which ends the parsing; it tells it by `STOPPED`. */
const STOP = -1;
/** The code of the error with which Node says that the parsing was stopped. */
export const STOPPED = 'HPE_CB_HEADERS_COMPLETE';

/**
 * Asks `isWanted` before Node makes anything of a request whose head is parsed; the first that is not wanted ends the
 * parsing. Answers false where Node's parser is not as it is known to be.
 */
function beforeEachRequest(socket: Socket, isWanted: () => boolean): boolean {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (typeof parser !== 'object' || parser === null) return false;
  const onIncoming: unknown = Reflect.get(parser, 'onIncoming');
  if (typeof onIncoming !== 'function') return false;
  const make = onIncoming as OnIncoming;
  const ask: OnIncoming = (request, keepAlive) => (isWanted() ? make.call(parser, request, keepAlive) : STOP);
  return Reflect.set(parser, 'onIncoming', ask);
}
