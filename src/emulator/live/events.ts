import type { EmulatorContext } from '../context';
import { type Media, newMedia } from '../library/media';
import { valuesAfter } from '../resources/body';
import { MEDIA } from '../resources/media-table';
import type { EmulatorState } from '../state';
import { mediaNotification } from '../webhooks/notification';
import { type Channel, keyFileOfChannel } from './channels';
import { type EventState, isOver, isViewable, type PublishingMode } from './event-machine';

/** One broadcast of a channel. Its id is also the id of the media that it becomes. */
export interface LiveEvent {
  readonly id: string;
  readonly channelId: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  /** What describes an event is its channel's. */
  readonly metadata: Readonly<Record<never, never>>;
  /** The channel's publishing mode when the event began. */
  readonly mode: PublishingMode;
  state: EventState;
  /** Unguessable part of the preview's address: who holds it may watch before the event is published. */
  readonly previewToken: string;
  /** What the packager watches with over RTMP: it can do nothing else, unlike the stream key. */
  readonly pullToken: string;
  publishedAt: Date | undefined;
  /** When the encoder was last seen to go; undefined while it streams. */
  encoderGoneAt: Date | undefined;
  endedAt: Date | undefined;
  /** Until when the recording's master can be had; undefined before it is requested. */
  masterExpires: Date | undefined;
}

/** The path below which the preview of an event is served. It holds a token, so that viewers can't guess it. */
export function previewPath({ previewToken }: LiveEvent): string {
  return `/live/previews/${previewToken}.m3u8`;
}

/** Where the channel's current event can be watched before it is published; empty while nothing runs. */
export function previewUrls({ events }: EmulatorState, channel: Channel, origin: string): readonly string[] {
  const event = events.find(channel.currentEventId ?? '');
  return event ? [`${origin}${previewPath(event)}`] : [];
}

/** How long a recording's master can be had after it was requested. */
const MASTER_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Makes the master of an event's recording available. Answers false, and does nothing, before the event is over. */
export function requestMaster({ clock }: EmulatorContext, event: LiveEvent): boolean {
  if (!isOver(event.state)) return false;
  const now = clock.now();
  event.masterExpires = new Date(now.getTime() + MASTER_LIFETIME_MS);
  event.lastModified = now;
  return true;
}

/** Makes a media of a piece of an event, or answers undefined when the piece goes beyond what is recorded. */
export function makeClip(
  { state, clock, newResourceId, notify }: EmulatorContext,
  channel: Channel,
  event: LiveEvent,
  piece: { readonly from: number; readonly to: number },
): Media | undefined {
  const created = clock.now();
  if (piece.to > secondsStreamed(event, created)) return undefined;
  const clip = clipOf(event, channel, { id: newResourceId(), created, ...piece });
  state.media.add(clip);
  notify(mediaNotification('media_available', clip));
  return clip;
}

/** The media that an event becomes when it is over, under the event's own id. */
export function replayOf(event: LiveEvent, channel: Channel): Media {
  const ended = event.endedAt ?? event.created;
  return recorded(event, channel, {
    id: event.id,
    created: ended,
    duration: secondsStreamed(event, ended),
    hidden: !isViewable(event.state),
    clip: undefined,
  });
}

/** A piece of an event, as a media of its own. `from` and `to` are seconds into the event. */
function clipOf(
  event: LiveEvent,
  channel: Channel,
  { id, created, from, to }: { id: string; created: Date; from: number; to: number },
): Media {
  const duration = Math.round((to - from) * 1000) / 1000;
  return recorded(event, channel, { id, created, duration, hidden: false, clip: { from, to } });
}

function recorded(
  { id: eventId, siteId }: LiveEvent,
  channel: Channel,
  own: Pick<Media, 'id' | 'created' | 'duration' | 'hidden' | 'clip'>,
): Media {
  const { title, tags, custom_params } = channel.metadata;
  return newMedia({
    ...own,
    siteId,
    eventId,
    keyFile: keyFileOfChannel(channel),
    status: 'ready',
    mimeType: 'video/mp4',
    converted: true,
    announced: true,
    metadata: valuesAfter(MEDIA.metadata, { title, tags, custom_params }),
  });
}

/** As the management API shows it. */
export function statusOf({ state }: LiveEvent): 'active' | 'idle' {
  return isOver(state) ? 'idle' : 'active';
}

/** How long an event has been recorded so far, in seconds: up to when its encoder went. */
export function secondsStreamed(event: LiveEvent, now: Date): number {
  return ((event.encoderGoneAt ?? now).getTime() - event.created.getTime()) / 1000;
}
