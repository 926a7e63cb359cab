import type { Media } from '../library/media';
import type { Channel } from './channel';
import { isViewable } from './event-machine';
import type { LiveEvent } from './live-event';

/** The media that an event becomes when it is over, under the event's own id. */
export function replayOf(event: LiveEvent, channel: Channel): Media {
  const ended = event.endedAt ?? event.created;
  return {
    ...describedBy(channel),
    id: event.id,
    siteId: event.siteId,
    created: ended,
    duration: secondsStreamed(event, ended),
    published: isViewable(event.state),
    eventId: event.id,
    clip: undefined,
  };
}

/** A piece of an event, as a media of its own. `from` and `to` are seconds into the event. */
export function clipOf(
  event: LiveEvent,
  channel: Channel,
  piece: { id: string; created: Date; from: number; to: number },
): Media {
  const { id, created, from, to } = piece;
  return {
    ...describedBy(channel),
    id,
    siteId: event.siteId,
    created,
    duration: Math.round((to - from) * 1000) / 1000,
    published: true,
    eventId: event.id,
    clip: { from, to },
  };
}

/** How long an event has been recorded so far, in seconds: up to when its encoder went. */
export function secondsStreamed(event: LiveEvent, now: Date): number {
  return ((event.encoderGoneAt ?? now).getTime() - event.created.getTime()) / 1000;
}

function describedBy({ metadata: { title, tags, customParams } }: Channel) {
  return { title, tags, customParams };
}
