import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { type Delivery, isDelivered } from '../webhooks/delivery-queue';
import { EVENT_NAMES } from '../webhooks/notification';
import type { ReceiverRules } from '../webhooks/receiver-address';
import { webhookResource } from '../webhooks/webhook-api';
import type { Webhook, WebhookMetadata } from '../webhooks/webhooks';
import {
  address,
  choicesOf,
  confirmedAction,
  copyable,
  facts,
  live,
  pill,
  table,
  time,
  type Words,
} from './elements';
import {
  checkboxField,
  checkedMetadata,
  FormBody,
  form,
  type ListView,
  linkToForm,
  listAndForm,
  type ReadForm,
  readForm,
  sitesField,
  textField,
} from './forms';
import { layout } from './layout';
import { type PageQuery, type Searchable, search } from './search';

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

function webhooksPage({ webhooks, seeds }: EmulatorContext, { query, sent, problems }: ListView): string {
  const latest = new Map(webhooks.history().map((delivery) => [delivery.webhookId, delivery]));
  const found = search(webhooks.list(), query, searchable(latest));
  const list = table({
    caption: 'Webhooks',
    columns: ['Webhook', 'Calls', 'Events', 'Last try'],
    rows: found.items.map((webhook) => rowOf(webhook, latest.get(webhook.id))),
    empty: found.none,
  });
  return layout({
    title: 'Webhooks',
    section: PATH,
    aside: linkToForm('new-webhook', 'New webhook'),
    intro:
      'The platform tells these addresses what happens, each time with a token that proves where it comes from.',
    content: listAndForm(
      html`${found.form}${live('webhooks', html`${found.summary}${list}${found.links}`)}`,
      webhookForm(seeds.siteIds, sent, problems),
      problems,
    ),
    done: query.done,
  });
}

function searchable(latest: ReadonlyMap<string, Delivery>): Searchable<Webhook> {
  return {
    path: PATH,
    noun: { one: 'webhook', many: 'webhooks' },
    hint: 'name, id, URL or event',
    texts: ({ id, metadata: { name, description, webhook_url, events, site_ids } }) => [
      name,
      id,
      description,
      webhook_url,
      ...events,
      ...site_ids,
    ],
    filters: [
      {
        name: 'last',
        label: 'Last try',
        unset: 'Any last try',
        choices: [...OUTCOME_CHOICES, { value: 'none', label: 'none yet' }],
        of: ({ id }) => {
          const last = latest.get(id);
          return last ? outcomeOf(last) : 'none';
        },
      },
    ],
    empty: html`<p>There is no webhook yet. Make one with the form below, or with the management API.</p>`,
  };
}

function rowOf({ id, metadata }: Webhook, last: Delivery | undefined): Content[] {
  return [
    html`<a class="name" href="${PATH}/${id}">${metadata.name}</a><span class="sub"><code>${id}</code></span>`,
    html`<span class="long">${address(metadata.webhook_url)}</span>`,
    metadata.events.length === EVENT_NAMES.length ? 'every event' : metadata.events.join(', '),
    last ? html`${outcomePill(last)}<span class="sub">${time(last.at)}</span>` : pill('none yet', 'calm'),
  ];
}

function webhookForm(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const fields = html`
    ${textField({ name: 'name', label: 'Name', value: sent.text('name'), required: true, maxLength: 200 })}
    ${textField({
      name: 'url',
      label: 'URL',
      type: 'url',
      value: sent.text('url'),
      required: true,
      hint: 'An https address; http is for this machine.',
    })}
    ${textField({ name: 'description', label: 'Description', value: sent.text('description'), maxLength: 2000 })}
    ${sitesField(sites, sent.texts('site'))}
    ${checkboxField({
      name: 'event',
      label: 'Events',
      values: sent.texts('event'),
      choices: EVENT_NAMES.map((name) => ({ value: name, label: name })),
    })}`;
  return form({
    id: 'new-webhook',
    title: 'New webhook',
    path: PATH,
    submit: 'Create webhook',
    problems,
    fields,
  });
}

const LABELS = {
  'metadata.name': 'Name',
  'metadata.description': 'Description',
  'metadata.webhook_url': 'URL',
  'metadata.events': 'Events',
  'metadata.site_ids': 'Sites',
};

/** A webhook's metadata out of the dashboard's form, under the management API's own rules. */
function readWebhookForm(form: FormBody, receivers: ReceiverRules): ReadForm<WebhookMetadata> {
  const metadata = {
    name: form.text('name').trim(),
    description: form.text('description').trim(),
    webhook_url: form.text('url').trim(),
    events: form.texts('event'),
    site_ids: form.texts('site'),
  };
  return checkedMetadata(webhookResource(receivers), metadata, LABELS);
}

