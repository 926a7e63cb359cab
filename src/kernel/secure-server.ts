import type { RequestListener, ServerOptions } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Serving } from './server';
import { followSilent } from './silent-connections';
import type { Tls } from './tls';

/** A server for HTTPS whose certificate changes with `tls`. */
export function createSecureServer(options: ServerOptions, tls: Tls, listener: RequestListener): Serving {
  const server = createServer(
    {
      ...options,
      ...tls.context,
      handshakeTimeout: 10_000,
      requestCert: tls.asksClients,
      // A client without a certificate is let in as far as HTTP, where it can be told what it lacks.
      rejectUnauthorized: false,
    },
    listener,
  );
  tls.follow((context) => server.setSecureContext(context));
  server.on('close', () => tls.close());

  const unsecured = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    unsecured.set(client, socket);
    socket.on('close', () => {
      if (unsecured.get(client) === socket) unsecured.delete(client);
    });
  });
  server.on('secureConnection', (socket: TLSSocket) => void unsecured.delete(clientOf(socket)));
  // Before Node's own listener, which would take the client for one that can be answered through TLS.
  server.prependListener('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    if (error.code === 'ERR_SSL_HTTP_REQUEST') unsecured.get(clientOf(socket))?.end(USE_HTTPS);
    socket.destroy();
  });
  const cutSilent = followSilent(server, 'secureConnection');
  return {
    server,
    cutSilent() {
      cutSilent();
      for (const socket of unsecured.values()) socket.destroy();
    },
  };
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

const USE_HTTPS_BODY = JSON.stringify({
  errors: [{ code: 'https_required', description: 'This port speaks HTTPS: call it with https://.' }],
});
const USE_HTTPS = [
  'HTTP/1.1 400 Bad Request',
  'Content-Type: application/json; charset=utf-8',
  `Content-Length: ${Buffer.byteLength(USE_HTTPS_BODY)}`,
  'Connection: close',
  '',
  USE_HTTPS_BODY,
].join('\r\n');
