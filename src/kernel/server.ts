import { createServer, type RequestListener, type Server, type ServerOptions, STATUS_CODES } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { ConfigError } from './config';
import { limitConnections, rememberAddresses } from './connections';
import { describeThrown, systemCode } from './errors';
import type { Log } from './log';
import { followSilent } from './silent-connections';
import type { Tls } from './tls';

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

export interface Serving {
  readonly server: Server | SecureServer;
  /** Ends the connections on which the client has said nothing yet. */
  cutSilent(): void;
}

/**
 * Starts to listen, for HTTPS when there is `tls`. Port 0 takes a free one. Rejects with the system's error
 * (`EADDRINUSE`, `EACCES`).
 */
export function listen(
  handler: RequestListener,
  host: string,
  port: number,
  { tls }: { tls?: Tls | undefined } = {},
): Promise<RunningServer> {
  const serving = create(tls, (request, response) => {
    request.url = originForm(request.url ?? '/');
    handler(request, response);
  });
  const { server } = serving;
  limitConnections(server);
  rememberAddresses(server);
  server.on('clientError', refuseUnreadable);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      resolve({
        url: urlOf(tls ? 'https' : 'http', host, address.port),
        port: address.port,
        stop: (graceMs) => stop(serving, graceMs),
      });
    });
  });
}

const OPTIONS: ServerOptions = {
  keepAliveTimeout: 65_000,
  requestTimeout: 60_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 5_000,
  noDelay: true,
};

function create(tls: Tls | undefined, listener: RequestListener): Serving {
  if (tls) {
    // Loaded where it is used: most sidecars stand beside their packager and speak plain HTTP.
    const { createSecureServer }: typeof import('./secure-server') = require('./secure-server');
    return createSecureServer(OPTIONS, tls, listener);
  }
  const server = createServer(OPTIONS, listener);
  return { server, cutSilent: followSilent(server, 'connection') };
}

/** The path of a request's target. Express takes an absolute one, too, but loses its way on one that is no URL. */
function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  if (!URL.canParse(target)) return '/-';
  const { pathname, search } = new URL(target);
  return pathname + search;
}

/** Answers what Node's parser refuses in the form of every other error. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, description] = UNREADABLE[error.code ?? ''] ?? [400, 'The request is not valid HTTP.'];
  const code = (STATUS_CODES[status] ?? '').toLowerCase().replaceAll(' ', '_');
  const body = JSON.stringify({ errors: [{ code, description }] });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n`;
  socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`);
}

const UNREADABLE: Readonly<Record<string, [status: number, description: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers are larger than this service takes.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not arrive in time.'],
};

async function stop({ server, cutSilent }: Serving, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A kept-alive connection turns idle after its last answer; close() closed only those that were idle already.
  const idle = setInterval(() => {
    server.closeIdleConnections();
    cutSilent();
  }, 20);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(cut);
}

function urlOf(scheme: string, host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** Reads a process's configuration; one with faults is told on standard error and ends the process with 2. */
export function configOrExit<Config>(read: () => Config): Config {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    process.stderr.write(`${thrown.message}\nSee the table of variables in README.md.\n`);
    process.exit(2);
  }
}

export interface Service {
  readonly name: string;
  readonly log: Log;
  /** Starts everything and answers how to stop it. */
  start(): Promise<{ stop(): Promise<void> }>;
}

/**
 * Runs a service as this process: starts it, stops it on SIGTERM, SIGINT or SIGHUP, and ends with 0 after a clean stop and
 * 1 after a failure. A second signal ends at once.
 */
export async function runAsProcess({ name, log, start }: Service): Promise<void> {
  const fail = (message: string) => (thrown: unknown) => {
    log.error(message, { service: name, cause: describeThrown(thrown) });
    // For the case that the log is what failed.
    process.stderr.write(`${name}: ${message}\n`);
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
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  await starting.catch((thrown: unknown) => fail(startFailure(systemCode(thrown)))(thrown));
}

function startFailure(code: string | undefined): string {
  if (code === 'EADDRINUSE') return 'cannot start: the port is taken by another program; choose another port';
  if (code === 'EACCES') return 'cannot start: this user may not listen on the port; choose one above 1023';
  if (code === 'EADDRNOTAVAIL') return 'cannot start: the host address is not one of this machine';
  return 'cannot start';
}
