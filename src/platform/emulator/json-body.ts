import { json, type RequestHandler } from 'express';
import * as z from 'zod';
import { HttpError } from '../../http/errors';
import { readBody } from '../../http/faults';

const parseJson = json({ limit: '256kb', type: () => true });

/**
 * Reads a body as JSON, in UTF-8, whatever it is declared as: released clients declare it wrongly, or not at all. The
 * default of a widely used HTTP library, `text/plain; charset=ISO-8859-1`, is among what they send.
 */
export const readJson: RequestHandler = (request, response, next) => {
  request.headers['content-type'] = 'application/json';
  parseJson(request, response, next);
};

/** The body as its schema says. @throws HttpError 400 `invalid_body` with every problem at once. */
export function checkedBody<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  const parsed = readBody(schema, body);
  if (parsed.ok) return parsed.value;
  throw new HttpError(
    400,
    parsed.problems.map(({ description }) => ({ code: 'invalid_body', description })),
  );
}

/** A text of at most this many characters. */
export const text = (max: number) =>
  z.string('must be a string').max(max, `is longer than ${max} characters`);

/** Says in place of the schema library that an object was expected. */
export const objectParams = {
  error: ({ code }: { code?: string }) => (code === 'invalid_type' ? 'must be an object' : undefined),
};
