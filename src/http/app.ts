import express, { type ErrorRequestHandler, type RequestHandler } from 'express';
import type { HelmetOptions } from 'helmet';
import { createErrorAnswer, type ErrorAnswerOptions } from './answer-error';
import { HttpError } from './errors';
import { type RequestLogOptions, requestLog } from './request-log';
import { API_HEADERS, securityHeaders } from './security-headers';

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

export interface Shell extends RequestLogOptions, ErrorAnswerOptions {
  /** Helmet's options for a service with pages; without them, its answers are taken for an API's. */
  readonly securityHeaders?: HelmetOptions;
}

/**
 * An Express app with what every service needs around its routes: request id, security headers, one log line a
 * request, JSON errors, and a 404 for everything that `mount` does not answer.
 */
export function createApp(shell: Shell, mount: (app: express.Express) => void): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.use(openRequest(shell));
  mount(app);
  app.use(() => {
    throw new HttpError(404, { code: 'not_found', description: 'There is nothing at this path.' });
  });
  app.use(answerErrors(shell));
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
  // What nearly all send needs no parsing of media types.
  const plain = request.headers['content-type'] === 'application/json';
  if (!plain && request.is('application/json') === false) {
    const description = 'Send the body as JSON, with content-type: application/json.';
    throw new HttpError(415, { code: 'unsupported_media_type', description });
  }
  next();
};

function openRequest(shell: Shell): RequestHandler {
  const follow = requestLog(shell);
  const headers = securityHeaders(shell.securityHeaders ?? API_HEADERS);
  return (request, response, next) => {
    const requestId = follow(request, response, () => ({
      route: routeOf(request.route),
      path: request.path,
      fields: response.locals.logFields,
    }));
    response.locals.requestId = requestId;
    response.setHeader('x-request-id', requestId);
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

function routeOf(route: { path?: unknown } | undefined): string {
  return typeof route?.path === 'string' ? route.path : 'unmatched';
}

function answerErrors(shell: Shell): ErrorRequestHandler {
  const answerError = createErrorAnswer(shell);
  return (thrown: unknown, request, response, _next) => {
    answerError(request, response, response.locals.requestId, thrown);
  };
}
