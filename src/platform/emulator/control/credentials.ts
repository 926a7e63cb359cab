import type { Express, Request } from 'express';
import * as z from 'zod';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { HIDDEN } from '../../../http/secret';
import {
  type Credential,
  type CredentialActions,
  type CredentialParts,
  createCredential,
  credentialOf,
  deleteCredential,
  isSeenBy,
  PERMISSIONS,
  ROLES,
  replaceCredential,
  userOf,
  type WantedCredential,
} from '../auth';
import { wireTime } from '../clock';
import { readJson, validated } from '../json-body';

export const CredentialBody = z
  .strictObject(
    {
      name: z.string('must be a string').trim().min(1, 'is empty').max(200, 'is longer than 200 characters'),
      permission: z.enum(PERMISSIONS, `must be one of ${PERMISSIONS.join(', ')}`),
      site_ids: z
        .array(
          z.string('must be a string').regex(/^[A-Za-z0-9]{8}$/, 'must be a site id'),
          'must be an array',
        )
        .min(1, 'names no site')
        .max(100, 'has more than 100 entries')
        .optional(),
      roles: z
        .array(z.enum(ROLES, `must be one of ${ROLES.join(', ')}`), 'must be an array')
        .max(ROLES.length, `has more than ${ROLES.length} entries`)
        .optional(),
    },
    'The body must be a JSON object with name and permission.',
  )
  .transform(({ site_ids: siteIds, ...others }): WantedCredential => ({ ...others, siteIds }));

/** The credentials of the management API. To change them, an Admin's secret is sent as to the management API itself. */
export function mountCredentials(app: Express, parts: CredentialActions): void {
  routeAt(app, '/credentials')
    .get((request, response) => {
      response.set('cache-control', 'no-store').json({ credentials: renderCredentials(parts, request) });
    })
    .post(readJson, (request, response) => {
      const admin = credentialOf(parts, request);
      const wanted = validated(CredentialBody, request.body);
      const made = createCredential(parts, admin, wanted);
      response.status(201).json(renderCredential(made, { reveal: true }));
    });

  routeAt(app, '/credentials/:id').delete((request, response) => {
    const admin = credentialOf(parts, request);
    deleteCredential(parts, admin, credentialFor(parts, request));
    response.status(204).end();
  });

  routeAt(app, '/credentials/:id/replace').post((request, response) => {
    const admin = credentialOf(parts, request);
    const made = replaceCredential(parts, admin, credentialFor(parts, request));
    response.status(201).json(renderCredential(made, { reveal: true }));
  });
}

/** @throws HttpError 404, also when the user of the request does not see it. */
function credentialFor({ state }: CredentialParts, request: Request<{ id: string }>): Credential {
  const credential = state.credentials.find(request.params.id);
  if (credential && isSeenBy(credential, userOf(request))) return credential;
  throw new HttpError(404, { code: 'not_found', description: 'There is no credential with this id.' });
}

/** Those that the user of the request sees; all when it names none. */
export function renderCredentials({ state }: CredentialParts, request: Pick<Request, 'headers' | 'query'>) {
  const user = userOf(request);
  const seen = state.credentials.all().filter((each) => isSeenBy(each, user));
  return seen.map((each) => renderCredential(each, { reveal: request.query.reveal === 'true' }));
}

function renderCredential(credential: Credential, { reveal }: { readonly reveal: boolean }) {
  return {
    id: credential.id,
    name: credential.name,
    permission: credential.permission,
    site_ids: credential.siteIds,
    roles: credential.roles,
    created: wireTime(credential.created),
    secret: masked(credential.secret, reveal),
  };
}

export function masked(secret: string, reveal: boolean): string {
  return reveal ? secret : HIDDEN;
}
