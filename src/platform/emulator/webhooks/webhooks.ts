import type { Log } from '../../../http/log';
import type { Clock } from '../clock';
import type { Faults } from '../control/faults';
import type { MetadataOf } from '../resources/resource';
import type { WEBHOOK } from '../resources/webhook-table';
import { type Delivery, DeliveryQueue, type DeliveryTools, RETRY_DELAYS_MS } from './delivery-queue';
import type { Notification } from './notification';
import type { ReceiverRules } from './receiver-address';
import { ReceiverCalls } from './receiver-call';

export type WebhookMetadata = MetadataOf<typeof WEBHOOK>;

export interface Webhook {
  readonly id: string;
  readonly created: Date;
  lastModified: Date;
  /** Its bytes as text are the key of the tokens. Shown once, when the webhook is created. */
  readonly secret: string;
  /** From the next try on, what waits goes where it then points. */
  metadata: WebhookMetadata;
}

/** Whether a webhook asked to be told of this. */
function wants({ metadata }: Webhook, { event, siteId }: Notification): boolean {
  return metadata.events.includes(event) && metadata.site_ids.includes(siteId);
}

export interface WebhookSettings extends ReceiverRules {
  readonly timeoutMs: number;
  /** How long to wait after each failed try; one more try than delays. */
  readonly retryDelaysMs: readonly number[];
  /** Notifications that may wait for one webhook. */
  readonly queueLimit: number;
  /** Tries that are remembered, of all webhooks together. */
  readonly historyLimit: number;
}

export const WEBHOOK_SETTINGS: WebhookSettings = {
  allowHttp: false,
  timeoutMs: 5_000,
  retryDelaysMs: RETRY_DELAYS_MS,
  queueLimit: 10_000,
  historyLimit: 10_000,
};

interface WebhookSurroundings {
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Log;
  readonly faults: Faults;
  /** A new id of 8 letters and digits. */
  readonly newResourceId: () => string;
  /** A new secret of 32 bytes or more. */
  readonly newSecret: () => string;
}

interface Entry {
  readonly webhook: Webhook;
  readonly queue: DeliveryQueue;
}

/** The webhooks of the account, and the delivery of notifications to them. */
export class Webhooks {
  /** What the address of a receiver must be like. */
  readonly rules: ReceiverRules;
  readonly #surroundings: WebhookSurroundings;
  readonly #entries = new Map<string, Entry>();
  /** The latest tries of all webhooks, oldest first. */
  #history: Delivery[] = [];
  readonly #calls: ReceiverCalls;
  readonly #tools: DeliveryTools;

  constructor(surroundings: WebhookSurroundings, settings: WebhookSettings) {
    this.#surroundings = surroundings;
    this.rules = settings;
    this.#calls = new ReceiverCalls(settings);
    const record = (delivery: Delivery) => {
      this.#history.push(delivery);
      if (this.#history.length > settings.historyLimit) this.#history.shift();
    };
    this.#tools = { ...surroundings, ...settings, calls: this.#calls, record };
  }

  create(metadata: WebhookMetadata): Webhook {
    const { clock, newResourceId, newSecret } = this.#surroundings;
    const created = clock.now();
    const webhook = { id: newResourceId(), created, lastModified: created, secret: newSecret(), metadata };
    this.#entries.set(webhook.id, { webhook, queue: new DeliveryQueue(webhook, this.#tools) });
    return webhook;
  }

  find(id: string): Webhook | undefined {
    return this.#entries.get(id)?.webhook;
  }

  /** In the order of creation. */
  list(): Webhook[] {
    return [...this.#entries.values()].map(({ webhook }) => webhook);
  }

  update(webhook: Webhook, metadata: WebhookMetadata): void {
    webhook.metadata = metadata;
    webhook.lastModified = this.#surroundings.clock.now();
  }

  /** What waits for it is dropped; the history of its tries stays. */
  remove(id: string): void {
    this.#entries.get(id)?.queue.end();
    this.#entries.delete(id);
  }

  /** Tells every webhook that wants to know. Returns at once and never throws. */
  readonly notify = (notification: Notification): void => {
    for (const { webhook, queue } of this.#entries.values()) {
      if (wants(webhook, notification)) queue.add(notification);
    }
  };

  /** The latest tries, oldest first, of one webhook or of all. */
  history(webhookId?: string): readonly Delivery[] {
    return this.#history.filter((delivery) => webhookId === undefined || delivery.webhookId === webhookId);
  }

  /** Forgets everything, what is under way as well. */
  reset(): void {
    for (const { queue } of this.#entries.values()) queue.end();
    this.#entries.clear();
    this.#history = [];
  }

  /** Ends every delivery; the process can exit. */
  stop(): void {
    for (const { queue } of this.#entries.values()) queue.end();
    this.#calls.close();
  }
}
