import type { Socket } from 'node:net';
import { networkOf } from '../../http/address';

/**
 * Connections on the way to a stream key. When there are too many, the network with the most of them loses its oldest:
 * whoever opens connections in masses ends its own, and those that wait longest are the least likely to have a key.
 */
export class Newcomers {
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
