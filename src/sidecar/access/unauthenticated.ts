import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RateLimiterMemory } from 'rate-limiter-flexible';
import { networkOf } from '../../http/address';
import { apiError } from '../errors';

export type RefuseUnauthenticated = (
  request: IncomingMessage,
  response: ServerResponse,
  /** What is wrong with the request's key, as a sentence. */
  why: string,
) => Promise<never>;

interface SlowingOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Resolves after that time, or earlier when the response closes. */
  readonly wait?: (ms: number, response: ServerResponse) => Promise<void>;
}

const FREE_ATTEMPTS = 10;
const WINDOW_SECONDS = 60;
const FIRST_DELAY_MS = 125;
const LONGEST_DELAY_MS = 2000;
const MAX_WAITING = 64;
/** A power of two: networks share this many counters, so that no number of them takes more memory. */
const COUNTERS = 8192;

/**
 * Refuses requests without a valid API key: 401, and to a network's eleventh in a minute and further ones 429, later
 * and later. Who holds a valid key never comes here, so nobody can lock others out.
 */
export function createRefuseUnauthenticated({
  now,
  wait = waitOrClose,
}: SlowingOptions): RefuseUnauthenticated {
  const count = createCounter(now);
  let waiting = 0;
  return async (request, response, why) => {
    const { attempts, msLeft } = await count(networkOf(request.socket.remoteAddress));
    if (attempts <= FREE_ATTEMPTS) throw apiError('unauthorized', why);
    // A place in the queue costs a client's connection and our memory; beyond a few, the answer comes at once.
    if (waiting < MAX_WAITING) {
      waiting += 1;
      await wait(delayOf(attempts - FREE_ATTEMPTS), response).finally(() => {
        waiting -= 1;
      });
    }
    const description = `${why} Too many requests without a valid key came from this address; one with a valid key is answered at any time.`;
    const seconds = Math.max(1, Math.ceil(msLeft / 1000));
    throw apiError('too_many_attempts', description, { headers: { 'retry-after': String(seconds) } });
  };
}

function delayOf(excess: number): number {
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (excess - 1));
}

type Count = (network: string) => Promise<{ attempts: number; msLeft: number }>;

function createCounter(now: () => number): Count {
  let counter: Promise<RateLimiterMemory> | undefined;
  // The limiter ends a window by a timer, but tells its rest by the wall clock, which may jump.
  const began = new Float64Array(COUNTERS);
  return async (network) => {
    counter ??= createLimiter();
    const slot = hash('sha256', network, 'buffer').readUInt16LE() % COUNTERS;
    const { consumedPoints } = await (await counter).penalty(slot);
    if (consumedPoints === 1) began[slot] = now();
    return { attempts: consumedPoints, msLeft: (began[slot] ?? 0) + WINDOW_SECONDS * 1000 - now() };
  };
}

/** The package is loaded with the first request that it is needed for: it holds limiters for a dozen databases. */
async function createLimiter(): Promise<RateLimiterMemory> {
  // A CommonJS package: bundled, it has no names of its own when it is imported like this.
  const { default: limiters } = await import('rate-limiter-flexible');
  return new limiters.RateLimiterMemory({ points: FREE_ATTEMPTS, duration: WINDOW_SECONDS });
}

function waitOrClose(ms: number, response: ServerResponse): Promise<void> {
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
