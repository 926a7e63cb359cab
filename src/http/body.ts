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
  // What nearly all send needs no parsing of media types.
  const declared = request.headers['content-type'];
  if (declared !== undefined && types.includes(declared)) return declared;
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
 * Makes what reads a body as JSON: an object or a list, `undefined` when no body is announced. The media type has been
 * looked at.
 * @throws HttpError 400, 413, 415.
 */
export function createReadJson(limit: number, larger?: LargerBodies): ReadBody<unknown> {
  const { limit: most = limit, verify = () => undefined, tooLarge } = larger ?? {};
  const look = (body: Buffer) => {
    if (body.length > limit) verify(body);
  };
  const parse = promisify(
    express.json({ limit: most, type: () => true, verify: (_request, _response, body) => look(body) }),
  );
  return async (request: IncomingMessage & { body?: unknown }, response) => {
    const length = plainLength(request, most);
    // body-parser costs as much as all else of a small request together.
    if (length !== undefined) {
      const body = await receive(request, length);
      look(body);
      return parseJson(body.toString('utf8'));
    }
    try {
      await parse(request, response);
    } catch (thrown) {
      const { status } = toHttpError(thrown);
      throw status === 413 && tooLarge && !(thrown instanceof HttpError) ? tooLarge() : thrown;
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

/** The length of a body that is neither compressed nor in chunks nor in another charset, nor too long. */
function plainLength({ headers }: IncomingMessage, limit: number): number | undefined {
  if (headers['content-type'] !== 'application/json' || headers['content-encoding'] !== undefined)
    return undefined;
  const length = Number(headers['content-length'] ?? Number.NaN);
  return length > 0 && length <= limit ? length : undefined;
}

/** Node's parser sees to it that the body has the length that was announced; a client may go away before. */
function receive(request: IncomingMessage, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const [first] = chunks;
      resolve(first?.length === length ? first : Buffer.concat(chunks));
    });
    const aborted = () => {
      // An error keeps its stack, which costs more than all else here.
      if (!request.readableEnded) reject(toHttpError({ type: 'request.aborted' }));
    };
    request.once('error', aborted);
    // A request that the server has answered for is destroyed without an error.
    request.once('close', aborted);
  });
}

/** As body-parser reads it: an object or a list, behind a byte order mark or white space. */
function parseJson(text: string): unknown {
  const json = text.startsWith('\ufeff') ? text.slice(1) : text;
  try {
    if (/^[ \t\r\n]*[[{]/.test(json)) return JSON.parse(json);
  } catch {
    // V8's message quotes what it chokes on.
  }
  throw toHttpError({ type: 'entity.parse.failed' });
}
