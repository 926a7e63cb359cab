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

/**
 * Lets connections go on with what waits on them, one at each turn of the event loop: Node takes but one new connection at
 * a turn, and hundreds of clients that send ahead must not hold up those who wait for theirs.
 */
export function createTurns(): GiveTurn {
  const waiting: (() => void)[] = [];
  const give = () => {
    const [turn] = waiting.splice(0, 1);
    if (waiting.length > 0) setImmediate(give);
    turn?.();
  };
  return (turn) => {
    if (waiting.push(turn) === 1) setImmediate(give);
  };
}

const HEAD_END = '\r\n\r\n';

/**
 * Stands between a connection and the parser that Node has put on it. Node parses all that a read brings, up to 64 KiB,
 * and makes objects for each request in it: some thousand pipelined requests from one piece of 64 KiB. Here a piece is
 * cut behind each head, and while `isBusy`, the rest waits and nothing more is read. So requests run in their order, a
 * fault in a later one shows when the earlier are answered, and a connection holds one request and what one read brings.
 *
 * Node's parser must be the only one that listens for the socket's data. `endsBefore` are the listeners for its end that
 * were there before the parser's.
 */
export function takeInTurn(
  socket: Socket,
  isBusy: () => boolean,
  giveTurn: GiveTurn,
  endsBefore: readonly Listener[],
): Intake {
  const [parse, ...others] = listenersOf(socket, 'data');
  const [finish, ...more] = listenersOf(socket, 'end').filter((each) => !endsBefore.includes(each));
  if (!parse || !finish || others.length + more.length > 0)
    throw new TypeError('The connection is not as Node leaves it to a server');
  socket.off('data', parse);
  socket.off('end', finish);
  let rest: Buffer | undefined;
  /** Whether the socket is paused by us; Node pauses it as well, while an answer waits to be taken. */
  let paused = false;
  let discarding = false;
  /** Whether the client has ended its side behind requests that still wait. */
  let ended = false;

  const feed = (bytes: Buffer): void => {
    for (let left = bytes; left.length > 0; ) {
      if (discarding) return;
      if (isBusy() || (!paused && socket.isPaused())) {
        rest = left;
        paused = true;
        socket.pause();
        return;
      }
      const end = left.indexOf(HEAD_END) + HEAD_END.length;
      // Most pieces are one request, or a part of one.
      if (end < HEAD_END.length || end === left.length) {
        parse.call(socket, left);
        break;
      }
      parse.call(socket, left.subarray(0, end));
      left = left.subarray(end);
    }
    if (!paused) return;
    paused = false;
    socket.resume();
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
