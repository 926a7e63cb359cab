import type { Express, Request } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { type Credential, reachesSite } from '../credentials';
import { createCredential, deleteCredential, replaceCredential } from '../manage-credentials';
import { readCredentialForm } from './credential-form-wire';
import { credentialsPage } from './credentials-page';
import { FormBody, readForm } from './form-body';

const PATH = '/dashboard/credentials';

type OneCredential = Request<{ credentialId: string }>;

export function mountCredentialPages(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get((request, response) => {
      const view = { query: request.query, sent: new FormBody(), problems: [] };
      response.send(credentialsPage(context, view));
    })
    .post(readForm, (request, response) => {
      const sent = new FormBody(request.body);
      const read = readCredentialForm(sent);
      if (!read.ok) {
        response.status(400).send(credentialsPage(context, { query: {}, sent, problems: read.problems }));
        return;
      }
      createCredential(context, adminOf(context, read.value.siteIds ?? []), read.value);
      response.redirect(303, `${PATH}?done=credential-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  for (const [act, done, change] of [
    ['delete', 'credential-deleted', deleteCredential],
    ['replace', 'credential-replaced', replaceCredential],
  ] as const) {
    app
      .route(`${PATH}/:credentialId/${act}`)
      .post((request: OneCredential, response) => {
        const credential = credentialOf(context, request.params.credentialId);
        change(context, adminOf(context, credential.siteIds), credential);
        response.redirect(303, `${PATH}?done=${done}`);
      })
      .all(onlyMethods('POST'));
  }
}

/** Who uses the dashboard administers the account: credentials change in the name of an Admin of their sites. */
function adminOf({ state }: EmulatorContext, siteIds: readonly string[]): Credential {
  const admins = state.credentials.list().filter(({ permission }) => permission === 'Admin');
  const admin = admins.find((each) => siteIds.every((site) => reachesSite(each, site)));
  if (admin) return admin;
  const description = 'No Admin credential reaches all of these sites, so none can answer for this change.';
  throw new HttpError(403, { code: 'site_forbidden', description });
}

function credentialOf({ state }: EmulatorContext, id: string): Credential {
  const credential = state.credentials.find(id);
  if (credential) return credential;
  const description = 'There is no credential with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}
