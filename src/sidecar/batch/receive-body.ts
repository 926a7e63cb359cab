import { promisify } from 'node:util';
import express, { type Request, type Response } from 'express';
import { MAX_BODY_BYTES } from '../../api/key-file-request';
import type { HttpError } from '../../http/errors';
import { callerOf } from '../access/api-key';
import { apiError } from '../errors';
import { refuseDenseJson } from './dense-json';

/** Each may come to hold sixteen megabytes. */
const MAX_BODIES = 8;
/** Who sends slowly keeps his own from being received, and nobody else's. */
const MAX_BODIES_OF_KEY = 2;
/** At 5 Mbit/s the largest body takes 27 seconds. */
const MAX_MS = 30_000;

/** Reads the body of a request into it. @throws HttpError 400, 408, 413, 503. */
export type ReceiveBody = (request: Request, response: Response) => Promise<void>;

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
      timer = setTimeout(() => reject(tooSlow()), mostMs);
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

function tooSlow(): HttpError {
  // The connection ends: the rest of the body must not go on arriving.
  return apiError('request_timeout');
}

function tooManyBodies(): HttpError {
  const description =
    'Other batches are being received, of this API key or of many. Nothing of this one was written; send it again when they are.';
  return apiError('too_many_batches', description);
}
