import { WEBHOOK_EVENTS } from '../webhooks/event-names-wire';
import type { ReceiverRules } from '../webhooks/receiver-address';
import type { WebhookMetadata } from '../webhooks/webhook';
import { newWebhookBody } from '../webhooks/webhook-wire';
import { checkedForm, type FormBody, type ReadForm } from './form-body';

/** What a webhook can be told of. */
export const EVENT_NAMES = Object.values(WEBHOOK_EVENTS);

const LABELS = {
  'metadata.name': 'Name',
  'metadata.description': 'Description',
  'metadata.webhook_url': 'URL',
  'metadata.events': 'Events',
  'metadata.site_ids': 'Sites',
};

/** A webhook's metadata out of the dashboard's form, under the management API's own rules. */
export function readWebhookForm(form: FormBody, receivers: ReceiverRules): ReadForm<WebhookMetadata> {
  const metadata = {
    name: form.text('name').trim(),
    description: form.text('description').trim(),
    webhook_url: form.text('url').trim(),
    events: form.texts('event'),
    site_ids: form.texts('site'),
  };
  return checkedForm(newWebhookBody(receivers), { metadata }, LABELS);
}
