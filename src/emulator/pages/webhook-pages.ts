import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import type { Webhook } from '../webhooks/webhook';
import { FormBody, readForm } from './form-body';
import { readWebhookForm } from './webhook-form-wire';
import { webhookPage } from './webhook-page';
import { webhooksPage } from './webhooks-page';

const PATH = '/dashboard/webhooks';

export function mountWebhookPages(app: Express, context: EmulatorContext): void {
  const { webhooks, seeds } = context;
  /** Ids of webhooks that were made here and whose secret nobody has seen. */
  const unseen = new Set<string>();

  app
    .route(PATH)
    .get(({ query }, response) => {
      response.send(webhooksPage(context, { query, sent: new FormBody(), problems: [] }));
    })
    .post(readForm, (request, response) => {
      const sent = new FormBody(request.body);
      const read = readWebhookForm(sent, webhooks.rules);
      const problems = [
        ...(sent.texts('site').every((site) => seeds.siteIds.includes(site))
          ? []
          : ['The account has no such site.']),
        ...(read.ok ? [] : read.problems),
      ];
      if (!read.ok || problems.length > 0) {
        response.status(400).send(webhooksPage(context, { query: {}, sent, problems }));
        return;
      }
      const { id } = webhooks.create(read.value);
      unseen.add(id);
      response.redirect(303, `${PATH}/${id}`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/:webhookId`)
    .get((request, response) => {
      const webhook = webhookOf(context, request.params.webhookId);
      const showSecret = request.method === 'GET' && unseen.delete(webhook.id);
      response.send(webhookPage(context, webhook, { showSecret, query: request.query }));
    })
    .all(onlyMethods('GET'));

  app
    .route(`${PATH}/:webhookId/delete`)
    .post((request, response) => {
      const { id } = webhookOf(context, request.params.webhookId);
      webhooks.remove(id);
      unseen.delete(id);
      response.redirect(303, `${PATH}?done=webhook-deleted`);
    })
    .all(onlyMethods('POST'));
}

function webhookOf({ webhooks }: EmulatorContext, id: string): Webhook {
  const webhook = webhooks.find(id);
  if (webhook) return webhook;
  const description = 'There is no webhook with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}
