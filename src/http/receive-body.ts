import { finished, type Readable, type Transform, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { toHttpError } from './errors';

/**
 * Writes a body through `transform` to `target`. It leaves the body open, and after a failure drains the rest, so that the
 * sender can be answered. @throws HttpError 400 when the body is cut, the error of another stream that fails, or an `AbortError`
 */
export async function receiveBody(
  body: Readable,
  transform: Transform,
  target: Writable,
  signal: AbortSignal,
): Promise<void> {
  // The body is no part of the pipeline: from Node 22 on, one with its iterator ends only when the next bytes have come.
  const forget = finished(body, { writable: false }, (cut) => {
    if (cut) transform.destroy(toHttpError({ type: 'request.aborted' }));
  });
  try {
    await pipeline(body.pipe(transform), target, { signal });
  } finally {
    forget();
    body.unpipe(transform).resume();
  }
}
