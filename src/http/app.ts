import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express';
import { ipKeyGenerator } from 'express-rate-limit';
import helmet, { type HelmetOptions } from 'helmet';
import typeIs from 'type-is';
import { describeThrown, errorBody, type HttpError, httpError, toHttpError } from './errors';
import type { Log } from './log';

export interface Exchange {
  /** The caller's `x-request-id` when it is fit for a log, else a new one. */
  requestId: string;
  /** Extra fields of the log line. Never secrets. */
  logFields?: Readonly<Record<string, unknown>> | undefined;
  /** For the log line: the name of its API key, and its address. */
  client?: { readonly key: string; readonly address: string } | undefined;
}

declare global {
  namespace Express {
    interface Locals extends Exchange {}
  }
}

export interface Shell {
  readonly log: Log;
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Logged at `debug`, with all paths below: machines request them every few seconds. */
  readonly quietPaths?: readonly string[];
  /** Called when the answer to a request is done. Must not throw. */
  readonly observe?: ((answered: AnsweredRequest) => void) | undefined;
  /** Called with every error that is answered. Must not throw. */
  readonly onError?: ((error: HttpError, request: Request, response: Response) => void) | undefined;
}

export interface AnsweredRequest {
  readonly method: string;
  /** The route's pattern, or `unmatched`. A path would be a client's text. */
  readonly route: string;
  /** `CLIENT_GONE` when the connection ended before there was an answer. */
  readonly status: number;
  readonly ms: number;
  /** The connection ended before the answer did. */
  readonly aborted: boolean;
}

/** nginx's status for a client that went away before its answer. */
export const CLIENT_GONE = 499;

/** No browser shows these answers: loading, framing and sniffing are forbidden. */
const API_HEADERS: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  xFrameOptions: { action: 'deny' },
  // These are about pages, downloads and plug-ins.
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
};

/** Adds request ids, a log line a request, security headers, errors as JSON, and the 404 after `mount`. */
export function createApp(shell: Shell, mount: (app: express.Express) => void): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  const follow = requestLog(shell);
  app.use((request, response, next) => {
    if (response.locals.requestId === undefined) follow(request, response);
    next();
  }, securityHeaders());
  mount(app);
  app.use(() => {
    throw httpError('not_found');
  });
  app.use(errorAnswer(shell));
  return app;
}

export function securityHeaders() {
  return helmet(API_HEADERS);
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

type Routed = IncomingMessage & { readonly route?: { readonly path?: unknown } };
export type LoggedResponse = ServerResponse & { locals: Exchange };

/** Handlers add to the `locals` of the returned response, which are logged when it is answered. */
export function requestLog({ log, newId, now, quietPaths = [], observe }: Shell) {
  const isQuiet = (path: string) =>
    quietPaths.some((quiet) => path === quiet || path.startsWith(`${quiet}/`));
  return (request: Routed, response: ServerResponse & { locals?: Exchange }): LoggedResponse => {
    const started = now();
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
    const exchange: Exchange = Object.assign(response.locals ?? {}, { requestId });
    response.setHeader('x-request-id', requestId);
    response.on('close', () => {
      const { method = '' } = request;
      const pattern = request.route?.path;
      const route = typeof pattern === 'string' ? pattern : 'unmatched';
      const aborted = !response.writableFinished;
      const status = aborted && !response.headersSent ? CLIENT_GONE : response.statusCode;
      const ms = Math.round((now() - started) * 100) / 100;
      const fields = { requestId, method, route, status, ms, ...(aborted && { aborted }) };
      const level = status < 400 && isQuiet(pathOf(request)) ? 'debug' : 'info';
      log[level]('request', { ...fields, ...exchange.client, ...exchange.logFields });
      observe?.({ method, route, status, ms, aborted });
    });
    return Object.assign(response, { locals: exchange });
  };
}

/** Of an IPv4 client of an IPv6 socket, the IPv4 address. */
export function addressOf({ socket }: IncomingMessage): string {
  return (socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
}

/** Of IPv6 the first 64 bits: a subscriber has all addresses below them. `::ffff:192.0.2.1` is IPv4. */
export function networkOf(address = ''): string {
  const version = isIP(address);
  if (version === 0) return 'unknown';
  return version === 4 ? address : ipKeyGenerator(address, 64);
}

export function pathOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  return url.split('?', 1).join();
}

export function logFailure(
  log: Log,
  { locals: { requestId } }: Response,
  { status, codes, cause }: { status: number; codes: readonly string[]; cause?: unknown },
): void {
  if (status < 500) return;
  const fields = { requestId, status, codes, cause: cause === undefined ? undefined : describeThrown(cause) };
  // 503 is a lasting state that probes ask for; the others are failures.
  if (status === 503) log.warn('not available', fields);
  else log.error('request failed', fields);
}

/** The cause of a failure is in the log and nowhere else. */
function errorAnswer({ log, onError }: Shell): ErrorRequestHandler {
  return (thrown: unknown, request, response, _next) => {
    // A late request is answered already; its handler learns of that by the end of the body.
    const error = response.statusCode === 408 ? httpError('request_timeout') : toHttpError(thrown);
    onError?.(error, request, response);
    const { status, cause, headers } = error;
    logFailure(log, response, { status, cause, codes: error.problems.map(({ code }) => code) });
    const isClientGone = request.socket.destroyed && !request.complete;
    // Only a cut connection shows that an answer is incomplete.
    if (isClientGone || response.headersSent) response.destroy();
    else response.status(status).type('json').set(headers).json(errorBody(error));
  };
}

/** A route of Express that answers 405 to the methods that it has no handler for. One for GET takes HEAD. */
export function routeAt<Path extends string>(app: express.Express, path: Path) {
  const route = app.route(path);
  return route.all(({ method }, _response, next) => {
    const all = route.stack.flatMap((layer) => layer.method?.toUpperCase() ?? []);
    const allowed = new Set(all.flatMap((each) => (each === 'GET' ? [each, 'HEAD'] : each)));
    if (!allowed.has(method)) throw methodNotAllowed(method, [...allowed]);
    next();
  });
}

export function methodNotAllowed(method: string, allowed: readonly string[]): HttpError {
  const allow = allowed.join(', ');
  const description = `This path accepts ${allow}, not ${method}.`;
  return httpError('method_not_allowed', description, { headers: { allow } });
}

/** Returns the media type; undefined: the request announces no body. @throws HttpError 415. */
export function requireType(
  request: IncomingMessage,
  types: readonly string[],
  description: string,
): string | undefined {
  const found = typeIs(request, [...types]);
  if (found === false) throw httpError('unsupported_media_type', description);
  return found ?? undefined;
}

export const requireJson: RequestHandler = (request, _response, next) => {
  requireType(request, ['application/json'], 'Send the body as JSON, with content-type: application/json.');
  next();
};
