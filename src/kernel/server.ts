import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describeThrown, systemCode } from './errors';
import type { Log } from './log';

export interface RunningServer {
  /** Where the server listens, as an address to call. */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connection, lets every request under way be answered, and ends. Connections that are still busy
   * after `graceMs` are cut.
   */
  stop(graceMs: number): Promise<void>;
}

/** Starts to listen. Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`, `EACCES`). */
export function listen(handler: RequestListener, host: string, port: number): Promise<RunningServer> {
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 60_000, noDelay: true }, handler);
  server.headersTimeout = 30_000;
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      resolve({
        url: urlOf(host, address.port),
        port: address.port,
        stop: (graceMs) => stop(server, graceMs),
      });
    });
  });
}

async function stop(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A kept-alive connection turns idle after its last answer; close() closed only those that were idle already.
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}

function urlOf(host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

export interface Service {
  readonly name: string;
  readonly log: Log;
  /** Starts everything and answers how to stop it. */
  start(): Promise<{ stop(): Promise<void> }>;
}

/**
 * Runs a service as this process: starts it, stops it on SIGTERM or SIGINT, and ends with 0 after a clean stop and
 * 1 after a failure. A second signal ends at once.
 */
export async function runAsProcess({ name, log, start }: Service): Promise<void> {
  const fail = (message: string) => (thrown: unknown) => {
    log.error(message, { service: name, cause: describeThrown(thrown) });
    process.exit(1);
  };
  process.on('uncaughtException', fail('uncaught exception'));
  process.on('unhandledRejection', fail('unhandled rejection'));
  const starting = start();
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info('stopping', { service: name, signal });
    // A signal may come before the start is done, and the service already answer requests.
    starting
      .then((running) => running.stop())
      .then(() => {
        log.info('stopped', { service: name });
        process.exit(0);
      }, fail('stop failed'));
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  await starting.catch((thrown: unknown) => fail(startFailure(systemCode(thrown)))(thrown));
}

function startFailure(code: string | undefined): string {
  if (code === 'EADDRINUSE') return 'cannot start: the port is taken by another program; choose another port';
  if (code === 'EACCES') return 'cannot start: this user may not listen on the port; choose one above 1023';
  if (code === 'EADDRNOTAVAIL') return 'cannot start: the host address is not one of this machine';
  return 'cannot start';
}
