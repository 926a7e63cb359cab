import type { KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { Notification } from './notification';

export interface SignedNotification {
  readonly body: string;
  /** A JWT (HS256) whose payload is `body`, byte for byte. */
  readonly token: string;
}

/** Writes a notification for one webhook and signs it. The order of the keys is part of the wire shape. */
export function signNotification(
  { event, siteId, subject }: Notification,
  to: { readonly webhookId: string; readonly key: KeyObject },
  happened: Date,
): SignedNotification {
  const body = JSON.stringify({
    event,
    ...('channelId' in subject ? { channel_id: subject.channelId } : { media_id: subject.mediaId }),
    webhook_id: to.webhookId,
    site_id: siteId,
    event_time: `${happened.toISOString().slice(0, 19)}+00:00`,
  });
  // A text is signed as it is: an object would be written anew and given the claim `iat`.
  const token = jwt.sign(body, to.key, { algorithm: 'HS256', header: { alg: 'HS256', typ: 'JWT' } });
  return { body, token };
}
