import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import { HttpError } from '../../kernel/errors';

/** Endings that no public name has (RFC 2606, RFC 6761, RFC 6762, and ICANN's for private use). */
const PRIVATE_NAME = /\.(?:localhost|test|local|internal)$/;

/**
 * Refuses web pages: what a browser shows from anywhere can send requests to this machine, and the control port asks
 * for no credential. A page names its origin; and one whose public name was made to point here (DNS rebinding) calls
 * by that name.
 */
export const refusePages: RequestHandler = (request, _response, next) => {
  if (request.headers.origin !== undefined || isPublicName(request.headers.host ?? '')) {
    const description =
      'The control port is for programs on this machine, called by address or private name.';
    throw new HttpError(403, { code: 'page_refused', description });
  }
  next();
};

function isPublicName(host: string): boolean {
  const url = `http://${host}`;
  if (!URL.canParse(url)) return host !== '';
  const name = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return name.includes('.') && isIP(name) === 0 && !PRIVATE_NAME.test(name);
}
