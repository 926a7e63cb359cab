import type { Server } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';

// Idle connections must not take the file descriptors that key files need; 1024 is a usual limit for both.
const MOST_CONNECTIONS = 512;
/** From here on idle connections are ended: silent ones must not keep others out. */
const MANY_CONNECTIONS = 400;

/** Limits how many connections a server holds, and makes room for new ones before the limit is reached. */
export function limitConnections(server: Server | SecureServer): void {
  server.maxConnections = MOST_CONNECTIONS;
  let open = 0;
  server.on('connection', (socket: Socket) => {
    open += 1;
    socket.on('close', () => {
      open -= 1;
    });
    if (open >= MANY_CONNECTIONS) server.closeIdleConnections();
  });
}

/**
 * Asks each connection for its address when it comes: Node keeps it then, and of one that is reset meanwhile it would
 * know none.
 */
export function rememberAddresses(server: Server | SecureServer): void {
  const ask = ({ remoteAddress }: Socket) => remoteAddress;
  server.on('connection', ask);
  server.on('secureConnection', ask);
}
