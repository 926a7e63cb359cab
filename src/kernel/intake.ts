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
export type GiveTurn = (turn: () => void) => void;

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

const HEAD_END = '\r\n\r\n';

/** What an intake asks of its connection. */
export interface IntakeSource {
  /** Whether the next request has to wait. */
  isBusy(): boolean;
  /** The length of the body that is on its way, `chunks` where it says so itself, or undefined when there is none. */
  body(): number | 'chunks' | undefined;
}

/** In a body of unknown length, pieces are no shorter than this: its end shows only to the parser. */
const LEAST_CHUNKED = 1024;
const CR = 0x0d;
const LF = 0x0a;

/**
 * Stands between a connection and the parser that Node has put on it. Node parses all that a read brings, up to 64 KiB,
 * and makes objects for each request in it: some thousand pipelined requests from one piece of 64 KiB. Here a piece is
 * cut behind each head and behind each body, and while a request is under way, the rest waits and nothing more is read.
 * So requests run in their order, a fault in a later one shows when the earlier are answered, and a connection holds one
 * request and what one read brings.
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
  socket.off('data', parse);
  socket.off('end', finish);
  const { isBusy } = source;
  const nextPiece = createCutter(source);
  let rest: Buffer | undefined;
  /** Whether the socket is paused by us; Node pauses it as well, while an answer waits to be taken. */
  let paused = false;
  let discarding = false;
  /** Whether the client has ended its side behind requests that still wait. */
  let ended = false;

  const feed = (bytes: Buffer): void => {
    if (paused) {
      paused = false;
      socket.resume();
    }
    for (let left = bytes; left.length > 0; ) {
      // Of CONNECT and the like Node takes the parser away and ends the connection.
      if (discarding || socket.destroyed) return;
      if (isBusy() || socket.isPaused() || isHeldByNode(socket)) {
        rest = left;
        paused = true;
        socket.pause();
        return;
      }
      const { length, parsed } = nextPiece(left);
      parse.call(socket, length === left.length ? left : left.subarray(0, length));
      parsed();
      left = left.subarray(length);
    }
  };

  const feedRest = (): void => {
    const left = rest;
    rest = undefined;
    if (left) feed(left);
  };

  socket.on('data', (bytes: Buffer) => {
    // What was read already when the reading stopped.
    if (rest) rest = Buffer.concat([rest, bytes]);
    else feed(bytes);
  });
  // Node resumes a socket whenever a body is read.
  socket.on('resume', () => {
    if (!rest) return;
    if (isBusy()) socket.pause();
    else feedRest();
  });
  // Node ends a connection, and drops the answer under way, when the client ends its side: it is taken for gone.
  socket.on('end', () => {
    if (rest) ended = true;
    else finish.call(socket);
  });
  socket.on('close', () => {
    rest = undefined;
  });
  return {
    release() {
      if (!rest && !ended) return;
      giveTurn(() => {
        feedRest();
        if (!ended || rest || isBusy()) return;
        ended = false;
        finish.call(socket);
      });
    },
    discard() {
      discarding = true;
      rest = undefined;
      paused = false;
      socket.resume();
    },
  };
}

/** Node's own mark of a connection on which it parses nothing while answers wait; it fails on what it is given then. */
function isHeldByNode(socket: Socket): boolean {
  return Reflect.get(socket, '_paused') === true;
}

/** The next piece to parse, and what to call when that is done. */
type NextPiece = (left: Buffer) => { readonly length: number; readonly parsed: () => void };

/** Finds where what has come is to be cut: behind a head, behind a body. */
function createCutter({ body }: Pick<IntakeSource, 'body'>): NextPiece {
  let bodyLeft = 0;
  /** Whether a head has begun, and its last bytes: its end may come in two reads. */
  let inHead = false;
  let tail = '';

  const endOfHead = (left: Buffer): number | undefined => {
    let from = 0;
    // Empty lines before a request belong to it.
    while (!inHead && (left[from] === CR || left[from] === LF)) from += 1;
    if (from === left.length) return undefined;
    inHead = true;
    const across =
      tail === '' ? -1 : (tail + left.toString('latin1', 0, HEAD_END.length - 1)).indexOf(HEAD_END);
    if (across >= 0) return across + HEAD_END.length - tail.length;
    const at = left.indexOf(HEAD_END, from);
    if (at >= 0) return at + HEAD_END.length;
    tail = (tail + left.toString('latin1', Math.max(0, left.length - HEAD_END.length + 1))).slice(
      1 - HEAD_END.length,
    );
    return undefined;
  };

  const nothing = () => undefined;
  const beginBody = () => {
    const announced = body();
    bodyLeft = typeof announced === 'number' ? announced : 0;
  };

  return (left) => {
    const underWay = body();
    if (underWay === undefined) {
      const end = endOfHead(left);
      if (end === undefined) return { length: left.length, parsed: nothing };
      inHead = false;
      tail = '';
      return { length: end, parsed: beginBody };
    }
    if (underWay !== 'chunks' && bodyLeft > 0) {
      const length = Math.min(left.length, bodyLeft);
      bodyLeft -= length;
      return { length, parsed: nothing };
    }
    const end = left.indexOf(HEAD_END, Math.min(left.length, LEAST_CHUNKED));
    return { length: end < 0 ? left.length : end + HEAD_END.length, parsed: nothing };
  };
}
