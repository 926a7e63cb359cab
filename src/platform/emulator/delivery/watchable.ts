import type { LiveEvent } from '../live/live-event';
import { isOver, isViewable } from '../live/live-event';
import type { Channel } from '../resources/channels';
import { isPublished, type Media } from '../resources/media';
import type { EmulatorState } from '../state';

/** What viewers may watch under an id: an event that is on, or a media on demand. */
export type Watchable = Described &
  (
    | { readonly live: true; readonly event: LiveEvent; readonly channel: Channel }
    | { readonly live: false; readonly media: Media }
  );

interface Described {
  readonly id: string;
  readonly siteId: string;
  /** An event has those of its channel. */
  readonly metadata: Pick<Media['metadata'], 'title' | 'tags' | 'custom_params'>;
}

/** Undefined for what doesn't exist and for what viewers may not see alike, so that it stays hidden. */
export function watchableOf(state: EmulatorState, now: Date, id: string): Watchable | undefined {
  const event = state.events.find(id);
  const channel = state.channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    const { siteId, metadata } = channel;
    return isViewable(event.state) ? { live: true, event, channel, id, siteId, metadata } : undefined;
  }
  const media = publishedMedia(state, now, id);
  return media && onDemand(media);
}

export function onDemand(media: Media): Watchable {
  const { id, siteId, metadata } = media;
  return { live: false, media, id, siteId, metadata };
}

/** The media with this id when viewers may have it: what belongs to it is delivered only then. */
export function publishedMedia(state: EmulatorState, now: Date, id: string | undefined): Media | undefined {
  const media = state.media.find(id ?? '');
  return media && isPublished(media, now) ? media : undefined;
}
