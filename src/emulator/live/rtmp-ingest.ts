import { createServer, type Socket } from 'node:net';
import { networkOf } from '../../http/address';
import { systemCode } from '../../http/errors';
import { RtmpConnection, type RtmpParts } from './rtmp-connection';
import type { RtmpRelay } from './rtmp-protocol';

export interface RtmpIngest {
  readonly port: number;
  /** Takes no new connection and cuts those that are open. */
  stop(): Promise<void>;
}

/** How many connections may be on the way to a stream key, and how long. */
export interface RtmpIngestSettings {
  /** Those that have not begun the handshake. They cost next to nothing. */
  readonly maxSilent: number;
  /** Those that have, and have shown no stream key. */
  readonly maxAsking: number;
  /** How long a connection may take to show a stream key. */
  readonly keyWithinMs: number;
}

export const RTMP_INGEST_SETTINGS: RtmpIngestSettings = {
  maxSilent: 192,
  maxAsking: 128,
  keyWithinMs: 10_000,
};

/** The beginning of the handshake: the version, and a signature of 1536 bytes. */
const OPENING_BYTES = 1537;
const VERSION = 3;

/**
 * Takes encoders at `rtmp://<host>:<port>/live/<stream key>`, and lets who knows the key watch at the same address
 * while the encoder streams. Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`, `EACCES`).
 */
export function startRtmpIngest(
  parts: RtmpParts,
  { host, port }: { readonly host: string; readonly port: number },
  { maxSilent, maxAsking, keyWithinMs }: RtmpIngestSettings = RTMP_INGEST_SETTINGS,
): Promise<RtmpIngest> {
  const sockets = new Set<Socket>();
  const silent = new Newcomers(maxSilent);
  const asking = new Newcomers(maxAsking);
  /** By stream key, while its encoder is connected. */
  const relays = new Map<string, RtmpRelay>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    silent.add(socket);
    const deadline = setTimeout(() => socket.destroy(), keyWithinMs);
    const onKeyShown = () => {
      asking.delete(socket);
      clearTimeout(deadline);
    };
    socket.on('error', (error) => parts.log.debug('rtmp connection broke', { code: systemCode(error) }));
    socket.on('close', () => {
      sockets.delete(socket);
      silent.delete(socket);
      onKeyShown();
    });
    readOpening(socket, (opening) => {
      silent.delete(socket);
      asking.add(socket);
      new RtmpConnection(socket, opening, { ...parts, relays, onKeyShown });
    });
  });
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      const address = server.address();
      resolve({ port: typeof address === 'object' && address ? address.port : port, stop });
    });
  });
}

/** Waits for the beginning of the handshake; what can't be one is cut. */
function readOpening(socket: Socket, done: (opening: Buffer) => void): void {
  let opening = Buffer.alloc(0);
  const read = (data: Buffer) => {
    opening = Buffer.concat([opening, data]);
    if (opening[0] !== VERSION) {
      socket.destroy();
      return;
    }
    if (opening.length < OPENING_BYTES) return;
    socket.off('data', read);
    done(opening);
  };
  socket.on('data', read);
}

/**
 * Connections on the way to a stream key. When there are too many, the network with the most of them loses its oldest:
 * whoever opens connections in masses ends its own, and those that wait longest are the least likely to have a key.
 */
class Newcomers {
  readonly #most: number;
  /** The network of each, oldest first. */
  readonly #networks = new Map<Socket, string>();

  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket): void {
    this.#networks.set(socket, networkOf(socket.remoteAddress));
    if (this.#networks.size <= this.#most) return;
    const oldest = this.#oldestOfTheMost();
    if (!oldest) return;
    this.delete(oldest);
    oldest.destroy();
  }

  /** It has come further, or has gone. */
  delete(socket: Socket): void {
    this.#networks.delete(socket);
  }

  #oldestOfTheMost(): Socket | undefined {
    const sockets = new Map<string, Socket[]>();
    for (const [socket, network] of this.#networks) {
      const own = sockets.get(network);
      if (own) own.push(socket);
      else sockets.set(network, [socket]);
    }
    let most: Socket[] = [];
    for (const own of sockets.values()) if (own.length > most.length) most = own;
    return most[0];
  }
}
