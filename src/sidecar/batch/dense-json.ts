import { HttpError } from '../../kernel/errors';

/** Ten thousand streams with every field there is have two thirds of it. */
const MOST_VALUES = 300_000;
const COMMA = 0x2c;
const BRACE = 0x7b;
const BRACKET = 0x5b;

/**
 * Refuses JSON of far more values than a batch can have, before it is parsed: sixteen megabytes of `{},{},{},` would
 * become some hundred megabytes of objects, and hold everybody up for seconds.
 * @throws HttpError 400.
 */
export function refuseDenseJson(body: Buffer): void {
  if (body.length <= MOST_VALUES) return;
  let values = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === COMMA || byte === BRACE || byte === BRACKET) values += 1;
  }
  if (values <= MOST_VALUES) return;
  const description = `The body holds more than ${MOST_VALUES} values. Send several batches. Nothing was written.`;
  throw new HttpError(400, { code: 'invalid_body', description });
}
