import type { Express } from 'express';
import * as z from 'zod';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { webhookResource } from '../resources/webhooks';
import { EVENT_NAMES } from '../webhooks/notification';
import { type Delivery, isDelivered, type Webhook } from '../webhooks/webhooks';
import { address, type Column, card, choicesOf, copyable, pill, section, time, type Words } from './elements';
import { FormBody } from './inputs';
import { listOf, type PageQuery } from './list';
import { mountResourcePages, requireSite } from './resource-pages';

const PATH = '/dashboard/webhooks';

type Outcome = 'delivered' | 'retried' | 'failed' | 'dropped';

const OUTCOMES: Words<Outcome> = {
  delivered: ['delivered', 'success'],
  retried: ['failed, to be retried', 'warning'],
  failed: ['failed', 'danger'],
  dropped: ['dropped', 'danger'],
};
const LAST_TRIES: Words<Outcome | 'none'> = { ...OUTCOMES, none: ['none yet', 'neutral'] };

function outcomeOf(delivery: Delivery | undefined): Outcome | 'none' {
  if (!delivery) return 'none';
  const { answer, attempt, nextTryAt } = delivery;
  if (isDelivered(answer)) return 'delivered';
  if (attempt === 0) return 'dropped';
  return nextTryAt ? 'retried' : 'failed';
}

export function mountWebhookPages(app: Express, context: EmulatorContext): void {
  const { state, webhooks, seeds, library } = context;
  const resource = webhookResource(webhooks.rules);
  const { name, webhook_url, description, events, site_ids } = resource.metadata;
  const sites = { ...site_ids, schema: z.array(z.enum([...seeds.siteIds])) };
  const fields = { name, webhook_url, description, site_ids: sites, events };
  /** Ids of webhooks that were made here and whose secret was not shown yet. */
  const unshown = new Set<string>();
  const lastOf = ({ id }: Webhook) => webhooks.history(id).at(-1);
  mountResourcePages<Webhook>(app, context, {
    noun: { one: 'webhook', many: 'webhooks' },
    intro:
      'The platform notifies these addresses of events, each time with a token that proves where the call comes from.',
    store: state.webhooks,
    nameOf: ({ metadata }) => metadata.name,
    columns: () => [
      ['Calls', ({ metadata }) => address(metadata.webhook_url)],
      [
        'Events',
        ({ metadata }) =>
          metadata.events.length === EVENT_NAMES.length ? 'every event' : metadata.events.join(', '),
      ],
      [
        'Last try',
        (webhook) => {
          const last = lastOf(webhook);
          return html`${pill(...LAST_TRIES[outcomeOf(last)])}${last && html`<span class="sub">${time(last.at)}</span>`}`;
        },
      ],
    ],
    hint: 'name, id, URL or event',
    texts: ({ id, metadata }) => [id, ...Object.values(metadata).flat()],
    filters: [
      {
        name: 'last_try',
        choices: choicesOf(LAST_TRIES),
        of: (webhook) => outcomeOf(lastOf(webhook)),
      },
    ],
    newForm: {
      metadata: fields,
      hasSite: false,
      made(id) {
        unshown.add(id);
        return undefined;
      },
    },
    calls(of) {
      if (of instanceof FormBody) for (const site of of.texts('site_ids')) requireSite(context, site);
      return library.webhooks;
    },
    fields: () => ({ metadata: fields }),
    parts: (webhook, { request, query }, settings) => ({
      secret:
        request.method === 'GET' &&
        unshown.delete(webhook.id) &&
        card(
          'secret',
          'The webhook was created. This is its secret',
          html`<p>Copy it now: it is shown this once. With it, your receiver checks the token of every call.</p><p>${copyable('secret of the webhook', webhook.secret)}</p>`,
          'card-current',
        ),
      history: historyPart(webhooks.history(webhook.id), webhook, query),
      settings,
    }),
    facts: () => [
      [
        'Secret',
        html`<span class="muted">Shown once, when it was created. For a new one, delete the webhook and make another.</span>`,
      ],
    ],
    farewell: ['Notifications that still wait are dropped.', 'Its secret is gone with it.'],
  });
}

const DELIVERY_COLUMNS: readonly Column<Delivery>[] = [
  ['Time', ({ at }) => time(at)],
  ['Event', ({ event, subjectId }) => html`${event}<span class="sub"><code>${subjectId}</code></span>`],
  ['Try', ({ attempt }) => (attempt === 0 ? 'not tried' : attempt)],
  ['Outcome', (delivery) => pill(...LAST_TRIES[outcomeOf(delivery)])],
  [
    'Answer',
    (delivery) =>
      html`${answerOf(delivery)}${delivery.attempt > 0 && html`<span class="sub">after ${Math.round(delivery.ms)} ms</span>`}`,
  ],
  ['Next try', ({ nextTryAt }) => time(nextTryAt)],
];

function answerOf({ answer }: Delivery): string {
  return 'status' in answer ? `Status ${answer.status}` : answer.failure;
}

function historyPart(history: readonly Delivery[], { id }: Webhook, query: PageQuery): Html {
  const tries = listOf('history', history, query, {
    path: `${PATH}/${id}`,
    noun: { one: 'try', many: 'tries' },
    caption: 'Tries, the latest first',
    columns: () => DELIVERY_COLUMNS,
    hint: 'event, id or answer',
    texts: (delivery) => [delivery.event, delivery.subjectId, answerOf(delivery)],
    filters: [{ name: 'outcome', choices: choicesOf(OUTCOMES), of: outcomeOf }],
    empty: html`<p>Nothing has happened yet that this webhook asked for.</p>`,
  });
  return section('history', 'Deliveries', tries);
}
