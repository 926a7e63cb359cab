import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterTest } from './after-test';

/** Lets a server listen on a free port of loopback, and answers that; after the test it ends, with its connections. */
export async function listening(server: Server, after = afterTest): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}
