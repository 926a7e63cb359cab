import type { EmulatorState } from '../state';
import type { Channel } from './channel';
import type { LiveEvent } from './live-event';

/** The path below which the preview of an event is served. It holds a token, so that viewers can't guess it. */
export function previewPath({ previewToken }: LiveEvent): string {
  return `/live/previews/${previewToken}.m3u8`;
}

/** Where the channel's current event can be watched before it is published; empty while nothing runs. */
export function previewUrls({ events }: EmulatorState, channel: Channel, origin: string): readonly string[] {
  const event = events.find(channel.currentEventId ?? '');
  return event ? [`${origin}${previewPath(event)}`] : [];
}
