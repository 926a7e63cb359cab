import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet, { type HelmetOptions } from 'helmet';
import { describeThrown, errorBody, type HttpError, toHttpError } from './errors';
import type { Log } from './log';

/** One request on its way, and what is learned of it. Express knows it as `response.locals`. */
export interface Exchange {
  /** The caller's `x-request-id` when it is fit for a log, else a new one. */
  readonly requestId: string;
  /** The headers of every answer, name after name and value, as `writeHead` takes them. */
  readonly headers: readonly string[];
  /** The route's pattern, for the log and the metrics. Of a route of Express, its own. */
  route?: string | undefined;
  /** What a handler adds to the log line. Never a secret. */
  logFields?: Readonly<Record<string, unknown>> | undefined;
}

declare global {
  namespace Express {
    interface Locals extends Exchange {}
  }
}

export interface Shell {
  readonly log: Log;
  /** A new, unguessable request id. */
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Paths that machines ask for every few seconds; they and what is below them are logged at `debug`. */
  readonly quietPaths?: readonly string[];
  /** Takes the figures of every request when its answer is done. Must not throw. */
  readonly observe?: ((answered: AnsweredRequest) => void) | undefined;
  /** Takes every error that is answered. Must not throw. */
  readonly onError?:
    | ((error: HttpError, request: IncomingMessage, response: ServerResponse) => void)
    | undefined;
  /** Helmet's options for a service with pages; without them, its answers are taken for an API's. */
  readonly securityHeaders?: HelmetOptions;
}

/** The figures of one request. */
export interface AnsweredRequest {
  readonly method: string;
  /** The route's pattern, or `unmatched`. A path is a client's text. */
  readonly route: string;
  /** `CLIENT_GONE` when the connection ended before there was an answer. */
  readonly status: number;
  readonly ms: number;
  /** Whether the connection ended before the answer did. */
  readonly aborted: boolean;
}

/** What nginx logs for a client that went away before its answer. */
export const CLIENT_GONE = 499;

/**
 * Answers a request. What it throws, or gives to `fail`, is answered as an error. The exchange's headers are not set yet:
 * one call of `writeHead` for all costs a third of a call for each.
 */
export type Serve = (
  request: IncomingMessage,
  response: ServerResponse,
  exchange: Exchange,
  fail: (thrown: unknown) => void,
) => void | Promise<void>;

/** What every service needs around its routes: request id, security headers, one log line a request, JSON errors. */
export function createShell(shell: Shell, serve: Serve): RequestListener {
  const follow = requestLog(shell);
  const answerError = createErrorAnswer(shell);
  return (request, response: ServerResponse & { locals?: Exchange }) => {
    const exchange = follow(request, response);
    response.locals = exchange;
    const fail = (thrown: unknown) => answerError(request, response, exchange, thrown);
    try {
      serve(request, response, exchange, fail)?.catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
  };
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Follows requests to their log lines. */
function requestLog(shell: Shell) {
  const { log, newId, now, quietPaths = [], observe } = shell;
  const always = securityHeaders(shell.securityHeaders ?? API_HEADERS).flat();
  const quietFolders = quietPaths.map((quiet) => (quiet.endsWith('/') ? quiet : `${quiet}/`));
  const isQuiet = (path: string) =>
    quietPaths.includes(path) || quietFolders.some((quiet) => path.startsWith(quiet));
  return (request: IncomingMessage, response: ServerResponse): Exchange => {
    const started = now();
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
    const exchange: Exchange = {
      requestId,
      headers: ['x-request-id', requestId, ...always],
      route: undefined,
      logFields: undefined,
    };
    response.on('close', () => {
      const route = exchange.route ?? routeOfExpress(request);
      const aborted = !response.writableFinished;
      const status = aborted && !response.headersSent ? CLIENT_GONE : response.statusCode;
      const ms = Math.round((now() - started) * 100) / 100;
      const { method = '' } = request;
      const entry = {
        requestId,
        method,
        route,
        status,
        ms,
        ...(aborted && { aborted }),
        ...exchange.logFields,
      };
      if (status < 400 && isQuiet(pathOf(request))) log.debug('request', entry);
      else log.info('request', entry);
      observe?.({ method, route, status, ms, aborted });
    });
    return exchange;
  };
}

function routeOfExpress(request: IncomingMessage & { readonly route?: { readonly path?: unknown } }): string {
  return typeof request.route?.path === 'string' ? request.route.path : 'unmatched';
}

/** Sets the headers of every answer, for who answers by `setHeader`. */
export function setHeaders(response: ServerResponse, { headers }: Exchange): void {
  for (let at = 0; at < headers.length; at += 2) response.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
}

/** The path of a request, as it came. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** The one writer of errors: in the JSON form of all, with the cause of a failure in the log and nowhere else. */
function createErrorAnswer({ log, onError }: Shell) {
  return (request: IncomingMessage, response: ServerResponse, exchange: Exchange, thrown: unknown): void => {
    const { requestId } = exchange;
    const error = toHttpError(thrown);
    onError?.(error, request, response);
    if (error.status >= 500) {
      const cause = error.cause === undefined ? undefined : describeThrown(error.cause);
      const codes = error.problems.map((problem) => problem.code);
      const fields = { requestId, status: error.status, codes, cause };
      // 503 is a state that lasts and that probes ask for; the others are failures.
      if (error.status === 503) log.warn('not available', fields);
      else log.error('request failed', fields);
    }
    if (request.socket.destroyed && !request.complete) {
      // The client went away amid its request: there is nobody to answer, and the log should not say so.
      response.destroy();
      return;
    }
    if (response.headersSent) {
      // Half an answer is out: only a cut connection tells that it isn't whole.
      response.destroy();
      return;
    }
    const body = JSON.stringify(errorBody(error));
    setHeaders(response, exchange);
    response.statusCode = error.status;
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', Buffer.byteLength(body));
    response.end(body);
  };
}

/** For answers that no browser shows: nothing may be loaded, framed or sniffed. */
const API_HEADERS: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
  xFrameOptions: { action: 'deny' },
  // These speak of pages, downloads and plug-ins.
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
};

/** The headers that helmet sets for these options. They are the same for every request, so they are asked for once. */
export function securityHeaders(options: HelmetOptions): readonly (readonly [name: string, value: string])[] {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  helmet(options)(request, response, () => undefined);
  return Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)] as const);
}
