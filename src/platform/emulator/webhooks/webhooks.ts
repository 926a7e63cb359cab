import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Clock } from '../clock';
import type { FaultSwitches } from '../control/faults';
import type { EmulatorDependencies } from '../dependencies';
import type { ItemStore } from '../listing/item-store';
import type { ItemOf, MetadataOf } from '../resources/resource';
import type { WEBHOOK } from '../resources/webhooks';
import { type Notification, type Notify, type SignedNotification, signNotification } from './notification';
import { type Answer, ReceiverCalls, type ReceiverRules } from './receiver';

export type WebhookMetadata = MetadataOf<typeof WEBHOOK>;

/** A change of its metadata applies from the next try on, also to waiting notifications. */
export type Webhook = ItemOf<typeof WEBHOOK>;

/** One try to deliver a notification, or the loss of one that found no room. */
export interface Delivery extends Pick<Notification, 'event' | 'subjectId'> {
  readonly webhookId: string;
  readonly url: string;
  /** 1 for the first try; 0 when it was dropped without one. */
  readonly attempt: number;
  readonly at: Date;
  readonly answer: Answer;
  readonly ms: number;
  /** Absent after the last try, whether it succeeded or not. */
  readonly nextTryAt: Date | undefined;
}

export const WEBHOOK_SETTINGS = {
  allowHttp: false,
  timeoutMs: 5_000,
  /** How long to wait after each failed try; one more try than delays. */
  retryDelaysMs: [1_000, 5_000, 30_000, 120_000] as readonly number[],
  /** Notifications that may wait for one webhook. */
  queueLimit: 10_000,
  /** Tries that are remembered, of all webhooks together. */
  historyLimit: 10_000,
};
export type WebhookSettings = Readonly<typeof WEBHOOK_SETTINGS>;

interface WebhookParts extends Pick<EmulatorDependencies, 'log' | 'now'> {
  readonly state: { readonly webhooks: ItemStore<Webhook> };
  readonly clock: Clock;
  readonly faults: Pick<FaultSwitches, 'take' | 'hold'>;
}

export class Webhooks {
  readonly rules: ReceiverRules;
  readonly #queues = new Map<string, DeliveryQueue>();
  #history: Delivery[] = [];
  readonly #tools: DeliveryTools;

