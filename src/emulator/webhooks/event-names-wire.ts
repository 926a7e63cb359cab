/** Every kind of notification, by its name on the wire. */
export const WEBHOOK_EVENTS = {
  channelCreated: 'channel_created',
  channelActive: 'channel_active',
  channelIdle: 'channel_idle',
  conversionsComplete: 'conversions_complete',
  mediaAvailable: 'media_available',
  mediaCreated: 'media_created',
  mediaDeleted: 'media_deleted',
  mediaReuploaded: 'media_reuploaded',
  mediaUpdated: 'media_updated',
  thumbnailCreated: 'thumbnail_created',
  thumbnailDeleted: 'thumbnail_deleted',
  trackCreated: 'track_created',
  trackDeleted: 'track_deleted',
} as const;

export type WebhookEventName = (typeof WEBHOOK_EVENTS)[keyof typeof WEBHOOK_EVENTS];
