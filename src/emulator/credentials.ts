import { createHash } from 'node:crypto';

/** What a credential may do, from the least to the most: read; also create and change; also make credentials. */
export const PERMISSIONS = ['Viewer', 'Editor', 'Admin'] as const;
export type Permission = (typeof PERMISSIONS)[number];

export interface Credential {
  readonly id: string;
  readonly name: string;
  readonly permission: Permission;
  /** The sites that it reaches. */
  readonly siteIds: readonly string[];
  /** Kept as it is, for the dashboard's Show Credentials. */
  readonly secret: string;
  readonly created: Date;
}

/** The management API's credentials, found by the digest of their secret. */
export class CredentialStore {
  readonly #byId = new Map<string, Credential>();
  readonly #byDigest = new Map<string, Credential>();

  add(credential: Credential): void {
    this.#byId.set(credential.id, credential);
    this.#byDigest.set(digest(credential.secret), credential);
  }

  /** Oldest first. */
  list(): readonly Credential[] {
    return [...this.#byId.values()];
  }

  find(id: string): Credential | undefined {
    return this.#byId.get(id);
  }

  bySecret(secret: string): Credential | undefined {
    return this.#byDigest.get(digest(secret));
  }

  remove(credential: Credential): void {
    this.#byId.delete(credential.id);
    this.#byDigest.delete(digest(credential.secret));
  }

  clear(): void {
    this.#byId.clear();
    this.#byDigest.clear();
  }
}

export function reachesSite(credential: Credential, siteId: string): boolean {
  return credential.siteIds.includes(siteId);
}

export function allows(credential: Credential, needed: Permission): boolean {
  return PERMISSIONS.indexOf(credential.permission) >= PERMISSIONS.indexOf(needed);
}

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64');
}
