import type { Media } from '../library/media';
import type { Channel } from '../live/channel';
import { isOver, isViewable } from '../live/event-machine';
import type { LiveEvent } from '../live/live-event';
import type { EmulatorState } from '../state';

/** What viewers may watch under an id: an event that is on, or a video on demand. */
export type Watchable =
  | { readonly live: true; readonly event: LiveEvent; readonly channel: Channel }
  | { readonly live: false; readonly media: Media };

/** Undefined for what doesn't exist and for what viewers may not see alike, so that nobody learns of it from outside. */
export function watchableOf({ events, channels, media }: EmulatorState, id: string): Watchable | undefined {
  const event = events.find(id);
  const channel = channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    return isViewable(event.state) ? { live: true, event, channel } : undefined;
  }
  const found = media.find(id);
  return found?.published ? { live: false, media: found } : undefined;
}

/** The event that viewers of a channel see now. */
export function eventOnAir({ events }: EmulatorState, channel: Channel): LiveEvent | undefined {
  const event = events.find(channel.currentEventId ?? '');
  return event && isViewable(event.state) ? event : undefined;
}