interface WebhookView {
  /** Whether this is the one time that the secret is shown. */
  readonly showSecret: boolean;
  readonly query: PageQuery;
}

function webhookPage({ webhooks }: EmulatorContext, webhook: Webhook, view: WebhookView): string {
  const { id, metadata, secret, created, lastModified } = webhook;
  const found = search(webhooks.history(id), view.query, deliveriesOf(webhook));
  const history = table({
    caption: 'Tries, the latest first',
    columns: DELIVERY_COLUMNS,
    rows: found.items.map(deliveryRow),
    empty: found.none,
  });
  const once = html`<section class="card card-current" aria-labelledby="secret-title">
    <h2 id="secret-title">The webhook was created. This is its secret</h2>
    <p>Copy it now: it is shown this once. With it, your receiver checks the token of every call.</p>
    <p>${copyable('webhook-secret', 'secret of the webhook', secret)}</p>
  </section>`;
  return layout({
    title: metadata.name,
    above: { path: PATH, label: 'Webhooks' },
    section: PATH,
    content: html`
      ${view.showSecret && once}
      <section aria-labelledby="history-title"><h2 id="history-title">Deliveries</h2>${found.form}${live('history', html`${found.summary}${history}${found.links}`)}</section>
      <section class="card" aria-labelledby="settings-title"><h2 id="settings-title">Settings</h2>${facts([
        ['Id', html`<code>${id}</code>`],
        ['URL', address(metadata.webhook_url)],
        ['Description', metadata.description || html`<span class="muted">none</span>`],
        ['Events', html`<ul class="tags">${metadata.events.map((event) => html`<li>${event}</li>`)}</ul>`],
        ['Sites', html`<ul class="tags">${metadata.site_ids.map((site) => html`<li>${site}</li>`)}</ul>`],
        ['Created', time(created)],
        ['Last change', time(lastModified)],
        [
          'Secret',
          html`<span class="muted">Shown once, when it was created. For a new one, delete the webhook and make another.</span>`,
        ],
      ])}</section>
      <section class="card" aria-labelledby="delete-title"><h2 id="delete-title">Delete this webhook</h2>
        <p>What still waits to be delivered is dropped.</p>
        ${confirmedAction(`${PATH}/${id}/delete`, 'Delete', metadata.name, 'Its secret is gone with it. This can’t be undone.')}
      </section>`,
  });
}

function deliveriesOf({ id }: Webhook): Searchable<Delivery> {
  return {
    path: `${PATH}/${id}`,
    noun: { one: 'try', many: 'tries' },
    hint: 'event, id or answer',
    texts: ({ event, subjectId, answer }) => [
      event,
      subjectId,
      'status' in answer ? `Status ${answer.status}` : answer.failure,
    ],
    filters: [
      {
        name: 'outcome',
        label: 'Outcome',
        unset: 'Any outcome',
        choices: OUTCOME_CHOICES,
        of: outcomeOf,
      },
    ],
    empty: html`<p>Nothing has happened yet that this webhook asked for.</p>`,
  };
}

const DELIVERY_COLUMNS = ['Time', 'Event', 'Try', 'Outcome', 'Answer', 'Next try'];

/** A row of a table with `DELIVERY_COLUMNS`. */
function deliveryRow(delivery: Delivery): Content[] {
  const { at, event, subjectId, attempt, answer, ms, nextTryAt } = delivery;
  const took = `${Math.round(ms)} ms`;
  return [
    time(at),
    html`${event}<span class="sub"><code>${subjectId}</code></span>`,
    attempt === 0 ? 'not tried' : attempt,
    outcomePill(delivery),
    html`${'status' in answer ? `Status ${answer.status}` : answer.failure}${attempt > 0 && html`<span class="sub">after ${took}</span>`}`,
    time(nextTryAt),
  ];
}

/** What became of a notification at a try. */
type Outcome = 'delivered' | 'retried' | 'failed' | 'dropped';

const OUTCOMES: Words<Outcome> = {
  delivered: ['delivered', 'good'],
  retried: ['failed, to be retried', 'wait'],
  failed: ['failed', 'bad'],
  dropped: ['dropped', 'bad'],
};

function outcomeOf({ answer, attempt, nextTryAt }: Delivery): Outcome {
  if (isDelivered(answer)) return 'delivered';
  if (attempt === 0) return 'dropped';
  return nextTryAt ? 'retried' : 'failed';
}

function outcomePill(delivery: Delivery): Html {
  return pill(...OUTCOMES[outcomeOf(delivery)]);
}

const OUTCOME_CHOICES = choicesOf(OUTCOMES);
