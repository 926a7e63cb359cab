import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request, RequestHandler, Response } from 'express';
import { type MemoryStore, rateLimit } from 'express-rate-limit';
import { takes } from '../../api/stream-id';
import { addressOf, type Exchange } from '../../http/app';
import { networkOf } from '../../http/connections';
import type { HttpError } from '../../http/errors';
import { apiError } from '../errors';

declare module '../../http/app' {
  interface Exchange {
    /** The API key of a request, behind the guard. */
    apiKey?: ApiKey | undefined;
  }
}

/** The API key of a request. @throws TypeError on a route without a guard. */
export function callerOf({ locals }: { readonly locals: Pick<Exchange, 'apiKey'> }): ApiKey {
  if (!locals.apiKey) throw new TypeError('No guard runs before this route');
  return locals.apiKey;
}

/** The rights of an API key. The name is for the audit; only the digest of the key is kept. */
export interface ApiKey {
  readonly name: string;
  /** `write` may do everything that `read` may. */
  readonly scope: 'read' | 'write';
  /** Stream limits: prefixes of the stream ids that it may access; undefined: all streams. */
  readonly streams: readonly string[] | undefined;
}

/** The API key that a header value is, or undefined for none. */
export type FindApiKey = (given: string | string[] | undefined) => ApiKey | undefined;

export function mayRead({ streams }: ApiKey, streamId: string): boolean {
  return takes(streams, streamId);
}

/** @throws HttpError 403 that says what right is missing. */
export function requireRead(key: ApiKey, streamId: string): void {
  if (!mayRead(key, streamId)) throw forbidden(`The API key ${key.name} has no access to this stream`);
}

/** @throws HttpError 403 that says what right is missing. */
export function requireWrite(key: ApiKey, streamId: string): void {
  requireRead(key, streamId);
  requireScope(key);
}

/** For a request that changes or provisions something whatever the streams. @throws HttpError 403. */
export function requireScope({ name, scope }: ApiKey): void {
  if (scope !== 'write') throw forbidden(`The API key ${name} is read-only`);
}

/** For a request that reports on the streams of all tenants. @throws HttpError 403. */
export function requireAllStreams({ name, streams }: ApiKey): void {
  if (streams !== undefined)
    throw forbidden(`The API key ${name} is limited to some streams, but the API of the fleet covers all`);
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
export const API = /^\/(?:api|cpix|speke)(?:\/|$)/i;
/** Those of packagers that pull, some of which can send no header of their own but Basic. */
const PULLS = /^\/(?:cpix|speke)(?:[/?]|$)/i;

/** Whether a request needs an API key. */
function needsApiKey({ path }: { readonly path: string }): boolean {
  return API.test(path);
}

/** The API key of a request: in `x-api-key`, or without that header, of a packager that pulls, the password of Basic. */
export function apiKeyIn(findApiKey: FindApiKey, { url = '', headers }: IncomingMessage): ApiKey | undefined {
  const { 'x-api-key': given, authorization = '' } = headers;
  if (given !== undefined || !PULLS.test(url)) return findApiKey(given);
  const [, credentials = ''] = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization) ?? [];
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(credentials, 'base64').toString('utf8')) ?? [];
  return findApiKey(password);
}

/**
 * Lets a request pass that carries an API key, and refuses every other; requests to paths that need none pass. It stands
 * before every route and the body parser: without a key, no path is decoded and no body read.
 */
export function requireApiKey(findApiKey: FindApiKey): RequestHandler {
  return (request, response, next) => {
    if (needsApiKey(request)) {
      const apiKey = apiKeyIn(findApiKey, request);
      if (!apiKey) throw apiError('unauthorized', whyUnauthorized(request), challengeFor(request));
      response.locals.apiKey = apiKey;
      // The audit has changes and refusals only; this also names the reader of content keys.
      response.locals.client = { key: apiKey.name, address: addressOf(request) };
    }
    next();
  };
}

/** Some clients send Basic only when they are asked for it (RFC 7617). */
function challengeFor({ url = '' }: IncomingMessage) {
  return PULLS.test(url)
    ? { headers: { 'www-authenticate': 'Basic realm="packager-drm-api", charset="UTF-8"' } }
    : {};
}

/** What is wrong with the API key of a request, as a sentence. */
function whyUnauthorized({ url = '', headers }: IncomingMessage): string {
  if (headers['x-api-key'] !== undefined) return 'The API key in x-api-key is not one of this service.';
  if (PULLS.test(url))
    return headers.authorization === undefined
      ? 'Send the API key of this service in the header x-api-key, or as the password of Basic.'
      : 'The password of Basic is not an API key of this service.';
  if (headers['api-key'] !== undefined)
    return 'Send the API key in the header x-api-key; API-KEY is not read.';
  return 'Send the API key of this service in the header x-api-key.';
}

interface Limits {
  /** Counts the requests. It has a timer, which its `shutdown` ends. */
  readonly attempts: MemoryStore;
  readonly clock: () => Date;
  /** Resolves after that time, or earlier when the response closes. */
  readonly wait?: (ms: number, response: Response) => Promise<void>;
}

const FREE_ATTEMPTS = 10;
const WINDOW_MS = 60_000;
const FIRST_DELAY_MS = 125;
const LONGEST_DELAY_MS = 2000;
const MAX_WAITING = 64;
/** Addresses share this many counters, so that no number of addresses takes more memory. */
const COUNTERS = 8192;

/**
 * Slows down requests without a valid API key: from the eleventh of an address in a minute they are answered 429, later
 * and later. Requests with a valid key are not counted, so that no client can lock others out.
 */
export function limitUnauthenticated(
  findApiKey: FindApiKey,
  { attempts, clock, wait = waitOrClose }: Limits,
): RequestHandler {
  let waiting = 0;
  return rateLimit({
    store: attempts,
    windowMs: WINDOW_MS,
    limit: FREE_ATTEMPTS,
    standardHeaders: false,
    legacyHeaders: false,
    skip: (request) => !needsApiKey(request) || apiKeyIn(findApiKey, request) !== undefined,
    keyGenerator: ({ socket }) => {
      const digest = hash('sha256', networkOf(socket.remoteAddress), 'buffer');
      return String(digest.readUInt16LE() % COUNTERS);
    },
    handler: async (request, response, next) => {
      const { used = 0, resetTime } = rateOf(request);
      // A place in the queue takes memory and a connection; beyond a few, the answer is sent at once.
      if (waiting < MAX_WAITING) {
        waiting += 1;
        await wait(delayOf(used - FREE_ATTEMPTS), response).finally(() => {
          waiting -= 1;
        });
      }
      const seconds = Math.ceil(((resetTime?.getTime() ?? 0) - clock().getTime()) / 1000);
      const description = `${whyUnauthorized(request)} Too many requests without a valid key came from this address; one with a valid key is answered at any time.`;
      next(
        apiError('too_many_attempts', description, { headers: { 'retry-after': `${Math.max(1, seconds)}` } }),
      );
    },
  });
}

interface Rate {
  readonly used?: number;
  readonly resetTime?: Date;
}

/** What the limiter counted. */
function rateOf(request: Request & { readonly rateLimit?: Rate }): Rate {
  return request.rateLimit ?? {};
}

function delayOf(excess: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (excess - 1));
}

async function waitOrClose(ms: number, response: Response): Promise<void> {
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  await pause(ms, undefined, { signal: closing.signal }).catch(() => undefined);
}
