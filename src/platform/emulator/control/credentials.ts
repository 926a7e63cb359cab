import type { Express } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import {
  type Credential,
  type CredentialActions,
  createCredential,
  credentialOf,
  deleteCredential,
  PERMISSIONS,
  replaceCredential,
  type WantedCredential,
} from '../auth';
import { wireTime } from '../clock';
import { checkedBody, readJson } from '../json-body';

/** The body that makes a credential. */
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
    },
    'The body must be a JSON object with name and permission.',
  )
  .transform(({ name, permission, site_ids }): WantedCredential => ({ name, permission, siteIds: site_ids }));

/** The credentials of the management API. To change them, an Admin's secret is sent as to the management API itself. */
export function mountCredentials(app: Express, parts: CredentialActions): void {
  const { state } = parts;

  app
    .route('/credentials')
    .get((request, response) => {
      const reveal = request.query.reveal === 'true';
      response.set('cache-control', 'no-store').json({
        credentials: state.credentials.all().map((each) => renderCredential(each, { reveal })),
      });
    })
    .post(readJson, (request, response) => {
      const admin = credentialOf(parts, request);
      const wanted = checkedBody(CredentialBody, request.body);
      const made = createCredential(parts, admin, wanted);
      response.status(201).json(renderCredential(made, { reveal: true }));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/credentials/:id')
    .delete((request, response) => {
      const admin = credentialOf(parts, request);
      deleteCredential(parts, admin, credentialWithId(parts, request.params.id));
      response.status(204).end();
    })
    .all(onlyMethods('DELETE'));

  app
    .route('/credentials/:id/replace')
    .post((request, response) => {
      const admin = credentialOf(parts, request);
      const made = replaceCredential(parts, admin, credentialWithId(parts, request.params.id));
      response.status(201).json(renderCredential(made, { reveal: true }));
    })
    .all(onlyMethods('POST'));
}

function credentialWithId({ state }: CredentialActions, id: string): Credential {
  const credential = state.credentials.find(id);
  if (credential) return credential;
  throw new HttpError(404, { code: 'not_found', description: 'There is no credential with this id.' });
}

export function renderCredential(credential: Credential, { reveal }: { readonly reveal: boolean }) {
  return {
    id: credential.id,
    name: credential.name,
    permission: credential.permission,
    site_ids: credential.siteIds,
    created: wireTime(credential.created),
    secret: masked(credential.secret, reveal),
  };
}

/** A secret as a snapshot shows it. */
export function masked(secret: string, reveal: boolean): string {
  return reveal ? secret : '***';
}
