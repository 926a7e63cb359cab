import type { Express, RequestHandler } from 'express';
import { sealEnvelope } from '../../drm/envelope';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import { isPathName } from '../clients';
import type { EmulatorContext } from '../context';
import { authorizedClient } from './client-credential';
import { deriveKeys } from './derive-keys';
import { KEY_ANSWERS, type KeyAnswer } from './key-provider-wire';

/** The key provider: one route for each kind of answer, all of them enveloped. */
export function mountKeyProvider(app: Express, context: EmulatorContext): void {
  for (const [kind, answer] of Object.entries(KEY_ANSWERS)) {
    app
      .route(`/keyprovider/${kind}/:client/:contentId`)
      .get(answerKeys(context, answer))
      .all(onlyMethods('GET'));
  }
}

type PathParameters = { client: string; contentId: string };

function answerKeys(
  { clients, issuedKeys }: EmulatorContext,
  answer: KeyAnswer,
): RequestHandler<PathParameters> {
  return ({ params: { client: name, contentId }, headers }, response) => {
    const client = authorizedClient(clients, name, headers);
    if (!isPathName(contentId)) {
      const description = 'A content id is 1 to 200 letters, digits, _, - and ., and not . or ..';
      throw new HttpError(400, { code: 'invalid_content_id', description });
    }
    const keys = deriveKeys(client, contentId);
    if (answer.namesKeyId) issuedKeys.remember({ keyId: keys.keyId, key: keys.contentKey });
    const text = JSON.stringify(answer.fields({ client: client.name, contentId, keys }));
    const key = sealEnvelope(text, { client: client.name, sharedSecret: client.sharedSecret });
    response.set('cache-control', 'no-store').json({ key });
  };
}
