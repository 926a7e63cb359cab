import type { IncomingMessage } from 'node:http';
import { json, type RequestHandler } from 'express';
import * as z from 'zod';
import { HttpError } from '../../http/errors';
import { bodyProblem, schemaFaults } from '../../http/faults';
import { requireUtf8 } from '../../http/receive-body';

/** The bytes of each body, well-formed or not. */
export const sentBodies = new WeakMap<IncomingMessage, Buffer>();

/** For Express's readers: takes a body of any declared type, and keeps its bytes for the journal. */
export const anyBody = {
  type: () => true,
  verify: (request: IncomingMessage, _response: unknown, bytes: Buffer, encoding: string) => {
    sentBodies.set(request, bytes);
    requireUtf8(bytes, encoding);
  },
};

const parseJson = json({ ...anyBody, limit: '256kb' });

/** Reads any body as JSON in UTF-8: released clients declare another type, another charset, or none. */
export const readJson: RequestHandler = (request, response, next) => {
  request.headers['content-type'] = 'application/json';
  parseJson(request, response, next);
};

/** Parses a body or a query with its schema. @throws HttpError 400 with every problem at once. */
export function validated<Output>(
  schema: z.ZodType<Output>,
  given: unknown,
  code: 'invalid_body' | 'invalid_parameter' = 'invalid_body',
): Output {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const faults = schemaFaults(schema, parsed.error, given);
  // As in the faults of list parameters.
  const end = code === 'invalid_parameter' ? '.' : '';
  throw new HttpError(
    400,
    faults.map((fault) => ({ code, description: `${bodyProblem(fault).description}${end}`, fault })),
  );
}

export const text = (max: number) =>
  z.string('must be a string').max(max, `is longer than ${max} characters`);

/** Replaces the schema library's message for a value that is not an object. */
export const objectParams = {
  error: ({ code }: { code?: string }) => (code === 'invalid_type' ? 'must be an object' : undefined),
};

export const objectOf = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape, objectParams);

export const field = <S extends z.ZodType>(schema: S, description: string) => schema.meta({ description });

/** A parameter of a query: one that is given twice arrives as an array. */
export const queryText = z.string('is given twice');

/** A whole number in a query, from 1. An empty one counts as absent. */
export const queryNumber = (description: string, max: number, otherwise: number) =>
  queryText
    .regex(/^\d*$/, { message: 'must be a whole number from 1', abort: true })
    .transform((digits) => (digits === '' ? otherwise : Number(digits)))
    .refine((number) => number >= 1, 'must be at least 1')
    .refine((number) => number <= max, `must be at most ${max}`)
    .default(otherwise)
    .meta({ description, type: 'integer', pattern: undefined, minimum: 1, maximum: max, default: otherwise });
