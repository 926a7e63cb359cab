import type { LiveEvent } from '../live/live-event';
import { isOver, isViewable } from '../live/live-event';
import type { Channel } from '../resources/channels';
import { isPublished, type Media } from '../resources/media';
import type { EmulatorState } from '../state';

/** What viewers may watch under an id: an event that is on, or a media on demand. */
export type Watchable =
  | { readonly live: true; readonly event: LiveEvent; readonly channel: Channel }
  | { readonly live: false; readonly media: Media };

/** Undefined for what doesn't exist and for what viewers may not see alike, so that it stays hidden. */
export function watchableOf(state: EmulatorState, now: Date, id: string): Watchable | undefined {
  const event = state.events.find(id);
  const channel = state.channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    return isViewable(event.state) ? { live: true, event, channel } : undefined;
  }
  const media = publishedMedia(state, now, id);
  return media && { live: false, media };
}

/** The media with this id when viewers may have it: what belongs to it is delivered only then. */
export function publishedMedia(state: EmulatorState, now: Date, id: string | undefined): Media | undefined {
  const media = state.media.find(id ?? '');
  return media && isPublished(media, now) ? media : undefined;
}

export function siteOf(watchable: Watchable): string {
  return watchable.live ? watchable.event.siteId : watchable.media.siteId;
}

export function titleOf(watchable: Watchable): string {
  return (watchable.live ? watchable.channel : watchable.media).metadata.title;
}
