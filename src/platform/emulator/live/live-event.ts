import type { EVENT } from '../resources/events';
import type { Stored } from '../resources/resource';
import type { StoredFile } from '../uploads/uploads';

/**
 * - `preview`: the encoder streams, viewers see nothing yet.
 * - `live`: viewers watch.
 * - `..._interrupted`: the encoder is gone and may come back within the reconnect window.
 * - `ended`: over, and a replay for viewers.
 * - `ended_unpublished`: over and never published: a replay that viewers don't see.
 */
export type EventState =
  | 'preview'
  | 'preview_interrupted'
  | 'live'
  | 'live_interrupted'
  | 'ended'
  | 'ended_unpublished';

/** `stop` is an end by the platform: disable, delete, the longest duration, a reconnect window that is over. */
export type EventInput = 'publish' | 'encoder_connected' | 'encoder_gone' | 'stop';

export type EventRefusal = keyof typeof EVENT_REFUSALS;

/** One broadcast of a channel. Its id is also the id of the media that it becomes. */
export interface LiveEvent extends Stored<typeof EVENT> {
  /** The packager watches with it over RTMP: unlike the stream key, it allows nothing else. */
  readonly pullToken: string;
}

export type Master = NonNullable<LiveEvent['master']>;

/** The path below which the preview of an event is served. It has a token, so that viewers can't guess it. */
export function previewPath({ previewToken }: LiveEvent): string {
  return `/live/previews/${previewToken}.m3u8`;
}

export function masterPath({ master }: LiveEvent): string | undefined {
  return master?.file && `/live/masters/${master.token}.mp4`;
}

/** How long an event has been recorded so far, in seconds: until its encoder was gone. */
export function secondsStreamed(event: LiveEvent, now: Date): number {
  return ((event.encoderGoneAt ?? now).getTime() - event.created.getTime() - event.awayMs) / 1000;
}

export function statusOf({ state }: LiveEvent): 'active' | 'idle' {
  return isOver(state) ? 'idle' : 'active';
}

export function dropMaster(
  { uploads }: { readonly uploads: { readonly files: { remove(file: StoredFile): Promise<void> } } },
  event: LiveEvent,
): void {
  const file = event.master?.file;
  event.master = undefined;
  if (file) void uploads.files.remove(file);
}

const NEXT: Readonly<Record<EventState, Partial<Readonly<Record<EventInput, EventState>>>>> = {
  preview: { publish: 'live', encoder_gone: 'preview_interrupted', stop: 'ended_unpublished' },
  preview_interrupted: {
    publish: 'live_interrupted',
    encoder_connected: 'preview',
    stop: 'ended_unpublished',
  },
  live: { encoder_gone: 'live_interrupted', stop: 'ended' },
  live_interrupted: { encoder_connected: 'live', stop: 'ended' },
  ended: {},
  ended_unpublished: {},
};

export const EVENT_STATES = Object.keys(NEXT) as [EventState, ...EventState[]];

/** The next state after an input; undefined when it is refused and nothing changes. */
export function nextState(state: EventState, input: EventInput): EventState | undefined {
  return NEXT[state][input];
}

export function whyNotPublished({ mode, state }: Pick<LiveEvent, 'mode' | 'state'>): EventRefusal {
  if (isOver(state)) return 'event_ended';
  return mode === 'auto' ? 'event_published_by_channel' : 'event_already_published';
}

export function isOver(state: EventState): boolean {
  return state === 'ended' || state === 'ended_unpublished';
}

export function isViewable(state: EventState): boolean {
  return state === 'live' || state === 'live_interrupted' || state === 'ended';
}

export const EVENT_REFUSALS = {
  event_published_by_channel:
    'This event belongs to an auto channel, which published it when the encoder connected: viewers watch it.',
  event_already_published: 'This event is published already: viewers watch it.',
  event_ended: 'This event has ended. The next one begins when an encoder connects; publish that one.',
} as const;
