import express, { type Express, type RequestHandler } from 'express';
import * as z from 'zod';
import { MAX_BODY_BYTES } from '../api/key-file-request';
import { looksLikeCpixBytes, MAX_CPIX_BYTES } from '../drm/cpix/read';
import { onlyMethods } from '../http/app';
import { requireType } from '../http/body';
import { parsedOr400 } from '../http/errors';
import { readQuery } from '../http/faults';
import { apiError } from './errors';
import { createReadRequest } from './request-body';

const CHECK_PATH = '/api/check';

/** A CPIX document, whose bytes say themselves how they are encoded. */
const XML_TYPES = ['application/cpix+xml', 'application/xml', 'text/xml'];
const JSON_TYPE = 'application/json';
const TYPES = ['text/plain', JSON_TYPE, ...XML_TYPES];

// Behind requireText, which has looked at the type.
const parseText = express.text({
  limit: MAX_CPIX_BYTES,
  type: 'text/plain',
  verify: (_request, _response, body) => {
    if (body.length > MAX_BODY_BYTES && !looksLikeCpixBytes(body)) throw tooLarge();
  },
});
// In UTF-16 each character takes two bytes.
const parseXml = express.raw({ limit: 2 * MAX_CPIX_BYTES, type: XML_TYPES });
const readJson = createReadRequest();

/** `POST /api/check`: what key material decodes to and what is wrong with it. Nothing of it is kept, written or logged. */
export function checkRoutes(app: Express): void {
  const route = app.route(CHECK_PATH);
  route.post(requireText, parseText, parseXml, async (request, response) => {
    const isJson = response.locals.type === JSON_TYPE;
    const body: unknown = isJson ? await readJson(request, response) : request.body;
    const reveal = parsedOr400(readQuery(query, request.query)).reveal === 'true';
    if (body === undefined) throw noBody();
    const { check } = await import('../api/check');
    response.set('cache-control', 'no-store').json(check(body, { reveal }));
  });
  route.all(onlyMethods('POST'));
}

const requireText: RequestHandler = (request, response, next) => {
  response.locals.type = requireType(
    request,
    TYPES,
    'Send the body as text/plain, or as JSON with content-type: application/json.',
  );
  next();
};

/** A value that is neither true nor false is refused: it might be meant as either. */
const query = z.strictObject({
  reveal: z.enum(['true', 'false'], 'must be true or false').default('false'),
});

function tooLarge() {
  const limits = `${MAX_BODY_BYTES / 1024} KiB, or ${MAX_CPIX_BYTES / 1024} KiB for a CPIX document`;
  return apiError('body_too_large', `The body is larger than this route accepts: ${limits}.`);
}

function noBody() {
  const description = 'Send a key file, a body of the key-file API or one value to check.';
  return apiError('invalid_body', description);
}
