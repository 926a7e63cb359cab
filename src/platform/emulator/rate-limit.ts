import type { Request, RequestHandler } from 'express';
import { networkOf } from '../../http/app';
import { HttpError } from '../../http/errors';
import { type CredentialParts, credentialBySecret, secretOf } from './auth';
import type { Clock } from './clock';

const REQUESTS_A_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Beyond that, the oldest windows are forgotten: unauthenticated callers come from any address. */
const MAX_WINDOWS = 10_000;

export interface RateWindow {
  totalHits: number;
  readonly resetTime: Date;
}

interface RateParts {
  readonly state: { readonly rateWindows: Map<string, RateWindow> };
  readonly clock: Clock;
  readonly seeds: { readonly rateLimit: boolean };
}

/** 60 requests a minute a credential, or an address without one. The headers are sent also when none is refused. */
export function limitRate(parts: RateParts & CredentialParts): RequestHandler {
  return (request, response, next) => {
    const credential = credentialBySecret(parts, secretOf(request) ?? '');
    const key = credential ? `credential ${credential.id}` : addressKey(request);
    const { limit, remaining, refusal } = countRequest(parts, key);
    response.setHeader('jw-request-limit', limit);
    response.setHeader('jw-request-remaining', remaining);
    next(refusal);
  };
}

export function addressKey({ ip }: Pick<Request, 'ip'>): string {
  return `address ${networkOf(ip)}`;
}

/** Counts in the minute of the emulator's clock. `refusal` is the answer to a request beyond the limit. */
export function countRequest({ state, clock, seeds }: RateParts, key: string, limit = REQUESTS_A_MINUTE) {
  const now = clock.now();
  const open = state.rateWindows.get(key);
  const window = open && open.resetTime > now ? open : openWindow(state.rateWindows, key, now);
  window.totalHits += 1;
  const { totalHits, resetTime } = window;
  const counted = { limit, remaining: Math.max(limit - totalHits, 0), resetTime, refusal: undefined };
  if (!seeds.rateLimit || totalHits <= limit) return counted;
  const wait = Math.max(Math.ceil((resetTime.getTime() - now.getTime()) / 1000), 1);
  const description = `These are more than ${limit} requests in a minute. Wait ${wait} s.`;
  const headers = { 'retry-after': String(wait) };
  return {
    ...counted,
    refusal: new HttpError(429, { code: 'rate_limit_exceeded', description }, { headers }),
  };
}

/** Opens a window and forgets those that are over: all last equally long, so the oldest come first. */
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
