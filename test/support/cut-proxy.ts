import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterTest } from './after-test';

/** Stands between a client and a server of TCP, where the network can fail. */
export interface CutProxy {
  readonly url: string;
  readonly port: number;
  /** Nothing is forwarded any more, either way, and nobody hears of it; new connections are taken and stay silent. */
  drop(): void;
  /** Connections are reset, and new ones are refused by a reset. */
  cut(): void;
  /** Forwards again. What was held back arrives, as with TCP, whose sender repeats it. */
  restore(): void;
}

/** Starts a proxy before an address such as `http://127.0.0.1:2379`, on a free port; it is stopped after the test. */
export async function startCutProxy(target: string): Promise<CutProxy> {
  const { hostname, port: targetPort } = new URL(target);
  let state: 'open' | 'dropping' | 'cut' = 'open';
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    if (state === 'dropping') socket.pause();
    return socket;
  };
  const forward = (from: Socket, to: Socket) => {
    from.on('data', (chunk) => {
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (state === 'open') from.resume();
      });
    });
    // Without a network neither side hears that the other one has gone.
    from.once('close', () => (state === 'dropping' ? lost.add(to) : to.destroy()));
    from.once('end', () => to.end());
  };
  const lost = new Set<Socket>();
  const waiting = new Set<() => void>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    if (state === 'cut') {
      client.resetAndDestroy();
      return;
    }
    const open = () => {
      if (client.destroyed) return;
      const upstream = keep(connect({ host: hostname, port: Number(targetPort), allowHalfOpen: true }));
      upstream.setNoDelay(true);
      client.setNoDelay(true);
      forward(client, upstream);
      forward(upstream, client);
      upstream.once('error', () => client.resetAndDestroy());
    };
    if (state === 'open') open();
    else waiting.add(open);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  afterTest(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    drop() {
      state = 'dropping';
      for (const socket of sockets) socket.pause();
    },
    cut() {
      state = 'cut';
      for (const socket of sockets) socket.resetAndDestroy();
    },
    restore() {
      state = 'open';
      for (const socket of lost) socket.destroy();
      lost.clear();
      for (const socket of sockets) socket.resume();
      for (const open of waiting) open();
      waiting.clear();
    },
  };
}
