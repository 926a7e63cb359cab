import { promisify } from 'node:util';
import express, { type Request, type Response } from 'express';
import { MAX_BODY_BYTES } from '../../api/key-file-request';
import type { HttpError } from '../../http/errors';
import { callerOf } from '../access/api-key';
import { apiError } from '../errors';

/** Each may come to hold sixteen megabytes. */
const MAX_BODIES = 8;
/** Who sends slowly keeps his own from being received, and nobody else's. */
const MAX_BODIES_OF_KEY = 2;
/** At 5 Mbit/s the largest body takes 27 seconds. */
const MAX_MS = 30_000;

/** Reads the body of a request into it. @throws HttpError 400, 408, 413, 503. */
type ReceiveBody = (request: Request, response: Response) => Promise<void>;

/** Reads bodies, some at a time; those no larger than a single POST's take no place of others. */
export function createReceiveBody(mostMs = MAX_MS): ReceiveBody {
  const readJson = promisify(
    express.json({
      limit: '16mb',
      type: () => true,
      verify: (_request, _response, body) => refuseDenseJson(body),
    }),
  );
  /** The name of the API key of each large body under way. */
  const receiving: string[] = [];

  const inTime = async (request: Request, response: Response): Promise<void> => {
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
      await inTime(request, response);
      return;
    }
    const { name } = callerOf(response);
    const own = receiving.filter((each) => each === name).length;
    if (own >= MAX_BODIES_OF_KEY || receiving.length >= MAX_BODIES) throw tooManyBodies();
    receiving.push(name);
    try {
      await inTime(request, response);
    } finally {
      receiving.splice(receiving.indexOf(name), 1);
    }
  };
}

function isSmall({ headers }: Request): boolean {
  // A body in chunks does not say how long it is.
  return Number(headers['content-length'] ?? Number.NaN) <= MAX_BODY_BYTES;
}

function tooManyBodies(): HttpError {
  const description =
    'Other batches are being received, of this API key or of many. Nothing of this one was written; send it again when they are.';
  return apiError('too_many_batches', description);
}

/** Ten thousand streams with every field there is have 200,000. */
const MAX_VALUES = 250_000;
/** A stream knows some twenty. Objects that have all their names to themselves take long to parse. */
const MAX_NAMES = 300;

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
function refuseDenseJson(body: Buffer): void {
  // What a single POST takes needs no look.
  if (body.length <= MAX_BODY_BYTES) return;
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
