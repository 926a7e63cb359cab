/** How a try to deliver ended: the receiver's status, or what kept it from answering. */
export type Answer = { readonly status: number } | { readonly failure: string };

/** How long to wait after the first, second, third and fourth failed try; the fifth is the last. */
export const RETRY_DELAYS_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000];

export function isDelivered(answer: Answer): boolean {
  return 'status' in answer && answer.status >= 200 && answer.status < 300;
}

/** Whether another try may end better: not after a redirect or a refusal. */
export function isTransient(answer: Answer): boolean {
  return 'failure' in answer || answer.status === 408 || answer.status === 429 || answer.status >= 500;
}
