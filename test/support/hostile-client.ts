import { connect, type Socket } from 'node:net';
import { afterTest } from './after-test';

/** A client that does not behave: it keeps its side open and sends nothing except on request. */
export interface HostileClient {
  readonly socket: Socket;
  /** The bytes that came so far. */
  received(): string;
  /** Resolves with all that came when the server ends the connection, by an end or a reset. */
  readonly ended: Promise<string>;
}

export interface HostileOptions {
  /** Sent as soon as the connection is there. */
  readonly says?: string;
  /** The address it comes from, of 127.0.0.0/8. */
  readonly from?: string;
  /** Whether it reads what comes. */
  readonly reads?: boolean;
}

/** Connects, and resolves when the connection is there. It never ends its own side. */
export function hostile(
  port: number,
  { says, from = '127.0.0.1', reads = true }: HostileOptions = {},
): Promise<HostileClient> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
    afterTest(() => socket.destroy());
    const ended = new Promise<string>((ends) => {
      socket.on('end', () => ends(received));
      socket.on('close', () => ends(received));
    });
    socket.on('error', () => undefined);
    socket.once('error', reject);
    if (reads) {
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1');
      });
    }
    socket.once('connect', () => {
      if (says !== undefined) socket.write(says);
      resolve({ socket, received: () => received, ended });
    });
  });
}
