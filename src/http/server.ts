import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ConfigError } from './config';
import { type Connections, createConnections } from './connections';
import { describeThrown, systemCode } from './errors';
import { answerThrough, NO_HOST, NO_TUNNEL, unreadable } from './last-answer';
import type { Log } from './log';
import { createSecureServer, type Tls } from './tls';

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

interface ListenOptions {
  readonly tls?: Tls | undefined;
  /** What follows the server's connections; without it, the default limits hold. */
  readonly connections?: Connections;
  /** How long a whole request may take to come, its body included; a minute unless said otherwise. */
  readonly requestTimeoutMs?: number;
}

/**
 * Starts to listen, for HTTPS when there is `tls`. Port 0 takes a free one. Rejects with the system's error
 * (`EADDRINUSE`, `EACCES`).
 */
export function listen(
  handler: RequestListener,
  host: string,
  port: number,
  { tls, connections = createConnections(), requestTimeoutMs = 60_000 }: ListenOptions = {},
): Promise<RunningServer> {
  const take = (request: IncomingMessage, response: ServerResponse, before?: () => void) =>
    connections.arrived(request, response, () => {
      if (request.httpVersion === '1.1' && request.headers.host === undefined) {
        answerThrough(response, NO_HOST);
        return;
      }
      before?.();
      request.url = originForm(request.url ?? '/');
      handler(request, response);
    });
  const options = { ...OPTIONS, requestTimeout: requestTimeoutMs };
  const server = create(options, tls, (request, response) => take(request, response));
  // Without this, Node sends the interim answer at once, amid the answers to earlier requests.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) =>
    take(request, response, () => response.writeContinue()),
  );
  // An expectation that nobody knows may be passed over (RFC 9110 § 10.1.1); Node would answer it out of turn.
  server.on('checkExpectation', take);
  // Without this, Node would end the connection, and drop the answers under way.
  server.on('connect', (_request, socket) => connections.refuse(socket, 'not_http', NO_TUNNEL));
  connections.follow(server, tls !== undefined);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The client has gone, or has ended its side amid a request.
    if (error.code === 'ECONNRESET' || error.code === 'HPE_INVALID_EOF_STATE' || !socket.writable) {
      socket.destroy();
      return;
    }
    const { cause, answer } = unreadable(error.code);
    connections.refuse(socket, cause, answer);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      resolve({
        url: urlOf(tls ? 'https' : 'http', host, address.port),
        port: address.port,
        stop: (graceMs) => stop(server, connections, graceMs),
      });
    });
  });
}

/** How many connections may wait to be taken; the system's own limit holds as well. Beyond it, clients try for seconds. */
const BACKLOG = 4096;

const OPTIONS: ServerOptions = {
  keepAliveTimeout: 65_000,
  headersTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  noDelay: true,
  // Node would answer out of turn.
  requireHostHeader: false,
};

function create(
  options: ServerOptions,
  tls: Tls | undefined,
  listener: RequestListener,
): Server | SecureServer {
  if (!tls) return createServer(options, listener);
  return createSecureServer(options, tls, listener);
}

/** The path of a request's target. Express takes an absolute one, too, but loses its way on one without a path. */
function originForm(target: string): string {
  if (target.startsWith('/') || target === '*') return target;
  if (!URL.canParse(target)) return NO_PATH;
  const { pathname, search } = new URL(target);
  return pathname.startsWith('/') ? pathname + search : NO_PATH;
}

/** Nothing is at this path. */
const NO_PATH = '/-';

async function stop(server: Server | SecureServer, connections: Connections, graceMs: number): Promise<void> {
  // Node's own would cut answers that are written and not yet taken.
  server.closeIdleConnections = () => undefined;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.drain();
  // A kept-alive connection turns idle after its last answer; close() closed only those that were idle already.
  const draining = setInterval(connections.drain, 20);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(draining);
  clearTimeout(cut);
}

function urlOf(scheme: string, host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/**
 * Reads a process's configuration. One with faults is told on standard error, with the page that describes the
 * variables, and ends the process with 2.
 */
export function configOrExit<Config>(page: string, read: () => Config): Config {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    process.stderr.write(`${thrown.message}\nSee ${page}.\n`);
    process.exit(2);
  }
}

interface Service {
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
