import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { HttpError } from '../kernel/errors';

// What `app.use('/api', …)` matches, without the match and the rewritten URL that it would cost each request.
const API = /^\/api(?:\/|$)/i;

/**
 * Lets a request to `/api` pass that carries the API key in `x-api-key`, and answers 401 to every other; requests
 * elsewhere pass. It stands before every route and the body parser: a stranger's path is not decoded and his body
 * never read. Digests are compared, so neither content nor length of the key shows in the time the answer takes.
 */
export function requireApiKey(apiKey: string): RequestHandler {
  const expected = digest(apiKey);
  return (request, _response, next) => {
    const given = request.headers['x-api-key'];
    const known = typeof given === 'string' && timingSafeEqual(digest(given), expected);
    if (known || !API.test(request.path)) {
      next();
      return;
    }
    throw new HttpError(401, {
      code: 'unauthorized',
      description: describe(given, request.headers['api-key']),
    });
  };
}

function describe(given: string | string[] | undefined, misnamed: string | string[] | undefined): string {
  if (given !== undefined) return 'The API key in x-api-key is not the one of this service.';
  if (misnamed !== undefined) return 'Send the API key in the header x-api-key; API-KEY is not read.';
  return 'Send the API key of this service in the header x-api-key.';
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
