import { type Content, type Html, html } from '../../http/html';
import type { EmulatorContext } from '../context';
import { type Delivery, isDelivered } from '../webhooks/delivery-queue';
import type { Webhook } from '../webhooks/webhooks';
import { address, confirmedAction, copyable, facts, live, pill, type Tone, table, time } from './elements';
import type { Choice } from './forms';
import { layout } from './layout';
import { type PageQuery, type Searchable, search } from './search';

const PATH = '/dashboard/webhooks';

interface WebhookView {
  /** Whether this is the one time that the secret is shown. */
  readonly showSecret: boolean;
  readonly query: PageQuery;
}

export function webhookPage({ webhooks }: EmulatorContext, webhook: Webhook, view: WebhookView): string {
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
        ['URL', address(metadata.url)],
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

const OUTCOMES: Readonly<Record<Outcome, readonly [words: string, tone: Tone]>> = {
  delivered: ['delivered', 'good'],
  retried: ['failed, to be retried', 'wait'],
  failed: ['failed', 'bad'],
  dropped: ['dropped', 'bad'],
};

export function outcomeOf({ answer, attempt, nextTryAt }: Delivery): Outcome {
  if (isDelivered(answer)) return 'delivered';
  if (attempt === 0) return 'dropped';
  return nextTryAt ? 'retried' : 'failed';
}

export function outcomePill(delivery: Delivery): Html {
  return pill(...OUTCOMES[outcomeOf(delivery)]);
}

export const OUTCOME_CHOICES: Choice[] = Object.entries(OUTCOMES).map(([value, [label]]) => ({
  value,
  label,
}));
