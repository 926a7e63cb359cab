import { html } from '../../kernel/html';
import type { EmulatorContext } from '../context';
import type { Webhook } from '../webhooks/webhook';
import { DELIVERY_COLUMNS, deliveryRow } from './delivery-rows';
import { confirmedAction, copyable, facts, live, table, time } from './elements';
import { layout } from './layout';
import { pageOf } from './pager';

const PATH = '/dashboard/webhooks';

export interface WebhookView {
  /** Whether this is the one time that the secret is shown. */
  readonly showSecret: boolean;
  readonly page: unknown;
}

export function webhookPage({ webhooks }: EmulatorContext, webhook: Webhook, view: WebhookView): string {
  const { id, metadata, secret, created, lastModified } = webhook;
  const { items, links } = pageOf(webhooks.history(id), view.page, `${PATH}/${id}`);
  const history = table({
    caption: 'Tries, the latest first',
    columns: DELIVERY_COLUMNS,
    rows: items.map(deliveryRow),
    empty: html`<p>Nothing has happened yet that this webhook asked for.</p>`,
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
      <section aria-labelledby="history-title"><h2 id="history-title">Deliveries</h2>${live('history', html`${history}${links}`)}</section>
      <section class="card" aria-labelledby="settings-title"><h2 id="settings-title">Settings</h2>${facts([
        ['Id', html`<code>${id}</code>`],
        ['URL', html`<code>${metadata.url}</code>`],
        ['Description', metadata.description || html`<span class="muted">none</span>`],
        ['Events', html`<ul class="tags">${metadata.events.map((event) => html`<li>${event}</li>`)}</ul>`],
        ['Sites', html`<ul class="tags">${metadata.siteIds.map((site) => html`<li>${site}</li>`)}</ul>`],
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
