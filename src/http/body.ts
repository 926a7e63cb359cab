import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import express from 'express';
import typeIs from 'type-is';
import { HttpError, httpError, toHttpError } from './errors';

type ReadBody<Body> = (request: IncomingMessage, response: ServerResponse) => Promise<Body>;

/**
 * Whether the body is declared as one of these media types. A request that announces no body passes.
 * @throws HttpError 415 with the sentence given.
 */
export function requireType(
  request: IncomingMessage,
  types: readonly string[],
  description: string,
): string | undefined {
  const found = typeIs(request, [...types]);
  if (found === false) throw httpError('unsupported_media_type', description);
  return found ?? undefined;
}

/** Larger bodies that are taken as well, when what looks at their bytes, before they are parsed, has nothing against them. */
interface LargerBodies {
  readonly limit: number;
  /** Throws what the body is refused for. */
  readonly verify: (body: Buffer) => void;
  /** What is larger still is refused with this. */
  readonly tooLarge: () => HttpError;
}

/**
 * Makes the function that reads a body as JSON: an object or a list, `undefined` when no body is announced. The media
 * type has been checked.
 * @throws HttpError 400, 413, 415.
 */
export function createReadJson(limit: number, larger?: LargerBodies): ReadBody<unknown> {
  const parse = promisify(
    express.json({
      limit: larger?.limit ?? limit,
      type: () => true,
      verify: (_request, _response, body) => {
        if (body.length > limit) larger?.verify(body);
      },
    }),
  );
  return async (request: IncomingMessage & { body?: unknown }, response) => {
    try {
      await parse(request, response);
    } catch (thrown) {
      const isTooLarge = !(thrown instanceof HttpError) && toHttpError(thrown).status === 413;
      throw larger && isTooLarge ? larger.tooLarge() : thrown;
    }
    return request.body;
  };
}

/** The same for a body of text in UTF-8, which is handed over as bytes. */
export function createReadText(limit: number): ReadBody<Buffer> {
  const readBytes = createReadBytes(limit);
  return async (request, response) => {
    const { 'content-type': type = '' } = request.headers;
    const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(type) ?? [];
    if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw toHttpError({ type: 'charset.unsupported' });
    return readBytes(request, response);
  };
}

/** The same for a body that says itself what it is encoded in, as XML does. */
export function createReadBytes(limit: number): ReadBody<Buffer> {
  const parse = promisify(express.raw({ limit, type: () => true }));
  return async (request: IncomingMessage & { body?: unknown }, response) => {
    await parse(request, response);
    return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  };
}
