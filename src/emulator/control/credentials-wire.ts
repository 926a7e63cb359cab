import { z } from 'zod';
import { type Credential, PERMISSIONS } from '../credentials';
import type { WantedCredential } from '../manage-credentials';
import { wireTime } from '../wire-time';
import { masked } from './masked';

export const CredentialBody = z.strictObject(
  {
    name: z.string('must be a string').trim().min(1, 'is empty').max(200, 'is longer than 200 characters'),
    permission: z.enum(PERMISSIONS, `must be one of ${PERMISSIONS.join(', ')}`),
    site_ids: z
      .array(z.string('must be a string').regex(/^[A-Za-z0-9]{8}$/, 'must be a site id'), 'must be an array')
      .min(1, 'names no site')
      .max(100, 'has more than 100 entries')
      .optional(),
  },
  'The body must be a JSON object with name and permission.',
);

export function wantedCredential(body: z.output<typeof CredentialBody>): WantedCredential {
  return { name: body.name, permission: body.permission, siteIds: body.site_ids };
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
