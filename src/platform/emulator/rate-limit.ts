import type { Request, RequestHandler } from 'express';
import { type AugmentedRequest, ipKeyGenerator, rateLimit, type Store } from 'express-rate-limit';
import { HttpError } from '../../http/errors';
import { type CredentialParts, secretOf } from './auth';
import type { Clock } from './clock';

export const REQUESTS_A_MINUTE = 60;
const MINUTE_MS = 60_000;
/** How many windows are kept at a time. Beyond that the oldest are forgotten: unauthenticated callers come from any address. */
const MAX_WINDOWS = 10_000;

interface RateParts extends CredentialParts {
  readonly state: CredentialParts['state'] & { readonly rateWindows: Map<string, RateWindow> };
  readonly clock: Clock;
  /** Whether requests over the limit are refused. */
  readonly seeds: { readonly rateLimit: boolean };
}

/** 60 requests a minute a credential, or an address without one. The headers are sent also when none is refused. */
export function limitRate({ state, clock, seeds }: RateParts): RequestHandler[] {
  const count = rateLimit({
    windowMs: MINUTE_MS,
    limit: REQUESTS_A_MINUTE,
    standardHeaders: false,
    legacyHeaders: false,
    // Its advice on proxies goes to the console, and nothing here trusts one.
    validate: false,
    store: countIn(state.rateWindows, clock),
    keyGenerator: (request) => {
      const credential = state.credentials.bySecret(secretOf(request) ?? '');
      return credential ? `credential ${credential.id}` : addressKey(request);
    },
    // What is over the limit goes on to `answer`, which knows whether it is to be refused.
    handler: (_request, _response, next) => next(),
  });
  const answer: RequestHandler = (request, response, next) => {
    const { rateLimit: rate } = request as AugmentedRequest;
    const used = rate?.used ?? 0;
    response.setHeader('jw-request-limit', REQUESTS_A_MINUTE);
    response.setHeader('jw-request-remaining', Math.max(REQUESTS_A_MINUTE - used, 0));
    if (!seeds.rateLimit || used <= REQUESTS_A_MINUTE) return next();
    const resets = rate?.resetTime ?? clock.now();
    const wait = secondsUntil(resets, clock.now());
    const description = tooMany(REQUESTS_A_MINUTE, wait);
    const headers = { 'retry-after': String(wait) };
    throw new HttpError(429, { code: 'rate_limit_exceeded', description }, { headers });
  };
  return [count, answer];
}

/** Under what the requests of a caller are counted who isn't known. */
export function addressKey({ ip }: Pick<Request, 'ip'>): string {
  return `address ${ipKeyGenerator(ip ?? '')}`;
}

export interface RateWindow {
  totalHits: number;
  readonly resetTime: Date;
}

/** Whole seconds to wait, at least one. */
export function secondsUntil(resets: Date, now: Date): number {
  return Math.max(Math.ceil((resets.getTime() - now.getTime()) / 1000), 1);
}

export function tooMany(limit: number, wait: number): string {
  return `These are more than ${limit} requests in a minute. Wait ${wait} s.`;
}

/** Counts a request under a key, and answers the minute that it falls into. */
export function countRequest(windows: Map<string, RateWindow>, key: string, now: Date): RateWindow {
  const open = windows.get(key);
  const window = open && open.resetTime > now ? open : openWindow(windows, key, now);
  window.totalHits += 1;
  return window;
}

/** Fixed windows on the emulator's clock: advancing it by a minute opens new ones. */
function countIn(windows: Map<string, RateWindow>, clock: Clock): Store {
  return {
    localKeys: true,
    increment: (key) => countRequest(windows, key, clock.now()),
    decrement(key) {
      const window = windows.get(key);
      if (window) window.totalHits -= 1;
    },
    resetKey: (key) => void windows.delete(key),
  };
}

/** Opens a window and forgets those that are over: all last equally long, so the oldest stand first. */
function openWindow(windows: Map<string, RateWindow>, key: string, now: Date): RateWindow {
  windows.delete(key);
  for (const [oldest, { resetTime }] of windows) {
    if (resetTime > now && windows.size < MAX_WINDOWS) break;
    windows.delete(oldest);
  }
  const window = { totalHits: 0, resetTime: new Date(now.getTime() + MINUTE_MS) };
  windows.set(key, window);
  return window;
}
