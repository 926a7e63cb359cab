import type { RequestListener, ServerOptions } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Tls } from './tls';

const HANDSHAKE_MS = 10_000;

/** A server for HTTPS whose certificate changes with `tls`. */
export function createSecureServer(options: ServerOptions, tls: Tls, listener: RequestListener): Server {
  const server = createServer(
    {
      ...options,
      ...tls.context,
      handshakeTimeout: HANDSHAKE_MS,
      requestCert: tls.asksClients,
      // A client without a certificate is let in as far as HTTP, where it can be told what it lacks.
      rejectUnauthorized: false,
    },
    listener,
  );
  tls.follow((context) => server.setSecureContext(context));
  server.on('close', () => tls.close());
  return server;
}
