import type { NextFunction, Request, Response } from 'express';
import { HttpError } from '../http/errors';
import type { EmulatorContext } from './context';
import { allows, type Credential, type Permission, reachesSite } from './credentials';

declare global {
  namespace Express {
    interface Locals {
      /** Who calls, on a route behind `requireCredential`. */
      credential?: Credential;
    }
  }
}

/** A handler that fits every route, whatever its parameters. */
export type Guard = <Params>(request: Request<Params>, response: Response, next: NextFunction) => void;

/**
 * The credential of a request, which comes as `Authorization: Bearer <secret>` or as the bare secret.
 * @throws HttpError 401 when it is missing or unknown.
 */
export function credentialOf(
  { state }: Pick<EmulatorContext, 'state'>,
  request: Pick<Request, 'headers'>,
): Credential {
  const headers = { 'www-authenticate': 'Bearer' };
  const secret = secretOf(request);
  if (secret === undefined) {
    const description = 'Send the V2 API secret in the header Authorization: Bearer <secret>.';
    throw new HttpError(401, { code: 'credential_missing', description }, { headers });
  }
  const credential = state.credentials.bySecret(secret);
  if (credential) return credential;
  const description = 'The header Authorization does not hold the secret of an API credential.';
  throw new HttpError(401, { code: 'credential_refused', description }, { headers });
}

/** The secret that a request carries, whether or not it is anyone's. */
export function secretOf(request: Pick<Request, 'headers'>): string | undefined {
  const secret = request.headers.authorization?.replace(/^Bearer(?:\s+|$)/i, '').trim();
  return secret === '' ? undefined : secret;
}

/**
 * The guard of a management route. It asks for a credential with this permission that reaches the site of the
 * route's `:siteId`, when it has one. A site that doesn't exist and one that is out of reach get the same answer.
 */
export function requireCredential(context: Pick<EmulatorContext, 'state'>, needed: Permission): Guard {
  return (request, response, next) => {
    const credential = credentialOf(context, request);
    const { siteId } = request.params as { siteId?: string };
    if (siteId !== undefined && !reachesSite(credential, siteId)) {
      const description = 'This credential does not reach a site with this id.';
      throw new HttpError(403, { code: 'site_forbidden', description });
    }
    requirePermission(credential, needed);
    response.locals.credential = credential;
    next();
  };
}

/** @throws HttpError 403 when the credential's permission is not enough. */
export function requirePermission(credential: Credential, needed: Permission): void {
  if (allows(credential, needed)) return;
  const description = `This needs a credential with the permission ${needed}; this one has ${credential.permission}.`;
  throw new HttpError(403, { code: 'permission_insufficient', description });
}
