import { connect, createServer, type Socket } from 'node:net';
import { afterTest } from './after-test';
import { listening } from './listening';

/**
 * Starts a proxy in front of a TCP server with an address such as `http://127.0.0.1:2379`, on a free port, where the network
 * can fail; it is stopped after the test.
 */
export async function startCutProxy(target: string) {
  const { hostname, port: targetPort } = new URL(target);
  let isOpen = true;
  const sockets = new Set<Socket>();
  const lost = new Set<Socket>();
  const waiting = new Set<() => void>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    if (!isOpen) socket.pause();
    return socket;
  };
  const forward = (from: Socket, to: Socket) => {
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (isOpen) from.resume();
      });
    });
    // Without a network neither side hears that the other one has gone.
    from.once('close', () => (isOpen ? to.destroy() : lost.add(to)));
    from.once('end', () => to.end());
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    const open = () => {
      if (client.destroyed) return;
      const upstream = keep(connect({ host: hostname, port: Number(targetPort), allowHalfOpen: true }));
      forward(client, upstream);
      forward(upstream, client);
      upstream.once('error', () => client.resetAndDestroy());
    };
    if (isOpen) open();
    else waiting.add(open);
  });
  const port = await listening(server);
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    /** Nothing is forwarded any more, either way, and no error reports it; new connections are taken and stay silent. */
    drop() {
      isOpen = false;
      for (const socket of sockets) socket.pause();
    },
    /** Forwards again. Held data arrives, as with TCP, whose sender repeats it. */
    restore() {
      isOpen = true;
      for (const socket of lost) socket.destroy();
      lost.clear();
      for (const socket of sockets) socket.resume();
      for (const open of waiting) open();
      waiting.clear();
    },
  };
}
