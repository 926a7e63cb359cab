import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { takes } from '../../api/stream-id';
import type { Exchange } from '../../http/app';
import type { HttpError } from '../../http/errors';
import { apiError } from '../errors';

declare module '../../http/app' {
  interface Exchange {
    /** Whose request it is, behind the guard. */
    apiKey?: ApiKey | undefined;
  }
}

/** Whose request it is. @throws TypeError on a route that no guard stands before. */
export function callerOf({ locals }: { readonly locals: Pick<Exchange, 'apiKey'> }): ApiKey {
  if (!locals.apiKey) throw new TypeError('No guard runs before this route');
  return locals.apiKey;
}

/** Who may do what: the name is for the audit, the key itself is known by its digest alone. */
export interface ApiKey {
  readonly name: string;
  /** `write` may do everything that `read` may. */
  readonly scope: 'read' | 'write';
  /** Beginnings of the stream ids it reaches; undefined: all streams. */
  readonly streams: readonly string[] | undefined;
}

/** The API key that a header value is, or undefined for none. */
export type FindApiKey = (given: string | string[] | undefined) => ApiKey | undefined;

export function mayRead({ streams }: ApiKey, streamId: string): boolean {
  return takes(streams, streamId);
}

export function mayWrite(key: ApiKey, streamId: string): boolean {
  return key.scope === 'write' && mayRead(key, streamId);
}

/** @throws HttpError 403 that says what the key lacks. */
export function requireRead(key: ApiKey, streamId: string): void {
  if (!mayRead(key, streamId)) throw forbidden(`The API key ${key.name} does not reach this stream`);
}

/** @throws HttpError 403 that says what the key lacks. */
export function requireWrite(key: ApiKey, streamId: string): void {
  requireRead(key, streamId);
  requireScope(key);
}

/** For a request that changes or provisions something whatever the streams. @throws HttpError 403. */
export function requireScope({ name, scope }: ApiKey): void {
  if (scope !== 'write') throw forbidden(`The API key ${name} may read only`);
}

/** For a request that tells of streams whosever they are. @throws HttpError 403. */
export function requireAllStreams({ name, streams }: ApiKey): void {
  if (streams !== undefined)
    throw forbidden(`The API key ${name} reaches some streams only, and the fleet tells of all`);
}

function forbidden(why: string): HttpError {
  return apiError(
    'forbidden',
    `${why}. Use another API key, or have its rights changed in the file of API keys.`,
  );
}

/**
 * The paths that need an API key: what `app.use('/api', …)` matches, without the match and the rewritten URL that it
 * would cost each request.
 */
export const API = /^\/api(?:\/|$)/i;

/** Whether a request needs an API key. */
export function needsApiKey({ path }: { readonly path: string }): boolean {
  return API.test(path);
}

/**
 * Lets a request to `/api` pass that carries an API key in `x-api-key`, and refuses every other; requests elsewhere
 * pass. It stands before every route and the body parser: without a key, no path is decoded and no body read.
 */
export function requireApiKey(findApiKey: FindApiKey): RequestHandler {
  return (request, response, next) => {
    if (needsApiKey(request)) {
      const apiKey = findApiKey(request.headers['x-api-key']);
      if (!apiKey) throw apiError('unauthorized', whyUnauthorized(request));
      response.locals.apiKey = apiKey;
    }
    next();
  };
}

/** What is wrong with the API key of a request, as a sentence. */
export function whyUnauthorized({ headers }: IncomingMessage): string {
  if (headers['x-api-key'] !== undefined) return 'The API key in x-api-key is not the one of this service.';
  if (headers['api-key'] !== undefined)
    return 'Send the API key in the header x-api-key; API-KEY is not read.';
  return 'Send the API key of this service in the header x-api-key.';
}
