import type { KeyObject } from 'node:crypto';

/** Every kind of notification, by its name on the wire, with when it is sent. */
export const EVENTS = {
  channel_created: 'A channel was created.',
  channel_active: 'An event of a channel began.',
  channel_idle: 'An event of a channel ended.',
  conversions_complete: 'The renditions of a media are all made, for the first time.',
  media_available: 'Viewers can watch a media: its content is ready, and its publish start date is reached.',
  media_created: 'A media was created.',
  media_deleted: 'A media was deleted.',
  media_reuploaded: 'The content of a media is being replaced.',
  media_updated: 'The metadata of a media were changed.',
  thumbnail_created: 'A media has a new thumbnail.',
  thumbnail_deleted: 'A thumbnail of a media was deleted.',
  track_created: 'A media has a new text track.',
  track_deleted: 'A text track of a media was deleted.',
} as const;

export type WebhookEventName = keyof typeof EVENTS;

export const EVENT_NAMES = Object.keys(EVENTS) as WebhookEventName[];

export interface Notification {
  readonly event: WebhookEventName;
  readonly siteId: string;
  /** The channel or media that it is about; the media of a thumbnail or text track. */
  readonly subjectId: string;
}

/** Returns at once and never throws: delivery goes on in the background. */
export type Notify = (
  event: WebhookEventName,
  subject: { readonly id: string; readonly siteId: string },
) => void;

export interface SignedNotification {
  readonly body: string;
  /** A JWT (HS256) whose payload is `body`, byte for byte. */
  readonly token: string;
}

/** Writes a notification for one webhook and signs it. The order of the keys is part of the wire shape. */
export async function signNotification(
  { event, siteId, subjectId }: Notification,
  to: { readonly webhookId: string; readonly key: KeyObject },
  happened: Date,
): Promise<SignedNotification> {
  // Loaded for the first one: most processes send none.
  const { default: jwt } = await import('jsonwebtoken');
  const body = JSON.stringify({
    event,
    [event.startsWith('channel_') ? 'channel_id' : 'media_id']: subjectId,
    webhook_id: to.webhookId,
    site_id: siteId,
    event_time: `${happened.toISOString().slice(0, 19)}+00:00`,
  });
  // A text is signed as it is: an object would be written again and given the claim `iat`.
  const token = jwt.sign(body, to.key, { algorithm: 'HS256', header: { alg: 'HS256', typ: 'JWT' } });
  return { body, token };
}
