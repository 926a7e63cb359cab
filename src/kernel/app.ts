import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import helmet, { type HelmetOptions } from 'helmet';
import { describeThrown, errorBody, HttpError, toHttpError } from './errors';
import type { Log } from './log';

declare global {
  namespace Express {
    interface Locals {
      /** The caller's `x-request-id` when it is fit for a log, else a new one. */
      requestId: string;
      /** What a handler adds to the log line of its request. Never a secret. */
      logFields?: Readonly<Record<string, unknown>>;
    }
  }
}

export interface Shell {
  readonly log: Log;
  /** A new, unguessable request id. */
  readonly newId: () => string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Paths that are asked every few seconds by machines; they are logged at `debug`. */
  readonly quietPaths?: readonly string[];
  /** Helmet's options for a service with pages; without them, its answers are taken for an API's. */
  readonly securityHeaders?: HelmetOptions;
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

/**
 * An Express app with what every service needs around its routes: request id, security headers, one log line a
 * request, JSON errors, and a 404 for everything that `mount` does not answer.
 */
export function createApp(shell: Shell, mount: (app: express.Express) => void): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(followRequest(shell));
  app.use(helmet(shell.securityHeaders ?? API_HEADERS));
  mount(app);
  app.use(() => {
    throw new HttpError(404, { code: 'not_found', description: 'There is nothing at this path.' });
  });
  app.use(answerError(shell.log));
  return app;
}

/** For a path whose methods are all routed: answers 405 with the methods that exist. */
export function onlyMethods(...methods: string[]): RequestHandler {
  const allow = methods.join(', ');
  return (request) => {
    const problem = {
      code: 'method_not_allowed',
      description: `This path takes ${allow}, not ${request.method}.`,
    };
    throw new HttpError(405, problem, { headers: { allow } });
  };
}

/** Refuses a body that isn't declared as JSON; a request that announces no body passes. */
export const requireJson: RequestHandler = (request, _response, next) => {
  if (request.is('application/json') === false) {
    const description = 'Send the body as JSON, with content-type: application/json.';
    throw new HttpError(415, { code: 'unsupported_media_type', description });
  }
  next();
};

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

function followRequest({ log, newId, now, quietPaths = [] }: Shell): RequestHandler {
  return (request, response, next) => {
    const started = now();
    const given = request.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId();
    response.locals.requestId = requestId;
    response.setHeader('x-request-id', requestId);
    response.on('close', () => {
      const fields = {
        requestId,
        method: request.method,
        // The pattern, not the path: a path is a stranger's text.
        route: routeOf(request.route),
        status: response.statusCode,
        ms: Math.round((now() - started) * 100) / 100,
        ...(response.writableFinished ? undefined : { aborted: true }),
        ...response.locals.logFields,
      };
      if (quietPaths.includes(request.path) && response.statusCode < 400) log.debug('request', fields);
      else log.info('request', fields);
    });
    next();
  };
}

function routeOf(route: { path?: unknown } | undefined): string {
  return typeof route?.path === 'string' ? route.path : 'unmatched';
}

function answerError(log: Log): ErrorRequestHandler {
  return (thrown: unknown, _request, response, next) => {
    const error = toHttpError(thrown);
    if (error.status >= 500) {
      const cause = error.cause === undefined ? undefined : describeThrown(error.cause);
      const codes = error.problems.map((problem) => problem.code);
      log.error('request failed', {
        requestId: response.locals.requestId,
        status: error.status,
        codes,
        cause,
      });
    }
    if (response.headersSent) {
      next(thrown);
      return;
    }
    response.status(error.status).set(error.headers).json(errorBody(error));
  };
}
