import { isUtf8 } from 'node:buffer';
import { finished, type Readable, type Transform, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { httpError, systemCode, toHttpError } from './errors';

/**
 * Writes a body through `transform` to `target`. It leaves the body open, and after a failure drains the rest, so that the
 * sender can be answered. @throws HttpError 400 when the body is cut, the error of a stream that fails, or an `AbortError`
 */
export async function receiveBody(
  body: Readable,
  transform: Transform,
  target: Writable,
  signal: AbortSignal,
): Promise<void> {
  // The body is no part of the pipeline: from Node 22 on, one with its iterator ends only when the next bytes have come.
  const forget = finished(body, { writable: false }, (thrown) => {
    if (thrown) transform.destroy(isCut(thrown) ? toHttpError({ type: 'request.aborted' }) : thrown);
  });
  try {
    await pipeline(body.pipe(transform), target, { signal });
  } finally {
    forget();
    body.unpipe(transform).resume();
  }
}

/** Parts of an upload that are put together fail as files do. */
function isCut(thrown: Error): boolean {
  const code = systemCode(thrown);
  return code === undefined || /^(?:ECONNRESET|EPIPE|ERR_STREAM_\w+|HPE_\w+)$/.test(code);
}

/** For Express's reader of JSON, which puts replacement characters where bytes are not UTF-8. @throws HttpError 400. */
export function requireUtf8(body: Buffer, encoding: string): void {
  if (encoding === 'utf-8' && !isUtf8(body))
    throw httpError('malformed_json', 'The body is not UTF-8. Send the JSON as UTF-8.');
}
