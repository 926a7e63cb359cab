import { hash, timingSafeEqual } from 'node:crypto';
import { unescape as decoded } from 'node:querystring';

/** The time does not depend on how much of a secret was guessed. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
}

/** Without the byte order mark and the line break that editors and `echo` add. */
export function secretIn(text: string): string {
  return text.replaceAll(/^\ufeff|\r?\n$/g, '');
}

export const HIDDEN = '***';

/** A shorter value, such as a version or `m=1`, is no secret, and would be found in unrelated words. */
const SHORTEST = 4;

/** Hides the longest secrets first: one may be a part of another. */
export function maskerOf(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  return (text) => forms.reduce((rest, form) => rest.replaceAll(form, HIDDEN), text);
}

/**
 * A secret may come back decoded, without the word before it (`Bearer …`), or as user and password of `Basic
 * …`, and as addresses, JSON and XML write these.
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
