import { hash, timingSafeEqual } from 'node:crypto';
import { unescape as decoded } from 'node:querystring';

/** Compares in a time that does not depend on how much of a secret was guessed. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
}

/** The secret in the text of a file: without the byte order mark and the line break that editors and `echo` add. */
export function secretIn(text: string): string {
  return text.replaceAll(/^\ufeff|\r?\n$/g, '');
}

/** The text in place of a secret. */
export const HIDDEN = '***';

/** A shorter value, such as a version or `m=1`, is no secret, and would be found in unrelated words. */
const SHORTEST = 4;

/** Returns a function that hides secrets in a text, the longest first: one may be a part of another. */
export function hiderOf(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, HIDDEN), text);
}

/**
 * How a secret may come back: as it is, decoded where it is a part of an address, without the word before it (`Bearer …`),
 * and of `Basic …` user and password; each as it is written in addresses, JSON and XML, too.
 */
function formsOf(secret: string): string[] {
  const [, scheme = '', rest = ''] = /^(\S+)\s+(\S.*)$/.exec(secret) ?? [];
  const pair = /^basic$/i.test(scheme) ? Buffer.from(rest, 'base64').toString() : '';
  return [secret, decoded(secret), rest, pair, ...pair.split(/:(.*)/s)]
    .filter(({ length }) => length >= SHORTEST)
    .flatMap((form) => [
      form,
      encodeURIComponent(form),
      JSON.stringify(form).slice(1, -1),
      form.replaceAll('&', '&amp;'),
    ]);
}
