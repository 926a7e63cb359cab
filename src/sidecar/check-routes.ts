import express, { type Express, type RequestHandler } from 'express';
import { onlyMethods } from '../http/app';
import { apiError } from './errors';

export const CHECK_PATH = '/api/check';

const LIMIT = '64kb';
const TYPES = ['text/plain', 'application/json'];

// Behind requireText, which has looked at the type.
const parseText = express.text({ limit: LIMIT, type: 'text/plain' });
const parseJson = express.json({ limit: LIMIT, type: 'application/json' });

/** `POST /api/check`: what key material decodes to and what is wrong with it. Nothing of it is kept, written or logged. */
export function checkRoutes(app: Express): void {
  const route = app.route(CHECK_PATH);
  route.post(requireText, parseText, parseJson, async (request, response) => {
    const reveal = readReveal(request.query);
    if (request.body === undefined) throw noBody();
    // Loaded with the first check: the service's start has no need of it.
    const { check } = await import('../drm/check/check');
    response.set('cache-control', 'no-store').json(check(request.body, { reveal }));
  });
  route.all(onlyMethods('POST'));
}

const requireText: RequestHandler = (request, _response, next) => {
  if (request.is(TYPES) === false) {
    const description = 'Send the body as text/plain, or as JSON with content-type: application/json.';
    throw apiError('unsupported_media_type', description);
  }
  next();
};

/** A value that is neither true nor false is refused: it might be meant as either. */
function readReveal(query: Readonly<Record<string, unknown>>): boolean {
  const unknown = Object.keys(query).some((name) => name !== 'reveal');
  const { reveal = 'false' } = query;
  if (!unknown && (reveal === 'true' || reveal === 'false')) return reveal === 'true';
  const description = unknown
    ? 'This path takes reveal alone in its query.'
    : 'reveal must be true or false.';
  throw apiError('invalid_query', description);
}

function noBody() {
  const description = 'Send a key file, a body of the key-file API or one value to check.';
  return apiError('invalid_body', description);
}
