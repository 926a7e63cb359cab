import type { RequestListener } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { requireType } from './body';
import { httpError } from './errors';
import { createShell, type Serve, type Shell, setHeaders } from './shell';

export type { Shell };

/** An Express app in its shell, with a 404 for everything that `mount` does not answer. */
export function createApp(shell: Shell, mount: (app: express.Express) => void): RequestListener {
  return createShell(shell, createRoutes(mount));
}

/** The routes that `mount` makes with Express, to be put into a shell. */
export function createRoutes(mount: (app: express.Express) => void): Serve {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  mount(app);
  // Last of all: Express would answer OPTIONS by itself. As a route, it is passed over by what others have thrown.
  app.options(/^/, () => {
    throw httpError('not_found');
  });
  return (request, response, exchange, fail) => {
    setHeaders(response, exchange);
    app(request as Request, response as Response, (thrown?: unknown) =>
      fail(thrown ?? httpError('not_found')),
    );
  };
}

/** For a path whose methods are all routed: answers 405 with the methods that exist. */
export function onlyMethods(...methods: string[]): RequestHandler {
  const allow = methods.join(', ');
  return (request) => {
    const description = `This path accepts ${allow}, not ${request.method}.`;
    throw httpError('method_not_allowed', description, { headers: { allow } });
  };
}

/** Refuses a body that isn't declared as JSON; a request that announces no body passes. */
export const requireJson: RequestHandler = (request, _response, next) => {
  requireType(request, ['application/json'], 'Send the body as JSON, with content-type: application/json.');
  next();
};
