import type { Notification } from '../webhooks/notification';

interface Owned {
  readonly id: string;
  readonly siteId: string;
}

export function channelCreated(channel: Owned): Notification {
  return { event: 'channel_created', siteId: channel.siteId, subject: { channelId: channel.id } };
}

export function channelActive(channel: Owned): Notification {
  return { event: 'channel_active', siteId: channel.siteId, subject: { channelId: channel.id } };
}

export function channelIdle(channel: Owned): Notification {
  return { event: 'channel_idle', siteId: channel.siteId, subject: { channelId: channel.id } };
}

export function mediaAvailable(media: Owned): Notification {
  return { event: 'media_available', siteId: media.siteId, subject: { mediaId: media.id } };
}
