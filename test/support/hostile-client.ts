import { once } from 'node:events';
import { connect } from 'node:net';
import { afterTest } from './after-test';

/** A client that does not behave: it keeps its side open and sends nothing except on request. */
export type HostileClient = Awaited<ReturnType<typeof hostile>>;

interface HostileOptions {
  /** Sent as soon as the connection is there. */
  readonly says?: string;
  /** The address it comes from, of 127.0.0.0/8. */
  readonly from?: string;
  /** Whether it reads what comes. */
  readonly reads?: boolean;
}

/** Connects, and resolves when the connection is there. It never ends its own side. */
export async function hostile(port: number, { says, from = '127.0.0.1', reads = true }: HostileOptions = {}) {
  let received = '';
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
  afterTest(() => socket.destroy());
  /** Resolves with all that came when the server ends the connection, by an end or a reset. */
  const ended = new Promise<string>((ends) => {
    socket.on('end', () => ends(received));
    socket.on('close', () => ends(received));
  });
  socket.on('error', () => undefined);
  if (reads) {
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
  }
  await once(socket, 'connect');
  if (says !== undefined) socket.write(says);
  /** `received`: the bytes that came so far. */
  return { socket, received: () => received, ended };
}
