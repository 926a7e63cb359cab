import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in a time that does not depend on how much of a secret was guessed. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
