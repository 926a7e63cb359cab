import { type Content, type Html, html } from '../../http/html';
import type { EmulatorContext } from '../context';
import type { Delivery } from '../webhooks/delivery-history';
import type { Webhook } from '../webhooks/webhook';
import { OUTCOME_CHOICES, outcomeOf, outcomePill } from './delivery-rows';
import { address, live, pill, table, time } from './elements';
import type { FormBody } from './form-body';
import { checkboxField, form, linkToForm, listAndForm, sitesField, textField } from './form-elements';
import { layout } from './layout';
import { type PageQuery, type Searchable, search } from './search';
import { EVENT_NAMES } from './webhook-form-wire';

const PATH = '/dashboard/webhooks';

export interface WebhooksView {
  readonly query: PageQuery;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

export function webhooksPage(
  { webhooks, seeds }: EmulatorContext,
  { query, sent, problems }: WebhooksView,
): string {
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
    texts: ({ id, metadata: { name, description, url, events, siteIds } }) => [
      name,
      id,
      description,
      url,
      ...events,
      ...siteIds,
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
    html`<span class="long">${address(metadata.url)}</span>`,
    metadata.events.length === EVENT_NAMES.length ? 'every event' : metadata.events.join(', '),
    last ? html`${outcomePill(last)}<span class="sub">${time(last.at)}</span>` : pill('none yet', 'calm'),
  ];
}

function webhookForm(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const fields = html`
    ${textField({ name: 'name', label: 'Name', value: sent.text('name'), required: true, most: 200 })}
    ${textField({
      name: 'url',
      label: 'URL',
      type: 'url',
      value: sent.text('url'),
      required: true,
      hint: 'An https address; http is for this machine.',
    })}
    ${textField({ name: 'description', label: 'Description', value: sent.text('description'), most: 2000 })}
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
