import type { Request, RequestHandler } from 'express';
import { networkOf } from '../../http/connections';
import { HttpError } from '../../http/errors';
import { type CredentialParts, credentialBySecret, secretOf } from './auth';
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
export function limitRate({ state, clock, seeds }: RateParts): RequestHandler {
  return (request, response, next) => {
    const credential = credentialBySecret({ state }, secretOf(request) ?? '');
    const key = credential ? `credential ${credential.id}` : addressKey(request);
    const { totalHits, resetTime } = countRequest(state.rateWindows, key, clock.now());
    response.setHeader('jw-request-limit', REQUESTS_A_MINUTE);
    response.setHeader('jw-request-remaining', Math.max(REQUESTS_A_MINUTE - totalHits, 0));
    if (!seeds.rateLimit || totalHits <= REQUESTS_A_MINUTE) return next();
    const wait = secondsUntil(resetTime, clock.now());
    const description = tooMany(REQUESTS_A_MINUTE, wait);
    const headers = { 'retry-after': String(wait) };
    throw new HttpError(429, { code: 'rate_limit_exceeded', description }, { headers });
  };
}

/** Under what the requests of a caller are counted who isn't known. */
export function addressKey({ ip }: Pick<Request, 'ip'>): string {
  return `address ${networkOf(ip)}`;
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

/** Counts a request under a key, and answers the minute of the emulator's clock that it falls into. */
export function countRequest(windows: Map<string, RateWindow>, key: string, now: Date): RateWindow {
  const open = windows.get(key);
  const window = open && open.resetTime > now ? open : openWindow(windows, key, now);
  window.totalHits += 1;
  return window;
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
