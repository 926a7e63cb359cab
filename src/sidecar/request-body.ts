import { promisify } from 'node:util';
import express, { type Request, type Response } from 'express';
import { MAX_BODY_BYTES, sizeOf } from '../api/key-file-request';
import { MAX_CPIX_BYTES } from '../drm/cpix/read';
import { createReadJson } from '../http/body';
import type { HttpError } from '../http/errors';
import { callerOf } from './access/api-key';
import { apiError } from './errors';

/** In JSON, a line feed or a quote of a document takes two bytes. */
const MAX_JSON_BYTES = MAX_BODY_BYTES + 2 * MAX_CPIX_BYTES;

/** The media types of bodies that are CPIX documents; the last two are the same (RFC 7303 § 9.2). */
export const CPIX_TYPES = ['application/cpix+xml', 'application/xml', 'text/xml'];

/**
 * Makes what reads a body of the key-file API as JSON. It may have `MAX_BODY_BYTES`; the text of a CPIX document in it
 * does not count, and may have `MAX_CPIX_BYTES`.
 * @throws HttpError 400, 413, 415.
 */
export function createReadRequest(): ReturnType<typeof createReadJson> {
  const readJson = createReadJson(MAX_BODY_BYTES, {
    limit: MAX_JSON_BYTES,
    verify(body) {
      if (!body.includes('"cpix"')) throw tooLarge(inKib(MAX_BODY_BYTES));
    },
    tooLarge: () => tooLarge(`${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_JSON_BYTES)} with a CPIX document`),
  });
  return async (request, response) => {
    const body = await readJson(request, response);
    if (isSmall(request)) return body;
    const { fields, document } = sizeOf(body);
    if (fields > MAX_BODY_BYTES) throw tooLarge(inKib(MAX_BODY_BYTES));
    if (document > MAX_CPIX_BYTES) throw tooLarge(`${inKib(MAX_CPIX_BYTES)} for a CPIX document`);
    return body;
  };
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
    if (own >= MAX_BODIES_OF_KEY || receiving.length >= MAX_BODIES) throw tooManyBodies();
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

function tooManyBodies(): HttpError {
  const description =
    'Other batches are being received, of this API key or of many. Nothing of this one was written; send it again when they are.';
  return apiError('too_many_batches', description);
}
