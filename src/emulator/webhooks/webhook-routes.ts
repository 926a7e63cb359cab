import type { Express, Request, Response } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { type Credential, reachesSite } from '../credentials';
import { checkedBody, readJson } from '../json-body';
import { listPage } from '../listing/list';
import { requireCredential } from '../require-credential';
import type { Webhook, WebhookMetadata } from './webhook';
import {
  newWebhookBody,
  renderNewWebhook,
  renderWebhook,
  siteForbidden,
  WEBHOOK_FIELDS,
  webhookUpdateBody,
} from './webhook-wire';
import type { Webhooks } from './webhooks';

export interface WebhookRoutesContext extends Pick<EmulatorContext, 'state'> {
  readonly webhooks: Webhooks;
}

/** `siteId` is what the guard looks for; these paths have none. */
type OneWebhook = Request<{ webhookId: string; siteId?: string }>;

/** The management API's webhooks. A credential sees those whose sites it reaches, all of them. */
export function mountWebhooks(app: Express, context: WebhookRoutesContext): void {
  const { webhooks } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');

  app
    .route('/v2/webhooks')
    .get(reads, (request, response) => {
      const seen = webhooks.list().filter((webhook) => isSeen(webhook, callerOf(response)));
      const listed = { name: 'webhooks', fields: WEBHOOK_FIELDS, render: renderWebhook };
      response.json(listPage(seen, request.query, listed));
    })
    .post(writes, readJson, (request, response) => {
      const metadata = checkedBody(newWebhookBody(webhooks.rules), request.body);
      requireSites(metadata, callerOf(response));
      response
        .status(201)
        .set('cache-control', 'no-store')
        .json(renderNewWebhook(webhooks.create(metadata)));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/v2/webhooks/:webhookId')
    .get(reads, (request: OneWebhook, response) => {
      response.json(renderWebhook(webhookOf(context, request.params.webhookId, callerOf(response))));
    })
    .patch(writes, readJson, (request: OneWebhook, response) => {
      const webhook = webhookOf(context, request.params.webhookId, callerOf(response));
      const body = webhookUpdateBody(webhooks.rules, webhook.metadata);
      const metadata = checkedBody(body, request.body);
      requireSites(metadata, callerOf(response));
      response.json(renderWebhook(webhooks.update(webhook, metadata)));
    })
    .delete(writes, (request: OneWebhook, response) => {
      webhooks.remove(webhookOf(context, request.params.webhookId, callerOf(response)).id);
      response.status(204).end();
    })
    .all(onlyMethods('GET', 'PATCH', 'DELETE'));
}

function callerOf({ locals: { credential } }: Response): Credential {
  if (!credential) throw new Error('This route needs requireCredential before it.');
  return credential;
}

function isSeen({ metadata }: Webhook, credential: Credential): boolean {
  return metadata.siteIds.every((siteId) => reachesSite(credential, siteId));
}

/** @throws HttpError 404 when there is none with this id, or none that the credential sees: it learns no more. */
function webhookOf({ webhooks }: WebhookRoutesContext, id: string, credential: Credential): Webhook {
  const webhook = webhooks.find(id);
  if (webhook && isSeen(webhook, credential)) return webhook;
  throw new HttpError(404, { code: 'not_found', description: 'This account has no webhook with this id.' });
}

/** @throws HttpError 403 that names each site out of reach by its place. */
function requireSites({ siteIds }: WebhookMetadata, credential: Credential): void {
  const problems = siteIds.flatMap((siteId, place) =>
    reachesSite(credential, siteId) ? [] : siteForbidden(place),
  );
  if (problems.length > 0) throw new HttpError(403, problems);
}
