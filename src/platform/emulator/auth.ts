import type { NextFunction, Request, Response } from 'express';
import * as z from 'zod';
import { HttpError } from '../../http/errors';
import { isSameSecret } from '../../http/secret';
import type { Clock } from './clock';
import type { EmulatorDependencies } from './dependencies';
import type { ItemStore } from './listing/item-store';
import { Choice, Id, Text, Time } from './resources/fields';

/** The permissions of credentials, from the least to the most: read; also create and change; also make credentials. */
export const PERMISSIONS = ['Viewer', 'Editor', 'Admin'] as const;
type Permission = (typeof PERMISSIONS)[number];

/** The roles of users, from the least to the most. Each has one user with its name. */
export const ROLES = ['viewer', 'editor', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const CREDENTIAL = {
  id: Id,
  name: Text,
  permission: Choice(PERMISSIONS),
  siteIds: z.array(Text, 'must be an array').readonly(),
  /** The roles of the users who see and use it, next to admins; without one, all users do. */
  roles: z.array(Choice(ROLES), 'must be an array').readonly().optional(),
  /** Kept as it is, for the dashboard's Show Credentials. */
  secret: Text,
  created: Time,
};

export type Credential = Readonly<z.output<z.ZodObject<typeof CREDENTIAL>>>;

export function reachesSite(credential: Credential, siteId: string): boolean {
  return credential.siteIds.includes(siteId);
}

/** Whether a user sees and uses a credential. A program that names no user needs only the secret. */
export function isSeenBy({ roles }: Credential, role: Role | undefined): boolean {
  return role === undefined || role === 'admin' || roles === undefined || roles.includes(role);
}

/** The user that a request names: there is no sign-in. @throws HttpError 400 for an unknown one. */
export function userOf({ headers }: Pick<Request, 'headers'>): Role | undefined {
  const name = headers['x-emulator-user'];
  const role = ROLES.find((each) => each === name);
  if (role !== undefined || name === undefined) return role;
  const description = `x-emulator-user: there is no such user; the users are ${ROLES.join(', ')}.`;
  throw new HttpError(400, { code: 'user_unknown', description });
}

declare global {
  namespace Express {
    interface Locals {
      credential?: Credential;
    }
  }
}

export interface CredentialParts {
  readonly state: { readonly credentials: ItemStore<Credential> };
}

export function credentialBySecret({ state }: CredentialParts, secret: string): Credential | undefined {
  return state.credentials.all().find((each) => isSameSecret(secret, each.secret));
}

type Guard = <Params>(request: Request<Params>, response: Response, next: NextFunction) => void;

/** Reads `Bearer <secret>`, or the bare secret. @throws HttpError 401, also when the user does not see it. */
export function credentialOf(parts: CredentialParts, request: Pick<Request, 'headers'>): Credential {
  const headers = { 'www-authenticate': 'Bearer' };
  const secret = secretOf(request);
  if (secret === undefined) {
    const description = 'Send the V2 API secret in the header Authorization: Bearer <secret>.';
    throw new HttpError(401, { code: 'credential_missing', description }, { headers });
  }
  const credential = credentialBySecret(parts, secret);
  if (credential && isSeenBy(credential, userOf(request))) return credential;
  const description = 'The header Authorization does not hold the secret of an API credential.';
  throw new HttpError(401, { code: 'credential_refused', description }, { headers });
}

export function secretOf(request: Pick<Request, 'headers'>): string | undefined {
  const secret = request.headers.authorization?.replace(/^Bearer(?:\s+|$)/i, '').trim();
  return secret === '' ? undefined : secret;
}

/** The credential of the caller, on a route behind `requireCredential`. */
export function callerOf({ locals: { credential } }: Response): Credential {
  if (!credential) throw new Error('This route needs requireCredential before it.');
  return credential;
}

/**
 * Guards a management route: a credential must have this permission, and reach the site of `:siteId`, if any.
 * A site that doesn't exist and one that is out of reach get the same answer.
 */
export function requireCredential(context: CredentialParts, needed: Permission): Guard {
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
function requirePermission({ permission }: Credential, needed: Permission): void {
  if (PERMISSIONS.indexOf(permission) >= PERMISSIONS.indexOf(needed)) return;
  const description = `This needs a credential with the permission ${needed}; this one has ${permission}.`;
  throw new HttpError(403, { code: 'permission_insufficient', description });
}

export interface CredentialActions
  extends CredentialParts,
    Pick<EmulatorDependencies, 'newResourceId' | 'newSecret'> {
  readonly clock: Clock;
}

export interface WantedCredential {
  readonly name: string;
  readonly permission: Permission;
  /** Without them, the sites of the Admin who makes it. */
  readonly siteIds?: readonly string[] | undefined;
  readonly roles?: readonly Role[] | undefined;
}

/** Makes a credential with a new secret. @throws HttpError 403 unless `admin` is one, and reaches its sites. */
export function createCredential(
  parts: CredentialActions,
  admin: Credential,
  wanted: WantedCredential,
): Credential {
  const siteIds = [...new Set(wanted.siteIds ?? admin.siteIds)];
  requireAdminOf(admin, siteIds);
  const roles = new Set(wanted.roles);
  const { name, permission } = wanted;
  return addCredential(parts, { name, permission, siteIds, ...(roles.size > 0 && { roles: [...roles] }) });
}

/** Removes a credential; its secret is refused from then on. @throws HttpError 403, 409 for the last Admin. */
export function deleteCredential(
  { state }: CredentialActions,
  admin: Credential,
  credential: Credential,
): void {
  requireAdminOf(admin, credential.siteIds);
  const others = state.credentials.all().filter(({ id }) => id !== credential.id);
  if (!others.some(({ permission }) => permission === 'Admin')) {
    const description = 'This is the last Admin credential: without one, none could be made. Replace it.';
    throw new HttpError(409, { code: 'last_admin', description });
  }
  state.credentials.remove(credential);
}

/** Replaces a credential that may have leaked, with a new secret. @throws HttpError 403. */
export function replaceCredential(
  parts: CredentialActions,
  admin: Credential,
  credential: Credential,
): Credential {
  requireAdminOf(admin, credential.siteIds);
  parts.state.credentials.remove(credential);
  return addCredential(parts, credential);
}

function addCredential(
  { state, clock, newResourceId, newSecret }: CredentialActions,
  wanted: Pick<Credential, 'name' | 'permission' | 'siteIds' | 'roles'>,
): Credential {
  const credential = { ...wanted, id: newResourceId(), secret: newSecret(), created: clock.now() };
  state.credentials.add(credential);
  return credential;
}

function requireAdminOf(admin: Credential, siteIds: readonly string[]): void {
  requirePermission(admin, 'Admin');
  if (siteIds.every((siteId) => reachesSite(admin, siteId))) return;
  const description = 'This credential does not reach every site of the other one.';
  throw new HttpError(403, { code: 'site_forbidden', description });
}
