import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Log } from '../../../http/log';
import type { Clock } from '../clock';
import type { Faults } from '../control/faults';
import {
  type Notification,
  type SignedNotification,
  signNotification,
  type WebhookEventName,
} from './notification';
import type { ReceiverCalls } from './receiver-call';
import type { Webhook } from './webhooks';

/** How a try to deliver ended: the receiver's status, or what kept it from answering. */
export type Answer = { readonly status: number } | { readonly failure: string };

/** How long to wait after the first, second, third and fourth failed try; the fifth is the last. */
export const RETRY_DELAYS_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000];

export function isDelivered(answer: Answer): boolean {
  return 'status' in answer && answer.status >= 200 && answer.status < 300;
}

/** Whether another try may end better: not after a redirect or a refusal. */
function isTransient(answer: Answer): boolean {
  return 'failure' in answer || answer.status === 408 || answer.status === 429 || answer.status >= 500;
}

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

/** What the queues of all webhooks share. */
export interface DeliveryTools {
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly log: Log;
  readonly faults: Faults;
  readonly calls: ReceiverCalls;
  readonly record: (delivery: Delivery) => void;
  readonly retryDelaysMs: readonly number[];
  readonly timeoutMs: number;
  /** How many notifications may wait. */
  readonly queueLimit: number;
}

interface Waiting {
  readonly notification: Notification;
  readonly at: Date;
}

/** Delivers the notifications of one webhook strictly one after another. */
export class DeliveryQueue {
  readonly #webhook: Webhook;
  readonly #tools: DeliveryTools;
  readonly #waiting: Waiting[] = [];
  readonly #key: KeyObject;
  #running = false;
  #overflowing = false;
  #ended = false;
  /** Ends the call or the pause under way. */
  #interrupt: () => void = () => undefined;

  constructor(webhook: Webhook, tools: DeliveryTools) {
    this.#webhook = webhook;
    this.#tools = tools;
    this.#key = createSecretKey(Buffer.from(webhook.secret));
  }

  /** Takes a notification; the newest is lost when too many wait, so that what was taken stays whole and in order. */
  add(notification: Notification): void {
    if (this.#ended) return;
    const at = this.#tools.clock.now();
    if (this.#waiting.length >= this.#tools.queueLimit) {
      this.#lose(notification, at);
      return;
    }
    this.#overflowing = false;
    this.#waiting.push({ notification, at });
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  /** Drops what waits and ends what is under way. */
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
    const { clock, now, log, record, retryDelaysMs } = this.#tools;
    const about = this.#about(notification);
    const to = { webhookId: this.#webhook.id, key: this.#key };
    const signed = await signNotification(notification, to, happened);
    if (this.#ended) return;
    for (let attempt = 1; ; attempt += 1) {
      const { webhook_url: url } = this.#webhook.metadata;
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
      if (this.#ended) return;
    }
  }

  /** One try, with what a fault switch makes of it. */
  async #attempt(url: string, signed: SignedNotification): Promise<Answer> {
    const { faults, calls, timeoutMs } = this.#tools;
    const fault = faults.take(`webhook:${this.#webhook.id}`);
    if (fault?.kind === 'fail') return { status: fault.status };
    if (fault?.kind === 'reset') return { failure: 'connection_reset' };
    if (fault?.kind === 'delay') {
      await this.#pause(Math.min(fault.ms, timeoutMs));
      if (this.#ended || fault.ms >= timeoutMs) return { failure: 'timeout' };
    }
    const call = calls.post(url, signed);
    this.#interrupt = call.cut;
    return call.answer;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#tools.clock.after(ms, resolve);
      this.#interrupt = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #lose(notification: Notification, at: Date): void {
    const { webhook_url: url } = this.#webhook.metadata;
    const lost = { url, attempt: 0, at, answer: { failure: 'queue_full' }, ms: 0, nextTryAt: undefined };
    this.#tools.record({ ...this.#about(notification), ...lost });
    if (!this.#overflowing) this.#tools.log.warn('webhook queue full', { webhookId: this.#webhook.id });
    this.#overflowing = true;
  }

  #about({ event, subject }: Notification) {
    const subjectId = 'channelId' in subject ? subject.channelId : subject.mediaId;
    return { webhookId: this.#webhook.id, event, subjectId };
  }
}
