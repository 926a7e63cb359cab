import type { RequestListener } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { listen } from '../../src/http/server';
import { afterTest } from './after-test';
import { listening } from './listening';

/** Serves on loopback until the test is over, or all are. */
export async function serve(listener: RequestListener, after = afterTest) {
  const server = await listen(listener, '127.0.0.1', 0);
  after(() => server.stop(0));
  return server;
}

/** Serves raw bytes at the answered address: `speak` gets each connection when something has come through it. */
export async function serveRaw(speak: (socket: Socket) => unknown): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => speak(socket));
  });
  return `http://127.0.0.1:${await listening(server)}`;
}
