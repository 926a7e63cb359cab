import type { WebhookEventName } from './event-names-wire';
import type { Answer } from './retry-rules';

/** One try to deliver a notification, or the loss of one that found no room. */
export interface Delivery {
  readonly webhookId: string;
  readonly event: WebhookEventName;
  /** The channel or media that the notification is about. */
  readonly subjectId: string;
  readonly url: string;
  /** 1 for the first try; 0 when it was dropped without one. */
  readonly attempt: number;
  readonly at: Date;
  readonly answer: Answer;
  /** How long the try took. */
  readonly ms: number;
  /** Absent after the last try, whether it succeeded or not. */
  readonly nextTryAt: Date | undefined;
}

/** The latest tries of all webhooks, oldest first. */
export class DeliveryHistory {
  readonly #limit: number;
  #deliveries: Delivery[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(delivery: Delivery): void {
    this.#deliveries.push(delivery);
    // Trimmed at twice the limit, so that a trim is rare and the cost of an entry stays flat.
    if (this.#deliveries.length >= 2 * this.#limit) this.#deliveries = this.#latest();
  }

  /** Of one webhook, or of all. */
  list(webhookId?: string): readonly Delivery[] {
    const latest = this.#latest();
    return webhookId === undefined ? latest : latest.filter((delivery) => delivery.webhookId === webhookId);
  }

  clear(): void {
    this.#deliveries = [];
  }

  #latest(): Delivery[] {
    return this.#deliveries.slice(-this.#limit);
  }
}
