import { HttpError } from '../../../http/errors';
import type { Clock } from '../clock';
import type { Behaviour, Resource, View } from '../resources/resource';
import { callsOf } from '../resources/resource-calls';
import { WEBHOOK } from '../resources/webhook-table';
import { type ReceiverRules, receiverUrlFaults } from './receiver-address';
import type { Webhook, WebhookMetadata, Webhooks } from './webhooks';

/** The calls for webhooks. */
export function webhookCalls({ webhooks, clock }: { readonly webhooks: Webhooks; readonly clock: Clock }) {
  return callsOf(webhookResource(webhooks.rules), webhookBehaviour(webhooks), clock.now);
}

/** The table of webhooks with the rules for the address of a receiver of this emulator. */
export function webhookResource(receivers: ReceiverRules) {
  const { metadata } = WEBHOOK;
  const schema = metadata.webhook_url.schema.superRefine((url, context) => {
    for (const message of receiverUrlFaults(url, receivers)) context.addIssue({ code: 'custom', message });
  });
  return {
    ...WEBHOOK,
    metadata: { ...metadata, webhook_url: { ...metadata.webhook_url, schema } },
  } satisfies Resource;
}

/** What is special about webhooks: a credential sees those whose sites it reaches, all of them. */
function webhookBehaviour(webhooks: Webhooks): Behaviour<typeof WEBHOOK, Webhook> {
  const isSeen = ({ metadata }: Webhook, { reaches = () => true }: View) => metadata.site_ids.every(reaches);
  return {
    list: (_ids, view) => webhooks.list().filter((webhook) => isSeen(webhook, view)),
    find({ webhookId = '' }, view) {
      const webhook = webhooks.find(webhookId);
      return webhook && isSeen(webhook, view) ? webhook : undefined;
    },
    create(_ids, { metadata }, view) {
      requireSites(metadata, view);
      return webhooks.create(metadata);
    },
    update(webhook, metadata, _body, view) {
      requireSites(metadata, view);
      webhooks.update(webhook, metadata);
    },
    remove: ({ id }) => webhooks.remove(id),
  };
}

/** @throws HttpError 403 that names each site out of reach by its place: the caller does not learn whether it is there. */
function requireSites({ site_ids }: WebhookMetadata, { reaches = () => true }: View): void {
  const problems = site_ids.flatMap((siteId, place) => {
    const description = `metadata.site_ids.${place}: this credential does not reach a site with this id.`;
    return reaches(siteId) ? [] : { code: 'site_forbidden', description };
  });
  if (problems.length > 0) throw new HttpError(403, problems);
}
