import { timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { HttpError } from '../kernel/errors';
import { MOST_KEY_CHARACTERS } from './config';

// What `app.use('/api', …)` matches, without the match and the rewritten URL that it would cost each request.
const API = /^\/api(?:\/|$)/i;

export type KeyCheck = (given: string | string[] | undefined) => boolean;

/**
 * Tells whether a header value is the API key. Blocks of one length are compared in constant time, so that neither
 * content nor length of the key shows in the time it takes. (Digests would do the same at six times the cost.)
 */
export function keyCheck(apiKey: string): KeyCheck {
  const expected = Buffer.alloc(MOST_KEY_CHARACTERS);
  expected.write(apiKey, 'latin1');
  const block = Buffer.alloc(MOST_KEY_CHARACTERS);
  return (given) => {
    if (typeof given !== 'string' || given.length > MOST_KEY_CHARACTERS) return false;
    // A header value holds no NUL, so the padding stands for nothing else.
    block.fill(0, block.write(given, 'latin1'));
    return timingSafeEqual(block, expected);
  };
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
