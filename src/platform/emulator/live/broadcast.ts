import type { Clock, Timer } from '../clock';
import { type Channel, channelOfKey } from '../resources/channels';
import { EVENT, type Published, replayOf } from '../resources/events';
import { newItem } from '../resources/resource';
import type { EmulatorState } from '../state';
import type { Notify } from '../webhooks/notification';
import { type EventInput, type LiveEvent, nextState, whyNotPublished } from './live-event';

/** One connection of an encoder to a channel. A reconnect is a new session of the same event. */
export interface EncoderSession {
  readonly id: string;
  readonly channelId: string;
  readonly eventId: string;
  /** Its holder may watch this encoder's stream. */
  readonly pullToken: string;
}

export type ConnectRefusal = 'unknown_stream_key' | 'channel_disabled' | 'already_streaming';

export const CONNECT_REFUSALS: Readonly<Record<ConnectRefusal, string>> = {
  unknown_stream_key: 'No channel has this stream key.',
  channel_disabled: 'The channel is disabled. Enable it, then connect.',
  already_streaming: 'Another encoder streams to this channel. Connect after it has disconnected.',
};

type Connected =
  | { readonly ok: true; readonly session: EncoderSession }
  | { readonly ok: false; readonly reason: ConnectRefusal };

export type Broadcast = ReturnType<typeof createBroadcast>;

/** Live events last up to twelve hours. */
const MAX_EVENT_MS = 12 * 60 * 60 * 1000;

interface OnAir {
  readonly channel: Channel;
  readonly event: LiveEvent;
  readonly timeLimit: Timer;
  window: Timer | undefined;
  encoder: Encoder | undefined;
}

interface Encoder {
  readonly session: EncoderSession;
  readonly since: Date;
  readonly drop: ((why: string) => void) | undefined;
}

export interface SimulatedEncoder extends Omit<EncoderSession, 'pullToken'> {
  readonly since: Date;
}

interface BroadcastParts {
  readonly state: EmulatorState;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly newResourceId: () => string;
  readonly newSecret: () => string;
}

