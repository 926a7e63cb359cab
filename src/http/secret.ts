import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares without telling, by the time it takes, how much of a secret was guessed. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
