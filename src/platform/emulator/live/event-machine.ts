/** Whether viewers get an event as soon as the encoder connects, or after a publish call. */
export type PublishingMode = 'auto' | 'manual';

/**
 * - `preview`: the encoder streams, viewers see nothing yet.
 * - `live`: viewers watch.
 * - `..._interrupted`: the encoder is gone and may come back within the reconnect window.
 * - `ended`: over, and a replay for viewers.
 * - `ended_unpublished`: over without ever having been published: a replay that viewers don't see.
 */
export type EventState =
  | 'preview'
  | 'preview_interrupted'
  | 'live'
  | 'live_interrupted'
  | 'ended'
  | 'ended_unpublished';

/** `stop` is whatever ends an event from the platform's side: disable, delete, the longest duration. */
export type EventInput = 'publish' | 'encoder_connected' | 'encoder_gone' | 'window_over' | 'stop';

export type EventRefusal =
  | 'event_published_by_channel'
  | 'event_already_published'
  | 'event_ended'
  | 'encoder_connected'
  | 'encoder_not_connected';

type Transition =
  | { readonly ok: true; readonly state: EventState }
  | { readonly ok: false; readonly refusal: EventRefusal };

/** The state in which an event begins: its encoder has just connected. */
export function firstState(mode: PublishingMode): EventState {
  return mode === 'auto' ? 'live' : 'preview';
}

const to = (state: EventState): Transition => ({ ok: true, state });
const refuse = (refusal: EventRefusal): Transition => ({ ok: false, refusal });

const OVER: Readonly<Record<EventInput, Transition>> = {
  publish: refuse('event_ended'),
  encoder_connected: refuse('event_ended'),
  encoder_gone: refuse('event_ended'),
  window_over: refuse('event_ended'),
  stop: refuse('event_ended'),
};

const TABLE: Readonly<Record<EventState, Readonly<Record<EventInput, Transition>>>> = {
  preview: {
    publish: to('live'),
    encoder_connected: refuse('encoder_connected'),
    encoder_gone: to('preview_interrupted'),
    window_over: refuse('encoder_connected'),
    stop: to('ended_unpublished'),
  },
  preview_interrupted: {
    publish: to('live_interrupted'),
    encoder_connected: to('preview'),
    encoder_gone: refuse('encoder_not_connected'),
    window_over: to('ended_unpublished'),
    stop: to('ended_unpublished'),
  },
  live: {
    publish: refuse('event_already_published'),
    encoder_connected: refuse('encoder_connected'),
    encoder_gone: to('live_interrupted'),
    window_over: refuse('encoder_connected'),
    stop: to('ended'),
  },
  live_interrupted: {
    publish: refuse('event_already_published'),
    encoder_connected: to('live'),
    encoder_gone: refuse('encoder_not_connected'),
    window_over: to('ended'),
    stop: to('ended'),
  },
  ended: OVER,
  ended_unpublished: OVER,
};

/** What an input does to an event: its next state, or why it is refused and nothing changes. */
export function nextState(mode: PublishingMode, state: EventState, input: EventInput): Transition {
  const transition = TABLE[state][input];
  // An event of an auto channel was never for anyone to publish, and its refusal says so.
  if (input === 'publish' && mode === 'auto' && !isOver(state)) return refuse('event_published_by_channel');
  return transition;
}

export function isOver(state: EventState): boolean {
  return state === 'ended' || state === 'ended_unpublished';
}

/** Whether viewers may watch: live, or as a replay. */
export function isViewable(state: EventState): boolean {
  return state === 'live' || state === 'live_interrupted' || state === 'ended';
}

/** What a refusal says to a person. */
export const EVENT_REFUSALS: Readonly<Record<EventRefusal, string>> = {
  event_published_by_channel:
    'This event belongs to an auto channel, which published it when the encoder connected: viewers watch it.',
  event_already_published: 'This event is published already: viewers watch it.',
  event_ended: 'This event has ended. The next one begins when an encoder connects; publish that one.',
  encoder_connected: 'An encoder streams this event. Wait until it has gone.',
  encoder_not_connected: 'No encoder streams this event. Wait until one connects.',
};
