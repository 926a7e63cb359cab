import type { RequestHandler } from 'express';
import type { FindApiKey } from './api-key';
import type { RefuseStranger } from './refuse-stranger';

/**
 * The paths that need an API key: what `app.use('/api', …)` matches, without the match and the rewritten URL that it
 * would cost each request.
 */
export const API = /^\/api(?:\/|$)/i;

/**
 * Lets a request to `/api` pass that carries an API key in `x-api-key`, and refuses every other; requests elsewhere
 * pass. It stands before every route and the body parser: a stranger's path is not decoded and his body never read.
 */
export function requireApiKey(findApiKey: FindApiKey, refuse: RefuseStranger): RequestHandler {
  return (request, response, next) => {
    if (!API.test(request.path)) {
      next();
      return;
    }
    const given = request.headers['x-api-key'];
    const apiKey = findApiKey(given);
    if (apiKey) {
      response.locals.apiKey = apiKey;
      next();
      return;
    }
    return refuse(request, response, describe(given, request.headers['api-key']));
  };
}

function describe(given: string | string[] | undefined, misnamed: string | string[] | undefined): string {
  if (given !== undefined) return 'The API key in x-api-key is not the one of this service.';
  if (misnamed !== undefined) return 'Send the API key in the header x-api-key; API-KEY is not read.';
  return 'Send the API key of this service in the header x-api-key.';
}
