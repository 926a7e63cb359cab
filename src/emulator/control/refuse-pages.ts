import type { RequestHandler } from 'express';
import { HttpError } from '../../http/errors';
import { isPublicName } from '../public-name';

/**
 * Refuses web pages: what a browser shows from anywhere can send requests to this machine, and the control port asks
 * for no credential. A browser names the page's origin, or says that a page sent the request and not a person; and a
 * page whose public name was made to point here (DNS rebinding) calls by that name.
 */
export const refusePages: RequestHandler = (request, _response, next) => {
  const { origin, host = '', 'sec-fetch-site': sender = 'none' } = request.headers;
  if (origin !== undefined || sender !== 'none' || isPublicName(host)) {
    const description =
      'The control port is for programs on this machine, called by address or private name.';
    throw new HttpError(403, { code: 'page_refused', description });
  }
  next();
};
