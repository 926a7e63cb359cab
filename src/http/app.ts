import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { requireType } from './body';
import { httpError } from './errors';
import { errorAnswer, requestLog, type Shell, securityHeaders } from './shell';

export type { Shell };

/**
 * An Express app with what every service needs around its routes: request id, one log line a request, security headers,
 * errors as JSON, and a 404 for everything that `mount` does not answer.
 */
export function createApp(shell: Shell, mount: (app: express.Express) => void): express.Express {
  const app = newApp();
  app.use(requestLog(shell), securityHeaders(shell));
  mount(app);
  app.use(() => {
    throw httpError('not_found');
  });
  const answerError = errorAnswer(shell);
  app.use((thrown: unknown, request: Request, response: Response, _next: NextFunction) =>
    answerError(thrown, request, response),
  );
  return app;
}

function newApp(): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  return app;
}

/**
 * Routes that are made with the first request below one of these paths: Express compiles each handler of each route,
 * which a start with hundreds of them would wait for. What none of them answers goes on behind; what was thrown before
 * them meets their error handlers, as it would if they stood here.
 * @returns makes the routes, or answers those that are made.
 */
export function mountLazily(
  app: express.Express,
  paths: readonly string[],
  mount: (app: express.Express) => void | Promise<void>,
): () => Promise<express.Express> {
  let made: Promise<express.Express> | undefined;
  const thrownBefore = new WeakMap<Request, unknown>();
  const passed = new WeakSet<Request>();
  const make = async () => {
    const inner = newApp();
    inner.use((request, _response, next) => next(thrownBefore.get(request)));
    await mount(inner);
    return inner;
  };
  const routes = () => {
    made ??= make();
    return made;
  };
  // Express takes paths in any letter case.
  const isBelow = ({ path }: Request) =>
    paths.some((each) => `${path.toLowerCase()}/`.startsWith(`${each}/`));
  app.use(async (request, response, next) => {
    if (!isBelow(request)) {
      next();
      return;
    }
    passed.add(request);
    (await routes())(request, response, next);
  });
  app.use(async (thrown: unknown, request: Request, response: Response, next: NextFunction) => {
    if (passed.has(request) || !isBelow(request)) {
      next(thrown);
      return;
    }
    thrownBefore.set(request, thrown);
    (await routes())(request, response, next);
  });
  return routes;
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
