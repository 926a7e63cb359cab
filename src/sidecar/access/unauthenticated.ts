import { hash } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import { type MemoryStore, rateLimit } from 'express-rate-limit';
import { networkOf } from '../../http/address';
import { apiError } from '../errors';
import { type FindApiKey, needsApiKey, whyUnauthorized } from './api-key';

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
 * and later. Requests with a valid key are not counted, so that nobody can lock others out.
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
    skip: (request) => !needsApiKey(request) || findApiKey(request.headers['x-api-key']) !== undefined,
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

function waitOrClose(ms: number, response: Response): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      response.off('close', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    response.on('close', done);
  });
}
