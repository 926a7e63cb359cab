import type { WebhookEventName } from './event-names-wire';

/** Something that happened on the platform and that webhooks may have subscribed to. */
export interface Notification {
  readonly event: WebhookEventName;
  readonly siteId: string;
  readonly subject: { readonly channelId: string } | { readonly mediaId: string };
}

/** Returns at once and never throws: delivery goes on beside the API. */
export type Notify = (notification: Notification) => void;
