import { once } from 'node:events';
import { createServer, type RequestListener, type ServerOptions } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { ConfigError } from './config';
import { type Connections, createConnections } from './connections';
import { answerAndClose, describeThrown, httpError, numberProperty, systemCode } from './errors';
import type { Log } from './log';
import { createTlsServer, type Tls } from './tls';

export type RunningServer = Awaited<ReturnType<typeof listen>>;

interface ListenOptions {
  readonly tls?: Tls | undefined;
  readonly connections?: Connections;
  /** For a whole request, its body included; a minute unless given. */
  readonly requestTimeoutMs?: number;
}

/** The host to listen on. Where a container has no IPv6, Node would take `::1` for `localhost`, and its clients 127.0.0.1. */
export const boundHost = (host: string) => (host === 'localhost' ? '127.0.0.1' : host);

/** Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`, `EACCES`). */
export async function listen(
  handler: RequestListener,
  host: string,
  port: number,
  { tls, connections = createConnections(), requestTimeoutMs = 60_000 }: ListenOptions = {},
) {
  const take: RequestListener = (request, response) =>
    connections.arrived(request, response, () => {
      request.url = originForm(request.url ?? '/');
      if (request.httpVersion === '1.1' && request.headers.host === undefined)
        answerAndClose(response, NO_HOST);
      else handler(request, response);
    });
  // Node refuses a longer time for the head than for the whole request.
  const headersTimeout = Math.min(10_000, requestTimeoutMs);
  const server = createServer({ ...OPTIONS, headersTimeout, requestTimeout: requestTimeoutMs }, take);
  const front = tls ? createTlsServer({ noDelay: true }, tls) : createTcpServer({ noDelay: true });
  connections.follow(front, tls !== undefined, (socket) => server.emit('connection', socket));
  // Node begins to check the times of a server's connections with this event.
  front.on('listening', () => server.emit('listening'));
  front.on('close', () => server.close());
  // An unknown expectation may be ignored (RFC 9110 § 10.1.1).
  server.on('checkExpectation', take);
  server.on('connect', (_request, socket) => connections.refuse(socket as Socket, 'not_http', NO_TUNNEL));
  server.on('clientError', ({ code }: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket;
    // The client has closed its side within a request.
    if (code === 'HPE_INVALID_EOF_STATE') socket.destroy();
    else if (code === 'ERR_HTTP_REQUEST_TIMEOUT') connections.refuse(socket, 'request_timeout', TIMEOUT);
    else connections.refuse(socket, 'not_http', code === 'HPE_HEADER_OVERFLOW' ? LARGE_HEAD : NOT_HTTP);
  });
  front.listen({ host: boundHost(host), port, backlog: BACKLOG });
  await once(front, 'listening');
  const address = front.address() as AddressInfo;
  return {
    url: urlOf(tls ? 'https' : 'http', host, address.port),
    port: address.port,
    /** Takes no new connection, and lets requests under way be answered. Connections busy after `graceMs` are cut. */
    stop: (graceMs: number) => stop(front, connections, graceMs),
  };
}

/** Connections that may wait to be taken, within the system's limit. Beyond it, clients try for seconds. */
const BACKLOG = 4096;
const DRAIN_MS = 100;

const OPTIONS: ServerOptions = {
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
  // Node's answer has no error code.
  requireHostHeader: false,
};

const TIMEOUT = httpError('request_timeout');
const LARGE_HEAD = httpError('request_header_fields_too_large');
const NOT_HTTP = httpError('bad_request');
const NO_HOST = httpError('bad_request', 'The request has no Host header.');
const NO_TUNNEL = httpError('bad_request', 'This service is not a proxy: it does not support CONNECT.');

/** Express takes other targets, too, but loses its way on one without a path, and Node warns of how it reads a fragment. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target.replace(/#.*/, '');
  if (!URL.canParse(target)) return NO_PATH;
  const { pathname, search } = new URL(target);
  return pathname.startsWith('/') ? pathname + search : NO_PATH;
}

const NO_PATH = '/-';

async function stop(server: Server, connections: Connections, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.drain(false);
  // A new connection has this long to send its request; a kept one turns idle after its last answer.
  const draining = setInterval(() => connections.drain(true), DRAIN_MS);
  const cut = setTimeout(() => connections.destroyAll(), graceMs);
  await closed;
  clearInterval(draining);
  clearTimeout(cut);
}

function urlOf(scheme: string, host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** `--help` names the page of the variables, and ends the process; other arguments would change nothing. */
export function answerHelp(page: string): void {
  const given = process.argv.slice(2);
  if (given.length === 0) return;
  const isHelp = given.some((argument) => argument === '--help' || argument === '-h');
  const says = `All settings are environment variables. See ${page}.\n`;
  if (isHelp) process.stdout.write(says);
  else process.stderr.write(`This program takes no arguments. ${says}`);
  process.exit(isHelp ? 0 : 2);
}

/** Reports a ConfigError with the page of the variables, and ends the process with 2. */
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
  /** That of its variables. */
  readonly page: string;
  readonly log: Log;
  /** A ConfigError ends the process as in `configOrExit`. */
  start(): Promise<{ stop(): Promise<void> }>;
}

/** Stops on SIGTERM, SIGINT or SIGHUP, ends with 0, or 1 after a failure; a second signal ends at once. */
export async function runAsProcess({ name, page, log, start }: Service): Promise<void> {
  const fail = (message: string) => (thrown: unknown) => {
    log.error(message, { service: name, cause: describeThrown(thrown) });
    // In case the log itself failed.
    process.stderr.write(`${name}: ${message}\n`);
    process.exit(1);
  };
  process.on('uncaughtException', fail('uncaught exception'));
  process.on('unhandledRejection', fail('unhandled rejection'));
  const starting = start().catch((thrown: unknown) =>
    configOrExit(page, () => {
      throw thrown;
    }),
  );
  let stopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info('stopping', { service: name, signal });
    // Keeps the process alive during the stop: it could end before its last lines are written.
    const alive = setInterval(() => undefined, 1000);
    // A signal may come before the start is done, and the service already answer requests.
    starting
      .then((running) => running.stop())
      .finally(() => clearInterval(alive))
      .then(() => {
        log.info('stopped', { service: name });
        process.exit(0);
      }, fail('stop failed'));
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  await starting.catch((thrown: unknown) => fail(startFailure(thrown))(thrown));
}

function startFailure(thrown: unknown): string {
  const code = systemCode(thrown);
  const port = numberProperty(thrown, 'port');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'cannot start: no host has the name to listen on; give a name or address without scheme, port, brackets';
  if (code === 'EADDRNOTAVAIL') return 'cannot start: the host address is not one of this machine';
  // Without a port, the fault is of a file.
  if (port !== undefined && code === 'EADDRINUSE')
    return `cannot start: port ${port} is taken by another program; choose another port`;
  if (port !== undefined && code === 'EACCES')
    return `cannot start: this user may not listen on port ${port}; choose one above 1023`;
  return 'cannot start';
}
