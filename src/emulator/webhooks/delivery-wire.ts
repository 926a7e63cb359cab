import type { Delivery } from './delivery-history';

/** A try as the control port shows it. `status` is the receiver's; `failure` is why there is none. */
export function renderDelivery({
  webhookId,
  event,
  subjectId,
  url,
  attempt,
  at,
  answer,
  ms,
  nextTryAt,
}: Delivery) {
  return {
    webhook_id: webhookId,
    event,
    subject_id: subjectId,
    url,
    attempt,
    at: at.toISOString(),
    status: 'status' in answer ? answer.status : null,
    failure: 'failure' in answer ? answer.failure : null,
    ms,
    next_try_at: nextTryAt?.toISOString() ?? null,
  };
}
