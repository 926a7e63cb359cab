import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import express, { type Request, type Response } from 'express';
import type * as z from 'zod';
import { MAX_BODY_BYTES, sizeOf } from '../api/key-file-request';
import { MAX_CPIX_BYTES } from '../drm/cpix/read';
import { HttpError, parsedOr400, toHttpError } from '../http/errors';
import { querySwitch, readQuery } from '../http/faults';
import { callerOf } from './access/api-key';
import { apiError } from './errors';
import type { Conditions } from './storage/key-file-store';

/** In JSON, a line feed or a quote of a document takes two bytes. */
const MAX_JSON_BYTES = MAX_BODY_BYTES + 2 * MAX_CPIX_BYTES;

/** The media types of bodies that are CPIX documents; the last two are the same (RFC 7303 § 9.2). */
export const CPIX_TYPES = ['application/cpix+xml', 'application/xml', 'text/xml'];

/** A request and what its body was read into. */
type WithBody = IncomingMessage & { body?: unknown };

const parseJson = promisify(
  express.json({
    limit: MAX_JSON_BYTES,
    type: () => true,
    verify: (_request, _response, body) => {
      if (body.length > MAX_BODY_BYTES && !body.includes('"cpix"')) throw tooLarge(inKib(MAX_BODY_BYTES));
    },
  }),
);
const parseLines = promisify(express.raw({ limit: MAX_BODY_BYTES, type: () => true }));
const parseDocument = promisify(express.raw({ limit: MAX_CPIX_BYTES, type: () => true }));

/**
 * Reads a body of the key-file API as JSON: an object or a list, `undefined` when no body is announced. It may have
 * `MAX_BODY_BYTES`; the text of a CPIX document in it does not count, and may have `MAX_CPIX_BYTES`. The media type has
 * been checked.
 * @throws HttpError 400, 413, 415.
 */
export async function readJson(request: WithBody, response: ServerResponse): Promise<unknown> {
  await parseJson(request, response).catch((thrown: unknown) => {
    if (thrown instanceof HttpError || toHttpError(thrown).status !== 413) throw thrown;
    throw tooLarge(`${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_JSON_BYTES)} with a CPIX document`);
  });
  const { body } = request;
  if (isSmall(request)) return body;
  const { fields, document } = sizeOf(body);
  if (fields > MAX_BODY_BYTES) throw tooLarge(inKib(MAX_BODY_BYTES));
  if (document > MAX_CPIX_BYTES) throw tooLarge(`${inKib(MAX_CPIX_BYTES)} for a CPIX document`);
  return body;
}

/** Reads the lines of a key file, in UTF-8. */
export async function readLines(request: WithBody, response: ServerResponse): Promise<Buffer> {
  const { 'content-type': type = '' } = request.headers;
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(type) ?? [];
  if (!/^(?:utf-?8|us-ascii)$/i.test(charset)) throw toHttpError({ type: 'charset.unsupported' });
  await parseLines(request, response);
  return bytesOf(request);
}

/** Reads a document that states itself what it is encoded in, as XML does; a larger one than of CPIX is refused. */
export async function readDocument(request: WithBody, response: ServerResponse): Promise<Buffer> {
  await parseDocument(request, response);
  return bytesOf(request);
}

function bytesOf({ body }: WithBody): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

export function inKib(bytes: number): string {
  return `${bytes / 1024} KiB`;
}

/** The refusal of a body; `limits` are what the route accepts. */
export function tooLarge(limits: string): HttpError {
  return apiError('body_too_large', `The body is larger than this route accepts: ${limits}.`);
}

/** Whether a body is no larger than a single POST's. A body in chunks does not say how long it is. */
function isSmall({ headers }: Pick<Request, 'headers'>): boolean {
  return Number(headers['content-length'] ?? Number.NaN) <= MAX_BODY_BYTES;
}

/** Each may take sixteen megabytes. */
const MAX_BODIES = 8;
/** A slow client holds up its own API key, and no other. */
const MAX_BODIES_OF_KEY = 2;
/** At 5 Mbit/s the largest body takes 27 seconds. */
const MAX_MS = 30_000;
/** Ten thousand streams with every field there is have 200,000. */
const MAX_VALUES = 250_000;

/**
 * Makes what reads the body of a batch into the request, some at a time; those no larger than a single POST's take no
 * place of others.
 * @throws HttpError 400, 408, 413, 503.
 */
export function createReadBatch(mostMs = MAX_MS): (request: Request, response: Response) => Promise<void> {
  const readJson = promisify(
    express.json({
      limit: '16mb',
      type: () => true,
      verify: (_request, _response, body) => refuseManyValues(body),
    }),
  );
  /** The name of the API key of each large body under way. */
  const receiving: string[] = [];

  const readInTime = async (request: Request, response: Response): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      // The connection ends with it: the rest of the body must not go on arriving.
      timer = setTimeout(() => reject(apiError('request_timeout')), mostMs);
    });
    try {
      await Promise.race([readJson(request, response), late]);
    } finally {
      clearTimeout(timer);
    }
  };

  return async (request, response) => {
    if (isSmall(request)) {
      await readInTime(request, response);
      return;
    }
    const { name } = callerOf(response);
    const own = receiving.filter((each) => each === name).length;
    if (own >= MAX_BODIES_OF_KEY || receiving.length >= MAX_BODIES)
      throw apiError('too_many_batches', TOO_MANY_BODIES);
    receiving.push(name);
    try {
      await readInTime(request, response);
    } finally {
      receiving.splice(receiving.indexOf(name), 1);
    }
  };
}

/** Sixteen megabytes of `{},{},` would become some hundred megabytes of objects. @throws HttpError 400. */
function refuseManyValues(body: Buffer): void {
  if (body.length <= MAX_BODY_BYTES) return;
  let values = 0;
  for (const mark of [',', '{', '[']) {
    for (let at = body.indexOf(mark); at !== -1 && values <= MAX_VALUES; at = body.indexOf(mark, at + 1))
      values += 1;
  }
  if (values > MAX_VALUES)
    throw apiError(
      'invalid_body',
      `The body holds more than ${MAX_VALUES} values. Send several batches. Nothing was written.`,
    );
}

const TOO_MANY_BODIES =
  'Too many batches are being received, with this API key or in all. Nothing of this one was written; send it again when they are.';

/** Reads the conditions in the headers of a request that changes something. @throws HttpError 400. */
export function conditionsIn(headers: {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}): Pick<Conditions, 'ifMatch' | 'ifNoneMatch'> {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers;
  refuseOtherThanTags('If-Match', ifMatch);
  refuseOtherThanTags('If-None-Match', ifNoneMatch);
  return { ifMatch, ifNoneMatch };
}

const TAGS = /^\s*(?:\*|(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*)\s*$/;

function refuseOtherThanTags(name: string, value: string | undefined): void {
  if (value === undefined || TAGS.test(value)) return;
  const description = `${name} must be * or entity tags in their quotes, as received: ${name}: "…". Nothing was changed.`;
  throw apiError('invalid_header', description);
}

/** `?dryrun=` of requests that write. */
export const dryRunSwitch = querySwitch.meta({
  description: '`true`: nothing is written, and the answer reports what would be.',
});

/**
 * Reads the query of a request that changes something. A parameter that it does not know is refused: it might be a misspelt
 * dry run, which would write. @throws HttpError 400.
 */
export function readChangeQuery<Output>(schema: z.ZodType<Output>, { query }: Request): Output {
  return parsedOr400(readQuery(schema, query, 'Nothing was changed.'));
}
