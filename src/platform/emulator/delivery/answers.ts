import { basename, dirname } from 'node:path';
import type { RequestHandler, Response } from 'express';
import type * as z from 'zod';
import type { Clock } from '../clock';
import type { EmulatorDependencies } from '../dependencies';
import type { Packaging } from '../packaging/packaging';
import type { EmulatorState } from '../state';
import type { StoredFile } from '../uploads/uploads';

export interface DeliveryParts {
  readonly state: EmulatorState;
  readonly clock: Clock;
  readonly packaging: Pick<Packaging, 'client' | 'deliverable' | 'encrypts' | 'isExpected' | 'whyNothing'>;
  readonly newId: EmulatorDependencies['newId'];
}

/** The answer for media that don't exist and for media that viewers may not see, so that they look the same. */
export const NO_MEDIA = 'There is nothing to watch under this id: it is unknown, or not published yet.';

/** The next publish or disconnect changes the content, so no answer is cached. Clients read the `message` of a 404. */
export function answer(
  response: Response,
  missing: string,
  found: object | string | undefined,
  type?: string,
): void {
  response.set('cache-control', 'no-store');
  if (found === undefined) response.status(404).json({ message: missing });
  else if (typeof found === 'string') response.type(type ?? 'text').send(found);
  else response.json(found);
}

/** The parameters of a request, or undefined when they are wrong: then every problem is answered. */
export function readQuery<Schema extends z.ZodType>(
  response: Response,
  schema: Schema,
): z.output<Schema> | undefined {
  const read = schema.safeParse(response.req.query);
  if (read.success) return read.data;
  const problems = read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}.`);
  answer(response.status(400), '', { message: problems.join(' ') });
  return undefined;
}

/** A file may be a page or a picture with scripts, which must not reach anything else at this address. */
const FILE_POLICY =
  "default-src 'none';img-src 'self' data:;media-src 'self';style-src 'unsafe-inline';frame-ancestors 'none';sandbox";

/** The types that a browser may show; any other file is to be saved. */
const SHOWN = /^(?:image|video|audio)\/|^text\/(?:plain|vtt)\b/;

/** Sends a file that somebody uploaded: as a whole or the range that is asked for, or 304, 412, 416. */
export function sendFile(response: Response, { path, md5 }: StoredFile, type: string): void {
  response.set({
    'content-type': type,
    'content-security-policy': FILE_POLICY,
    'cache-control': 'no-cache',
    etag: `"${md5}"`,
  });
  if (!SHOWN.test(type)) response.set('content-disposition', 'attachment');
  // Of a path, no folder may begin with a dot; of a root it may. The time of the file is not one of the platform's clock.
  const options = { root: dirname(path), cacheControl: false, lastModified: false };
  response.sendFile(basename(path), options, (thrown?: Error & { readonly status?: number }) => {
    if (!thrown) return;
    if (response.headersSent) return void response.destroy();
    for (const name of ['content-disposition', 'content-type', 'etag']) response.removeHeader(name);
    if (thrown.status === 416) response.status(416).json({ message: 'The file has no such range of bytes.' });
    else if (thrown.status === 412) response.status(412).json({ message: 'The file has changed.' });
    // It was deleted or replaced a moment ago.
    else answer(response, NO_MEDIA, undefined);
  });
}

/**
 * Counts the bytes that a viewer of a site gets, when the answer is over. HEAD, 304 and errors have none.
 * @param onBegin called when the answer had the start of the requested file.
 */
export function countBytes(
  { state, clock }: Pick<DeliveryParts, 'state' | 'clock'>,
  response: Response,
  siteId: string,
  onBegin?: () => void,
): void {
  const { req: request, socket } = response;
  const before = socket?.bytesWritten ?? 0;
  response.on('close', () => {
    const { statusCode } = response;
    if (request.method !== 'GET' || (statusCode !== 200 && statusCode !== 206)) return;
    const length = Number(response.getHeader('content-length') ?? 0);
    // For a viewer who went away, about the bytes that were sent.
    const sent = response.writableFinished ? length : (socket?.bytesWritten ?? 0) - before;
    state.usage.count(siteId, clock.now(), 'delivered_bytes', Math.max(0, Math.min(sent, length)));
    const range = String(response.getHeader('content-range') ?? 'bytes 0-');
    if (range.startsWith('bytes 0-')) onBegin?.();
  });
}

/**
 * Lets pages of any origin load the answers without a credential, and answers preflights. The security
 * headers of the rest of the platform forbid it.
 */
export const openToAll: RequestHandler = openFor('GET, HEAD');

/** The same for files, of which players ask for ranges. */
export const openFiles = openFor('GET, HEAD', 'accept-ranges, content-length, content-range, etag');

/** The same for other methods. `exposed` names the headers of answers that a page may read. */
export function openFor(methods: string, exposed?: string): RequestHandler {
  return (request, response, next) => {
    response.set({
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      ...(exposed !== undefined && { 'access-control-expose-headers': exposed }),
    });
    if (request.method !== 'OPTIONS') return next();
    response
      .set({
        'access-control-allow-methods': methods,
        'access-control-allow-headers': request.get('access-control-request-headers') ?? '*',
        'access-control-max-age': '600',
      })
      .status(204)
      .end();
  };
}
