import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { text } from '../json-body';
import { EVENT_NAMES } from '../webhooks/notification';
import { type ReceiverRules, receiverUrlFaults } from '../webhooks/receiver';
import type { Webhook, WebhookMetadata } from '../webhooks/webhooks';
import { list, row, Text } from './fields';
import { type Behaviour, named, newItem, type Platform, type Resource, type View } from './resource';

const isSet = (names: readonly string[]) => new Set(names).size === names.length;

export const WEBHOOK = {
  ...named('webhook', '/v2', 'webhookId'),
  says: 'An address that the platform notifies of events on some sites. A credential sees the webhooks whose sites it all reaches.',
  metadata: {
    name: row(text(200).min(1, 'is empty'), 'The name.', { required: true, filter: 'words' }),
    webhook_url: row(
      z.string('must be a string'),
      'Where notifications are sent: `https`, or `http` to this machine. At most 2000 characters.',
      { required: true, filter: 'text' },
    ),
    events: row(
      list(z.enum(EVENT_NAMES, `must be one of ${EVENT_NAMES.join(', ')}`), 1000)
        .min(1, 'names no event')
        .refine(isSet, 'repeats an event'),
      'The events to notify of.',
      { required: true, filter: 'text' },
    ),
    site_ids: row(
      list(text(200), 1000).min(1, 'names no site').refine(isSet, 'repeats a site'),
      'The sites to notify of. The credential must reach all of them.',
      { required: true, filter: 'text' },
    ),
    description: row(text(2000), 'Its purpose.', { default: '', filter: 'words' }),
  },
  shown: {
    secret: row(z.string(), 'The key that signs the tokens of notifications. It is never shown again.', {
      once: true,
    }),
  },
  kept: {
    /** Its bytes as text are the key of the tokens. Shown once, when the webhook is created. */
    secret: Text,
  },
} as const satisfies Resource;

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

/** A credential sees the webhooks whose sites it reaches, all of them. */
export function webhookBehaviour(parts: Platform): Behaviour<typeof WEBHOOK, Webhook> {
  const { state } = parts;
  return {
    store: state.webhooks,
    sees: ({ metadata }, { reaches = () => true }) => metadata.site_ids.every(reaches),
    create(_ids, { metadata }, view) {
      requireSites(metadata, view);
      return state.webhooks.add(newItem(WEBHOOK, parts, { secret: parts.newSecret(), metadata }));
    },
    update(webhook, metadata, _body, view) {
      requireSites(metadata, view);
      state.webhooks.change(webhook, { metadata });
    },
  };
}

/** @throws HttpError 403 that names each site out of reach by its place, and does not show whether it exists. */
function requireSites({ site_ids }: WebhookMetadata, { reaches = () => true }: View): void {
  const problems = site_ids.flatMap((siteId, place) => {
    const description = `metadata.site_ids.${place}: this credential does not reach a site with this id.`;
    return reaches(siteId) ? [] : { code: 'site_forbidden', description };
  });
  if (problems.length > 0) throw new HttpError(403, problems);
}
