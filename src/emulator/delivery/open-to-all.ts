import type { RequestHandler } from 'express';

/**
 * For what pages of any origin load without a credential: answers say so, and a preflight is answered here. The
 * security headers of the rest of the platform forbid it otherwise.
 */
export const openToAll: RequestHandler = (request, response, next) => {
  response.set({
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  });
  if (request.method !== 'OPTIONS') {
    next();
    return;
  }
  response
    .set({
      'access-control-allow-methods': 'GET, HEAD',
      'access-control-allow-headers': request.get('access-control-request-headers') ?? '*',
      'access-control-max-age': '600',
    })
    .status(204)
    .end();
};
