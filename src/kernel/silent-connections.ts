import type { Server, Socket } from 'node:net';

/**
 * Follows a server's connections; the function it answers ends those on which the client has said nothing yet. Node
 * takes them for busy ones and would let them hold up a stop. `event` is `secureConnection` for a TLS server.
 */
export function followSilent(server: Server, event: 'connection' | 'secureConnection'): () => void {
  const open = new Set<Socket>();
  server.on(event, (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  return () => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  };
}
