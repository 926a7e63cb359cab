import { hash } from 'node:crypto';

/** The strong entity tag of some bytes, quotes included: it changes with every byte, and with nothing else. */
export function etagOf(bytes: Buffer): string {
  return `"${hash('sha256', bytes, 'base64url').slice(0, 27)}"`;
}
