import { HttpError } from '../http/errors';
import type { EmulatorContext } from './context';
import { type Credential, type Permission, reachesSite } from './credentials';
import { requirePermission } from './require-credential';

/** What the control port and the dashboard do to credentials, always in the name of an Admin credential. */
type Parts = Pick<EmulatorContext, 'state' | 'clock' | 'newResourceId' | 'newSecret'>;

export interface WantedCredential {
  readonly name: string;
  readonly permission: Permission;
  /** Without them, the sites of the Admin who makes it. */
  readonly siteIds?: readonly string[] | undefined;
}

/** Makes a credential with a new secret. @throws HttpError 403 unless `admin` is one, and reaches its sites. */
export function createCredential(parts: Parts, admin: Credential, wanted: WantedCredential): Credential {
  const siteIds = [...new Set(wanted.siteIds ?? admin.siteIds)];
  requireAdminOf(admin, siteIds);
  return addCredential(parts, { name: wanted.name, permission: wanted.permission, siteIds });
}

/** Removes a credential; its secret is refused from then on. @throws HttpError 403, 409 for the last Admin. */
export function deleteCredential({ state }: Parts, admin: Credential, credential: Credential): void {
  requireAdminOf(admin, credential.siteIds);
  const others = state.credentials.list().filter(({ id }) => id !== credential.id);
  if (!others.some(({ permission }) => permission === 'Admin')) {
    const description = 'This is the last Admin credential: without one, none could be made. Replace it.';
    throw new HttpError(409, { code: 'last_admin', description });
  }
  state.credentials.remove(credential);
}

/** Puts a new credential with a new secret in the place of one that may have leaked. @throws HttpError 403. */
export function replaceCredential(parts: Parts, admin: Credential, credential: Credential): Credential {
  requireAdminOf(admin, credential.siteIds);
  parts.state.credentials.remove(credential);
  const { name, permission, siteIds } = credential;
  return addCredential(parts, { name, permission, siteIds });
}

function addCredential(
  { state, clock, newResourceId, newSecret }: Parts,
  wanted: Pick<Credential, 'name' | 'permission' | 'siteIds'>,
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
