import { isUtf8 } from 'node:buffer';
import type { Request, Response } from 'express';
import type { StreamId } from '../../api/stream-id';
import type { Finding } from '../../drm/cross-check';
import { parseKeyFile } from '../../drm/key-file';
import { HttpError } from '../../http/errors';
import { lineChanges, renderLineChanges } from './dry-run';
import { etagOf } from './etag';
import type { PutOutcome } from './key-file-changes';

/** The headers of an answer that is a key file; its length comes with the bytes. */
export const KEY_FILE_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['cache-control', 'no-store'],
  ['content-type', 'text/plain; charset=utf-8'],
];

/** An `Accept` header for which JSON may be the answer. */
export const SPEAKS_OF_JSON = /json|application\/\*/i;

/** The file byte for byte, or its lines as JSON for a client that asks for JSON. */
export function answerKeyFile(
  request: Request,
  response: Response,
  streamId: StreamId,
  { bytes, etag }: Pick<PutOutcome, 'bytes' | 'etag'>,
): void {
  if (wantsJson(request)) {
    if (!isUtf8(bytes)) {
      const description = 'The key file is not UTF-8. Read it as text/plain, or write it again.';
      throw new HttpError(409, { code: 'key_file_malformed', description });
    }
    const { lines, unreadable } = parseKeyFile(bytes.toString('utf8'));
    if (unreadable.length > 0) {
      const description = `Line ${unreadable[0]} of the key file is not "name: value". Read the file as text/plain, or write it again.`;
      throw new HttpError(409, { code: 'key_file_malformed', description });
    }
    response.setHeader('cache-control', 'no-store');
    response.setHeader('etag', etag);
    response.json({ streamid: streamId, lines });
    return;
  }
  for (const [name, value] of KEY_FILE_HEADERS) response.setHeader(name, value);
  response.setHeader('etag', etag);
  response.setHeader('content-length', bytes.length);
  // As a one-byte string the file leaves together with the headers; a Buffer would be a second piece.
  response.end(bytes.toString('latin1'), 'latin1');
}

/** The contract's text, unless JSON is what the client would rather have: one that takes either as gladly gets text. */
function wantsJson(request: Request): boolean {
  const accept = request.headers.accept ?? '';
  // Most clients send */* or nothing; only a header that speaks of JSON is worth weighing.
  if (!SPEAKS_OF_JSON.test(accept) || /text\/plain\s*(?:,|$)/i.test(accept)) return false;
  return request.accepts(['text/plain', 'application/json']) === 'application/json';
}

/** What is odd about a key file that was written (RFC 7234 § 5.5: 299, a persistent warning). */
export function warningHeader({ code, description }: Finding): string {
  return `299 - "${code}: ${description}"`;
}

/** The answer to a GET whose `If-None-Match` names the file: the client has it. */
export function answerUnchanged(response: Response, etag: string): void {
  response.setHeader('cache-control', 'no-store');
  response.setHeader('etag', etag);
  response.status(304).end();
}

/** What a POST would write, as JSON, or for a client that asks for text, as a diff. */
export function answerDryRun(
  request: Request,
  response: Response,
  streamId: StreamId,
  { bytes, former, etag, result, warnings }: PutOutcome,
): void {
  response.setHeader('cache-control', 'no-store');
  const lines = lineChanges(bytes.toString('utf8'), former);
  if (request.accepts(['application/json', 'text/plain']) === 'text/plain') {
    response.type('text/plain').send(renderLineChanges(lines));
    return;
  }
  response.json({
    streamid: streamId,
    dryrun: true,
    result,
    etag,
    present_etag: former ? etagOf(former) : null,
    lines,
    warnings: warnings.map(({ code, description }) => ({ code, description })),
  });
}