  constructor(parts: WebhookParts, settings: WebhookSettings) {
    this.rules = settings;
    const record = (delivery: Delivery) => {
      this.#history.push(delivery);
      if (this.#history.length > settings.historyLimit) this.#history.shift();
    };
    this.#tools = { ...parts, ...settings, calls: new ReceiverCalls(settings), record };
    const { webhooks } = parts.state;
    // Notifications that wait are dropped with their webhook; the history of its tries stays.
    webhooks.watch((webhook) => {
      const { id } = webhook;
      const queue = this.#queues.get(id) ?? new DeliveryQueue(webhook, this.#tools);
      if (webhooks.find(id)) this.#queues.set(id, queue);
      else {
        queue.end();
        this.#queues.delete(id);
      }
    });
  }

  /** Notifies every webhook that asked for this. Returns at once and never throws. */
  readonly notify: Notify = (event, { id: subjectId, siteId }) => {
    for (const queue of this.#queues.values()) {
      const { events, site_ids } = queue.webhook.metadata;
      if (events.includes(event) && site_ids.includes(siteId)) queue.add({ event, siteId, subjectId });
    }
  };

  /** The latest tries, oldest first, of one webhook or of all. */
  history(webhookId?: string): readonly Delivery[] {
    return this.#history.filter((delivery) => webhookId === undefined || delivery.webhookId === webhookId);
  }

  /** Forgets everything, including deliveries under way. */
  reset(): void {
    for (const queue of this.#queues.values()) queue.end();
    this.#queues.clear();
    this.#history = [];
  }

  /** Ends every delivery; the process can exit. */
  stop(): void {
    for (const queue of this.#queues.values()) queue.end();
    this.#tools.calls.close();
  }
}

export function isDelivered(answer: Answer): boolean {
  return 'status' in answer && answer.status >= 200 && answer.status < 300;
}

/** Whether another try may end better: not after a redirect or a refusal. */
function isTransient(answer: Answer): boolean {
  return 'failure' in answer || answer.status === 408 || answer.status === 429 || answer.status >= 500;
}

interface DeliveryTools extends WebhookParts, WebhookSettings {
  readonly calls: ReceiverCalls;
  readonly record: (delivery: Delivery) => void;
}

interface Waiting {
  readonly notification: Notification;
  readonly at: Date;
}

/** Delivers the notifications of one webhook strictly one after another. */
class DeliveryQueue {
  readonly #waiting: Waiting[] = [];
  readonly #key: KeyObject;
  #running = false;
  #overflowing = false;
  #ended = false;
  /** Ends the call or the pause under way. */
  #interrupt: () => void = () => undefined;

  constructor(
    readonly webhook: Webhook,
    private readonly tools: DeliveryTools,
  ) {
    this.#key = createSecretKey(Buffer.from(webhook.secret));
  }

  /** Takes a notification; the newest is lost when too many wait, so that the others stay complete and in order. */
  add(notification: Notification): void {
    const at = this.tools.clock.now();
    if (this.#waiting.length >= this.tools.queueLimit) {
      this.#lose(notification, at);
      return;
    }
    this.#overflowing = false;
    this.#waiting.push({ notification, at });
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  end(): void {
    this.#ended = true;
    this.#waiting.length = 0;
    this.#interrupt();
  }

  async #run(): Promise<void> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      await this.#deliver(next);
      this.#waiting.shift();
    }
    this.#running = false;
  }

  async #deliver({ notification, at: happened }: Waiting): Promise<void> {
    const { clock, now, log, record, retryDelaysMs } = this.tools;
    const about = this.#about(notification);
    const to = { webhookId: this.webhook.id, key: this.#key };
    const signed = await signNotification(notification, to, happened);
    for (let attempt = 1; !this.#ended; attempt += 1) {
      const { webhook_url: url } = this.webhook.metadata;
      const [at, started] = [clock.now(), now()];
      const answer = await this.#attempt(url, signed);
      if (this.#ended) return;
      const delay = isTransient(answer) ? retryDelaysMs[attempt - 1] : undefined;
      const ms = Math.round((now() - started) * 100) / 100;
      const nextTryAt = delay === undefined ? undefined : new Date(clock.now().getTime() + delay);
      record({ ...about, url, attempt, at, answer, ms, nextTryAt });
      if (isDelivered(answer)) return;
      if (delay === undefined) return log.warn('webhook notification given up', { ...about, ...answer });
      await this.#pause(delay);
    }
  }

  /** One try, with the fault of a switch if there is one. */
  async #attempt(url: string, signed: SignedNotification): Promise<Answer> {
    const { faults, calls, timeoutMs } = this.tools;
    const fault = faults.take(`webhook:${this.webhook.id}`);
    if (fault?.kind === 'fail') return { status: fault.status };
    if (fault?.kind === 'reset') return { failure: 'connection_reset' };
    if (fault?.kind === 'delay') {
      const isOver = await new Promise<boolean>((resolve) => {
        this.#interrupt = faults.hold(Math.min(fault.ms, timeoutMs), resolve);
      });
      if (this.#ended || (isOver && fault.ms >= timeoutMs)) return { failure: 'timeout' };
    }
    const call = calls.post(url, signed);
    this.#interrupt = call.cut;
    return call.answer;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.tools.clock.after(ms, resolve);
      this.#interrupt = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #lose(notification: Notification, at: Date): void {
    const { webhook_url: url } = this.webhook.metadata;
    const lost = { url, attempt: 0, at, answer: { failure: 'queue_full' }, ms: 0, nextTryAt: undefined };
    this.tools.record({ ...this.#about(notification), ...lost });
    if (!this.#overflowing) this.tools.log.warn('webhook queue full', { webhookId: this.webhook.id });
    this.#overflowing = true;
  }

  #about({ event, subjectId }: Notification) {
    return { webhookId: this.webhook.id, event, subjectId };
  }
}
