import type { EmulatorContext } from '../context';
import { type Media, newMedia } from '../library/media';
import { takeRecording } from '../library/processing';
import { valuesAfter } from '../resources/body';
import { MEDIA } from '../resources/media-table';
import type { EmulatorState } from '../state';
import type { StoredFile } from '../uploads/upload';
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
  /** Its file, and the secret part of the file's address; undefined while there is none. */
  master: Master | undefined;
}

interface Master {
  readonly token: string;
  /** Undefined while it is fetched. */
  file: StoredFile | undefined;
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

/**
 * Makes the master of an event's recording available, at once or when its file has come. Answers false, and does nothing,
 * before the event is over.
 */
export function requestMaster(context: EmulatorContext, event: LiveEvent): boolean {
  if (!isOver(event.state)) return false;
  const { clock, recordings, state, newSecret } = context;
  const expires = new Date(clock.now().getTime() + MASTER_LIFETIME_MS);
  const makeAvailable = () => {
    event.masterExpires = expires;
    event.lastModified = clock.now();
  };
  if (event.master ? event.master.file : !recordings.areMade) makeAvailable();
  if (event.master || !recordings.areMade) return true;
  const master: Master = { token: newSecret(), file: undefined };
  event.master = master;
  const giveUp = () => {
    event.master = undefined;
  };
  recordings.want({
    eventId: event.id,
    piece: undefined,
    isWanted: () => state.events.find(event.id) === event && expires > clock.now(),
    take(file) {
      master.file = file;
      makeAvailable();
      dropMasterLater(context, event);
    },
    absent() {
      giveUp();
      makeAvailable();
    },
    problem: (_description, isFinal) => isFinal && giveUp(),
  });
  return true;
}

/** Keeps the file of a master as long as it can be had. */
function dropMasterLater(context: EmulatorContext, event: LiveEvent): void {
  const { clock } = context;
  const left = (event.masterExpires ?? clock.now()).getTime() - clock.now().getTime();
  if (left > 0) clock.after(left, () => dropMasterLater(context, event));
  else dropMaster(context, event);
}

/** Deletes the file of an event's master. */
export function dropMaster({ uploads }: Pick<EmulatorContext, 'uploads'>, event: LiveEvent): void {
  const file = event.master?.file;
  event.master = undefined;
  if (file) void uploads.remove(file);
}

/** The path at which who knows it gets the master of an event; undefined while there is none. */
export function masterPath({ master }: LiveEvent): string | undefined {
  return master?.file && `/live/masters/${master.token}.mp4`;
}

/** Makes a media of a piece of an event, or answers undefined when the piece goes beyond what is recorded. */
export function makeClip(
  context: EmulatorContext,
  channel: Channel,
  event: LiveEvent,
  piece: { readonly from: number; readonly to: number },
): Media | undefined {
  const { state, clock, newResourceId, notify, recordings } = context;
  const created = clock.now();
  if (piece.to > secondsStreamed(event, created)) return undefined;
  const clip = clipOf(event, channel, { id: newResourceId(), created, ...piece });
  const announce = () => {
    clip.status = 'ready';
    clip.errorMessage = null;
    clip.converted = true;
    clip.announced = true;
    notify(mediaNotification('media_available', clip));
    state.media.changed(clip);
  };
  if (!recordings.areMade) {
    state.media.add(clip);
    announce();
    return clip;
  }
  Object.assign(clip, { status: 'processing', converted: false, announced: false });
  state.media.add(clip);
  recordings.want({
    eventId: event.id,
    piece,
    // It may have been deleted, or given a file of its own.
    isWanted: () => state.media.find(clip.id) === clip && clip.status === 'processing' && !clip.file,
    take: (file) => takeRecording(context, clip, file),
    absent: announce,
    problem(description, isFinal) {
      clip.errorMessage = description;
      if (isFinal) clip.status = 'failed';
      state.media.changed(clip);
    },
  });
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
