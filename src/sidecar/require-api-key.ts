import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { HttpError } from '../kernel/errors';

// What `app.use('/api', …)` matches, without the match and the rewritten URL that it would cost each request.
const API = /^\/api(?:\/|$)/i;

export type KeyCheck = (given: string | string[] | undefined) => boolean;

/**
 * Tells whether a header value is the API key. Digests are compared, in constant time, so that neither content nor
 * length of the key shows in the time it takes.
 */
export function keyCheck(apiKey: string): KeyCheck {
  const expected = digest(apiKey);
  return (given) => typeof given === 'string' && timingSafeEqual(digest(given), expected);
}

/**
 * Lets a request to `/api` pass that carries the API key in `x-api-key`, and answers 401 to every other; requests
 * elsewhere pass. It stands before every route and the body parser: a stranger's path is not decoded and his body
 * never read.
 */
export function requireApiKey(isApiKey: KeyCheck): RequestHandler {
  return (request, _response, next) => {
    const given = request.headers['x-api-key'];
    if (isApiKey(given) || !API.test(request.path)) {
      next();
      return;
    }
    const description = describe(given, request.headers['api-key']);
    throw new HttpError(401, { code: 'unauthorized', description });
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
