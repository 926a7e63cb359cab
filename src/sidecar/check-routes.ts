import { promisify } from 'node:util';
import express, { type Express, type Request, type Response } from 'express';
import * as z from 'zod';
import { MAX_BODY_BYTES } from '../api/key-file-request';
import type { ProviderRules } from '../api/read-key-file-request';
import { looksLikeCpixBytes, MAX_CPIX_BYTES } from '../drm/cpix/read';
import { onlyMethods, requireType } from '../http/app';
import { parsedOr400 } from '../http/errors';
import { querySwitch, readQuery } from '../http/faults';
import { apiError } from './errors';
import { CPIX_TYPES, inKib, readDocument, readJson, tooLarge } from './read-request';

const CHECK_PATH = '/api/check';

const TEXT = 'text/plain';
const NO_BODY = 'Send a key file, a body of the key-file API or one value to check.';
const WHICH_TYPES =
  'Send the body as text/plain, as JSON with content-type: application/json, or a CPIX document as application/cpix+xml.';

/** `POST /api/check`: what key material decodes to and what is wrong with it. Nothing of it is kept, written or logged. */
export function checkRoutes(app: Express, rules?: ProviderRules): void {
  const route = app.route(CHECK_PATH);
  route.post(async (request, response) => {
    const body = await readInput(request, response);
    const { reveal } = parsedOr400(readQuery(checkQuery, request.query));
    if (body === undefined) throw apiError('invalid_body', NO_BODY);
    const { check } = await import('../api/check');
    response.set('cache-control', 'no-store').json(check(body, { reveal, rules }));
  });
  route.all(onlyMethods('POST'));
}

const LIMITS = `${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_CPIX_BYTES)} for a CPIX document`;

const parseText = promisify(
  express.text({
    limit: MAX_CPIX_BYTES,
    type: () => true,
    verify: (_request, _response, body) => {
      if (body.length > MAX_BODY_BYTES && !looksLikeCpixBytes(body)) throw tooLarge(LIMITS);
    },
  }),
);

/** Reads what is to be checked: a text, the bytes of a CPIX document, or JSON. */
async function readInput(request: Request, response: Response): Promise<unknown> {
  const type = requireType(request, [TEXT, 'application/json', ...CPIX_TYPES], WHICH_TYPES);
  if (type === undefined) return undefined;
  if (CPIX_TYPES.includes(type)) return readDocument(request, response);
  if (type !== TEXT) return readJson(request, response);
  await parseText(request, response);
  return request.body;
}

export const checkQuery = z.strictObject({
  reveal: querySwitch.meta({ description: '`true`: the answer shows key material.' }),
});
