import type { WebhookEventName } from './event-names-wire';
import type { Notification } from './notification';

export interface WebhookMetadata {
  readonly name: string;
  readonly description: string;
  /** As it was given. */
  readonly url: string;
  readonly events: readonly WebhookEventName[];
  readonly siteIds: readonly string[];
}

export interface Webhook {
  readonly id: string;
  readonly created: Date;
  readonly lastModified: Date;
  /** Its bytes as text are the key of the tokens. Shown once, when the webhook is created. */
  readonly secret: string;
  readonly metadata: WebhookMetadata;
}

/** Whether a webhook asked to be told of this. */
export function wants({ metadata }: Webhook, { event, siteId }: Notification): boolean {
  return metadata.events.includes(event) && metadata.siteIds.includes(siteId);
}
