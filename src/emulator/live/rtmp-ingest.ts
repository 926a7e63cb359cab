import { createServer, type Socket } from 'node:net';
import { RtmpConnection, type RtmpParts } from './rtmp-connection';
import type { RtmpRelay } from './rtmp-protocol';

export interface RtmpIngest {
  readonly port: number;
  /** Takes no new connection and cuts those that are open. */
  stop(): Promise<void>;
}

/**
 * Takes encoders at `rtmp://<host>:<port>/live/<stream key>`, and lets who knows the key watch at the same address
 * while the encoder streams. Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`, `EACCES`).
 */
export function startRtmpIngest(
  parts: RtmpParts,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<RtmpIngest> {
  const sockets = new Set<Socket>();
  /** By stream key, while its encoder is connected. */
  const relays = new Map<string, RtmpRelay>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    new RtmpConnection(socket, relays, parts);
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
