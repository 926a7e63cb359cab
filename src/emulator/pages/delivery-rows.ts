import { type Content, type Html, html } from '../../kernel/html';
import type { Delivery } from '../webhooks/delivery-history';
import { isDelivered } from '../webhooks/retry-rules';
import { pill, time } from './elements';

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

/** What became of a notification at this try. */
export function outcomePill({ answer, attempt, nextTryAt }: Delivery): Html {
  if (isDelivered(answer)) return pill('delivered', 'good');
  if (attempt === 0) return pill('dropped', 'bad');
  return nextTryAt ? pill('failed, to be retried', 'wait') : pill('failed', 'bad');
}
