import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet, { type HelmetOptions } from 'helmet';
import { describeThrown, errorBody, type HttpError, toHttpError } from './errors';
import type { Log } from './log';

/** One request on its way, and what is learned of it. Express knows it as `response.locals`. */
export interface Exchange {
  /** The caller's `x-request-id` when it is fit for a log, else a new one. */
  readonly requestId: string;
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

type Followed = ServerResponse & { locals?: Exchange };

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Makes the middleware that gives a request its id, and logs it when it is answered. */
export function requestLog({ log, newId, now, quietPaths = [], observe }: Shell) {
  const quietFolders = quietPaths.map((quiet) => (quiet.endsWith('/') ? quiet : `${quiet}/`));
  const isQuiet = (path: string) =>
    quietPaths.includes(path) || quietFolders.some((quiet) => path.startsWith(quiet));
  return (request: IncomingMessage, response: Followed, next: () => void): void => {
    const started = now();
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
    const exchange: Exchange = { requestId, route: undefined, logFields: undefined };
    response.locals = exchange;
    response.setHeader('x-request-id', requestId);
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
    next();
  };
}

/** What is known of a request that is followed. */
export function exchangeOf({ locals }: Followed): Exchange {
  if (!locals) throw new TypeError('The request is not followed');
  return locals;
}

function routeOfExpress(request: IncomingMessage & { readonly route?: { readonly path?: unknown } }): string {
  return typeof request.route?.path === 'string' ? request.route.path : 'unmatched';
}

/** The path of a request, as it came. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

/** The one writer of errors: in the JSON form of all, with the cause of a failure in the log and nowhere else. */
export function errorAnswer({ log, onError }: Shell) {
  return (thrown: unknown, request: IncomingMessage, response: Followed): void => {
    const requestId = response.locals?.requestId;
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

/** Makes the middleware that sets the security headers, of an API unless a service has pages. */
export function securityHeaders(shell: Shell) {
  return helmet(shell.securityHeaders ?? API_HEADERS);
}
