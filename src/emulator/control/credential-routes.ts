import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import type { Credential } from '../credentials';
import { checkedBody, readJson } from '../json-body';
import { createCredential, deleteCredential, replaceCredential } from '../manage-credentials';
import { credentialOf } from '../require-credential';
import { CredentialBody, renderCredential, wantedCredential } from './credentials-wire';

/** The credentials of the management API. To change them, an Admin's secret is sent as to the management API itself. */
export function mountCredentials(app: Express, context: EmulatorContext): void {
  const { state } = context;

  app
    .route('/credentials')
    .get((request, response) => {
      const reveal = request.query.reveal === 'true';
      response.set('cache-control', 'no-store').json({
        credentials: state.credentials.list().map((each) => renderCredential(each, { reveal })),
      });
    })
    .post(readJson, (request, response) => {
      const admin = credentialOf(context, request);
      const wanted = wantedCredential(checkedBody(CredentialBody, request.body));
      const made = createCredential(context, admin, wanted);
      response.status(201).json(renderCredential(made, { reveal: true }));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/credentials/:id')
    .delete((request, response) => {
      const admin = credentialOf(context, request);
      deleteCredential(context, admin, credentialWithId(context, request.params.id));
      response.status(204).end();
    })
    .all(onlyMethods('DELETE'));

  app
    .route('/credentials/:id/replace')
    .post((request, response) => {
      const admin = credentialOf(context, request);
      const made = replaceCredential(context, admin, credentialWithId(context, request.params.id));
      response.status(201).json(renderCredential(made, { reveal: true }));
    })
    .all(onlyMethods('POST'));
}

function credentialWithId({ state }: EmulatorContext, id: string): Credential {
  const credential = state.credentials.find(id);
  if (credential) return credential;
  throw new HttpError(404, { code: 'not_found', description: 'There is no credential with this id.' });
}
