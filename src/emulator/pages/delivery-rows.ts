import { type Content, type Html, html } from '../../http/html';
import type { Delivery } from '../webhooks/delivery-history';
import { isDelivered } from '../webhooks/retry-rules';
import { pill, type Tone, time } from './elements';
import type { Choice } from './form-elements';

export const DELIVERY_COLUMNS = ['Time', 'Event', 'Try', 'Outcome', 'Answer', 'Next try'];

/** A row of a table with `DELIVERY_COLUMNS`. */
export function deliveryRow(delivery: Delivery): Content[] {
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
export type Outcome = 'delivered' | 'retried' | 'failed' | 'dropped';

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
