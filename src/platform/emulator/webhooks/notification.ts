import type { KeyObject } from 'node:crypto';

/** Every kind of notification, by its name on the wire. */
export const EVENT_NAMES = [
  'channel_created',
  'channel_active',
  'channel_idle',
  'conversions_complete',
  'media_available',
  'media_created',
  'media_deleted',
  'media_reuploaded',
  'media_updated',
  'thumbnail_created',
  'thumbnail_deleted',
  'track_created',
  'track_deleted',
] as const;

export type WebhookEventName = (typeof EVENT_NAMES)[number];

/** Something that happened on the platform and that webhooks may have subscribed to. */
export interface Notification {
  readonly event: WebhookEventName;
  readonly siteId: string;
  readonly subject: { readonly channelId: string } | { readonly mediaId: string };
}

/** Returns at once and never throws: delivery goes on in the background. */
export type Notify = (notification: Notification) => void;

interface Owned {
  readonly id: string;
  readonly siteId: string;
}

export function channelNotification(
  event: 'channel_created' | 'channel_active' | 'channel_idle',
  { id, siteId }: Owned,
): Notification {
  return { event, siteId, subject: { channelId: id } };
}

/** What happened to a media, or to a thumbnail or text track of it. */
export function mediaNotification(
  event: Exclude<WebhookEventName, 'channel_created' | 'channel_active' | 'channel_idle'>,
  { id, siteId }: Owned,
): Notification {
  return { event, siteId, subject: { mediaId: id } };
}

export interface SignedNotification {
  readonly body: string;
  /** A JWT (HS256) whose payload is `body`, byte for byte. */
  readonly token: string;
}

/** Writes a notification for one webhook and signs it. The order of the keys is part of the wire shape. */
export async function signNotification(
  { event, siteId, subject }: Notification,
  to: { readonly webhookId: string; readonly key: KeyObject },
  happened: Date,
): Promise<SignedNotification> {
  // Loaded for the first one: most processes send none.
  const { default: jwt } = await import('jsonwebtoken');
  const body = JSON.stringify({
    event,
    ...('channelId' in subject ? { channel_id: subject.channelId } : { media_id: subject.mediaId }),
    webhook_id: to.webhookId,
    site_id: siteId,
    event_time: `${happened.toISOString().slice(0, 19)}+00:00`,
  });
  // A text is signed as it is: an object would be written again and given the claim `iat`.
  const token = jwt.sign(body, to.key, { algorithm: 'HS256', header: { alg: 'HS256', typ: 'JWT' } });
  return { body, token };
}
