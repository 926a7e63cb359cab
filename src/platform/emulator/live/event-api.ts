import type { Express } from 'express';
import { HttpError } from '../../../http/errors';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { secondsOf } from '../resources/fields';
import { EVENT } from '../resources/live-table';
import type { Behaviour } from '../resources/resource';
import { callsOf } from '../resources/resource-calls';
import { mountResource } from '../resources/resource-routes';
import { channelOf } from './channel-api';
import { type Channel, eventsOf } from './channels';
import { EVENT_REFUSALS, isOver } from './event-machine';
import { type LiveEvent, makeClip, masterPath, requestMaster, secondsStreamed, statusOf } from './events';

/** The management API's live events. */
export function mountEvents(app: Express, context: EmulatorContext): void {
  mountResource(app, context, callsOf(EVENT, eventBehaviour(context), context.clock.now));
}

/** What is special about live events. */
export function eventBehaviour(context: EmulatorContext): Behaviour<typeof EVENT, LiveEvent> {
  const { state, clock, broadcast } = context;
  const channelOfEvent = ({ siteId, channelId }: LiveEvent) => channelOf(context, { siteId, channelId });
  return {
    list: (ids) => eventsOf(state, channelOf(context, ids)).reverse(),
    find(ids) {
      const channel = channelOf(context, ids);
      const event = state.events.find(ids.eventId ?? '');
      return event?.channelId === channel.id ? event : undefined;
    },
    shown: {
      media_id: ({ id }) => id,
      status: statusOf,
      published_at: ({ publishedAt }) => (publishedAt ? wireTime(publishedAt) : null),
      ended_at: ({ endedAt }) => (endedAt ? wireTime(endedAt) : null),
      master_access: (event, { now }) => renderMasterAccess(event, now()),
    },
    actions: {
      publish(event) {
        const published = broadcast.publish(event);
        if (!published.ok) throw refused(published.refusal, EVENT_REFUSALS[published.refusal]);
        return undefined;
      },
      request_master(event) {
        const requested = requestMaster(context, event);
        if (!requested) throw refused('event_not_ended', masterHasToWait(channelOfEvent(event)));
        return undefined;
      },
      master(event, { view: { origin } }) {
        const access = renderMasterAccess(event, clock.now());
        const path = masterPath(event);
        const link = path === undefined ? {} : { delivery_url: `${origin}${path}` };
        if (access.status === 'available') return { id: event.id, type: 'master', ...access, ...link };
        const description = 'No master is available. Request one with PUT …/request_master/ after the event.';
        throw new HttpError(404, { code: 'master_unavailable', description });
      },
      clip(event, { query }) {
        const piece = pieceOf(query);
        const media = makeClip(context, channelOfEvent(event), event, piece);
        if (!media) throw refused('beyond_recording', clipHasToWait(event, piece.to, clock.now()));
        return { media_id: media.id };
      },
    },
  };
}

function refused(code: string, description: string): HttpError {
  return new HttpError(409, { code, description });
}

function renderMasterAccess({ masterExpires }: LiveEvent, now: Date) {
  return masterExpires && masterExpires > now
    ? { status: 'available', expiration: wireTime(masterExpires) }
    : { status: 'unavailable', expiration: null };
}

/** The piece that the query of a clip asks for, in seconds into the event. @throws HttpError 400 */
function pieceOf(query: Readonly<Record<string, unknown>>): { from: number; to: number } {
  const from = secondsOf(String(query.trim_in_point));
  const to = secondsOf(String(query.trim_out_point));
  if (from < to) return { from, to };
  const description = 'trim_out_point: must be after trim_in_point.';
  throw new HttpError(400, { code: 'invalid_parameter', description });
}

/** Why there is no master yet, and what to wait for. */
function masterHasToWait({ metadata: { reconnect_window } }: Channel): string {
  const end = reconnect_window === 0 ? 'as soon as' : `${reconnect_window} s after`;
  return `The master is made of an event that has ended, and this one runs. It ends ${end} its encoder has gone; wait for the webhook channel_idle, or for the status idle.`;
}

/** Why there is no clip up to this second of the event, and what to wait for. */
function clipHasToWait(event: LiveEvent, to: number, now: Date): string {
  const recorded = secondsStreamed(event, now);
  const most = `trim_out_point lies beyond what is recorded of this event, which is ${timecodeOf(recorded)}`;
  if (isOver(event.state)) return `${most}. The event has ended: choose a point within it.`;
  if (event.encoderGoneAt)
    return `${most}. Its encoder has gone: wait until it is back, or choose an earlier point.`;
  return `${most} by now. Try again in ${Math.ceil(to - recorded)} s, or choose an earlier point.`;
}

function timecodeOf(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString().slice(11, 23);
}