/** The sessions of encoders, over RTMP or simulated by the control port, and the ends of their events. */
export function createBroadcast(parts: BroadcastParts) {
  const { state, clock, notify, newResourceId, newSecret } = parts;
  /** By channel id: a channel has at most one event that is not over. */
  const onAir = new Map<string, OnAir>();

  function startEvent(channel: Channel): OnAir {
    const mode = channel.metadata.publishing_mode;
    const made = newItem(EVENT, parts, {
      channelId: channel.id,
      siteId: channel.siteId,
      metadata: {},
      mode,
      state: mode === 'auto' ? 'live' : 'preview',
      previewToken: newSecret(),
      publishedAt: mode === 'auto' ? clock.now() : undefined,
      awayMs: 0,
      pullToken: newSecret(),
    });
    const event = state.events.add(made);
    channel.currentEventId = event.id;
    channel.status = 'active';
    return putOnAir(channel, event);
  }

  function putOnAir(channel: Channel, event: LiveEvent): OnAir {
    const left = event.created.getTime() + MAX_EVENT_MS - clock.now().getTime();
    const timeLimit = clock.after(Math.max(left, 0), () => endEvent(channel, 'longest_duration'));
    const air: OnAir = { channel, event, timeLimit, window: undefined, encoder: undefined };
    onAir.set(channel.id, air);
    return air;
  }

  function applyInput(event: LiveEvent, input: EventInput): boolean {
    const next = nextState(event.state, input);
    if (next === undefined) return false;
    state.events.change(event, { state: next });
    return true;
  }

  function endEvent(channel: Channel, why: string): void {
    const air = onAir.get(channel.id);
    if (!air || !applyInput(air.event, 'stop')) return;
    onAir.delete(channel.id);
    air.timeLimit.cancel();
    air.window?.cancel();
    const { event, encoder } = air;
    event.endedAt = clock.now();
    event.encoderGoneAt ??= event.endedAt;
    if (encoder) state.usage.countTime(channel.siteId, encoder.since, event.endedAt, 'live_seconds');
    channel.currentEventId = undefined;
    channel.status = 'idle';
    const replay = replayOf(event, channel);
    state.media.add(replay);
    notify('channel_idle', channel);
    if (!replay.hidden) notify('media_available', replay);
    encoder?.drop?.(why);
  }

  function waitForEncoder(air: OnAir): void {
    const { channel, event } = air;
    const now = clock.now();
    if (event.encoderGoneAt === undefined) {
      applyInput(event, 'encoder_gone');
      event.encoderGoneAt = now;
    }
    const until = event.encoderGoneAt.getTime() + channel.metadata.reconnect_window * 1000;
    const wait = until - now.getTime();
    if (wait > 0) air.window = clock.after(wait, () => endEvent(channel, 'encoder_gone'));
    else endEvent(channel, 'encoder_gone');
  }

  return {
    /** @param drop is called once, when the platform ends the session; a simulated encoder has none. */
    connect(streamKey: string, drop?: (why: string) => void): Connected {
      const channel = channelOfKey(state, streamKey);
      if (!channel) return { ok: false, reason: 'unknown_stream_key' };
      if (!channel.enabled) return { ok: false, reason: 'channel_disabled' };
      const current = onAir.get(channel.id);
      if (current?.encoder) return { ok: false, reason: 'already_streaming' };
      const air = current ?? startEvent(channel);
      if (current) applyInput(air.event, 'encoder_connected');
      air.window?.cancel();
      const since = clock.now();
      air.event.awayMs += since.getTime() - (air.event.encoderGoneAt ?? since).getTime();
      air.event.encoderGoneAt = undefined;
      const { id: eventId, pullToken } = air.event;
      const session = { id: newResourceId(), channelId: channel.id, eventId, pullToken };
      air.encoder = { session, drop, since };
      if (!current) notify('channel_active', channel);
      return { ok: true, session };
    },
    /** Without another connect in the channel's reconnect window, the event ends. @param why drops it */
    disconnect(session: EncoderSession, why?: string): void {
      const air = onAir.get(session.channelId);
      // A session that the platform has ended, or another encoder replaced, is over already.
      if (air?.encoder?.session.id !== session.id) return;
      const { channel, encoder } = air;
      air.encoder = undefined;
      state.usage.countTime(channel.siteId, encoder.since, clock.now(), 'live_seconds');
      waitForEncoder(air);
      if (why !== undefined) encoder.drop?.(why);
    },
    sessionOf: (channelId: string): EncoderSession | undefined => onAir.get(channelId)?.encoder?.session,
    simulated: (): SimulatedEncoder[] =>
      [...onAir.values()].flatMap(({ encoder }) =>
        encoder && !encoder.drop ? { ...encoder.session, since: encoder.since } : [],
      ),
    /** Goes on with a restored event, which is not over: with its simulated encoder, or as if its encoder had just gone. */
    resume(event: LiveEvent, encoder: SimulatedEncoder | undefined): void {
      const channel = state.channels.find(event.channelId);
      if (!channel) return;
      const air = putOnAir(channel, event);
      if (!encoder) {
        waitForEncoder(air);
        return;
      }
      const { since, ...session } = encoder;
      air.encoder = { session: { ...session, pullToken: event.pullToken }, since, drop: undefined };
    },
    publish(event: LiveEvent): Published {
      if (!applyInput(event, 'publish')) return { ok: false, refusal: whyNotPublished(event) };
      event.publishedAt = clock.now();
      return { ok: true };
    },
    /** Ends the channel's current event, if there is one, and drops its encoder. */
    stop: endEvent,
    /** Drops encoders and forgets their events, without ending them. @param isStop keeps the simulated ones for the state. */
    reset(isStop = false): void {
      const all = [...onAir.values()].filter(({ encoder }) => !isStop || !encoder || encoder.drop);
      for (const { channel } of all) onAir.delete(channel.id);
      for (const { encoder } of all) encoder?.drop?.('reset');
    },
  };
}
