import type { HttpError } from '../../http/errors';
import { apiError } from '../errors';

/** Ten thousand streams with every field there is have 200,000. */
const MAX_VALUES = 250_000;
/** A stream knows some twenty. Objects that have all their names to themselves take long to parse. */
const MAX_NAMES = 300;
/** What a single POST takes needs no look. */
const SMALL_BYTES = 64 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/**
 * Refuses JSON of far more values or field names than a batch can have, before it is parsed: sixteen megabytes of
 * `{},{},{},` would become some hundred megabytes of objects, and hold everybody up for seconds.
 * @throws HttpError 400.
 */
export function refuseDenseJson(body: Buffer): void {
  if (body.length <= SMALL_BYTES) return;
  const names = new Set<number>();
  let values = 0;
  let isText = false;
  let hash = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (isText) {
      if (byte === QUOTE) isText = false;
      else hash = Math.imul(hash ^ byte, 0x01000193);
      if (byte === BACKSLASH) at += 1;
    } else if (byte === QUOTE) {
      isText = true;
      hash = 0x811c9dc5;
    } else if (byte === COLON) {
      // Told by a hash (FNV-1a), which costs next to nothing: two names that share one are counted once.
      if (names.add(hash).size > MAX_NAMES) throw tooMany(`${MAX_NAMES} different names of fields`);
    } else if (byte === COMMA || byte === BRACE || byte === BRACKET) {
      values += 1;
      if (values > MAX_VALUES) throw tooMany(`${MAX_VALUES} values`);
    }
  }
}

function tooMany(what: string): HttpError {
  const description = `The body holds more than ${what}. Send several batches. Nothing was written.`;
  return apiError('invalid_body', description);
}
