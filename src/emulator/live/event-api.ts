import type { Express, RequestHandler } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import { requireCredential } from '../auth';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import type { Fields } from '../listing/filter';
import { listPage } from '../listing/list';
import { channelOf } from './channel-api';
import { type Channel, eventsOf } from './channels';
import { EVENT_REFUSALS, isOver } from './event-machine';
import { type LiveEvent, makeClip, requestMaster, secondsStreamed } from './events';

interface EventPath {
  siteId: string;
  channelId: string;
  eventId: string;
}

/** The management API's live events. */
export function mountEvents(app: Express, context: EmulatorContext): void {
  const { state, clock, broadcast } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');
  const events = '/v2/sites/:siteId/channels/:channelId/events';

  app
    .route(events)
    .get(reads, (request, response) => {
      const oldestFirst = eventsOf(state, channelOf(context, request.params)).reverse();
      const now = clock.now();
      const render = (event: LiveEvent) => renderEvent(event, now);
      response.json(listPage(oldestFirst, request.query, { name: 'events', fields: EVENT_FIELDS, render }));
    })
    .all(onlyMethods('GET'));

  app
    .route(`${events}/:eventId`)
    .get(reads, (request, response) => {
      response.json(renderEvent(eventOf(context, request.params).event, clock.now()));
    })
    .all(onlyMethods('GET'));

  const publish: RequestHandler<EventPath> = (request, response) => {
    const published = broadcast.publish(eventOf(context, request.params).event);
    if (!published.ok) throw refused(published.refusal, EVENT_REFUSALS[published.refusal]);
    response.status(204).end();
  };
  const prepareMaster: RequestHandler<EventPath> = (request, response) => {
    const { channel, event } = eventOf(context, request.params);
    const requested = requestMaster(context, event);
    if (!requested) throw refused('event_not_ended', masterHasToWait(channel));
    response.status(204).end();
  };
  const clip: RequestHandler<EventPath> = (request, response) => {
    const { channel, event } = eventOf(context, request.params);
    const piece = readClipQuery(request.query);
    const media = makeClip(context, channel, event, piece);
    if (!media) throw refused('beyond_recording', clipHasToWait(event, piece.to, clock.now()));
    response.json(renderClip(media.id));
  };
  app.route(`${events}/:eventId/publish`).put(writes, publish).all(onlyMethods('PUT'));
  app.route(`${events}/:eventId/request_master`).put(writes, prepareMaster).all(onlyMethods('PUT'));
  app.route(`${events}/:eventId/clip`).put(writes, clip).all(onlyMethods('PUT'));

  app
    .route(`${events}/:eventId/master`)
    .get(reads, (request, response) => {
      const master = renderMaster(eventOf(context, request.params).event, clock.now());
      if (!master) {
        const description = 'No master is available. Request one with PUT …/request_master/ after the event.';
        throw new HttpError(404, { code: 'master_unavailable', description });
      }
      response.json(master);
    })
    .all(onlyMethods('GET'));
}

/** The event that a path means, with its channel. @throws HttpError 404 when the site or channel has none such. */
function eventOf(context: EmulatorContext, path: EventPath): { channel: Channel; event: LiveEvent } {
  const channel = channelOf(context, path);
  const event = context.state.events.find(path.eventId);
  if (event?.channelId === channel.id) return { channel, event };
  throw new HttpError(404, { code: 'not_found', description: 'This channel has no event with this id.' });
}

function refused(code: string, description: string): HttpError {
  return new HttpError(409, { code, description });
}

/** An event as the management API shows it. */
export function renderEvent(event: LiveEvent, now: Date) {
  return {
    id: event.id,
    type: 'event',
    media_id: event.id,
    created: wireTime(event.created),
    last_modified: wireTime(event.lastModified),
    status: statusOf(event),
    published_at: event.publishedAt ? wireTime(event.publishedAt) : null,
    ended_at: event.endedAt ? wireTime(event.endedAt) : null,
    master_access: renderMasterAccess(event, now),
    metadata: {},
    relationships: {},
    schema: null,
  };
}

function renderMasterAccess({ masterExpires }: LiveEvent, now: Date) {
  return masterExpires && masterExpires > now
    ? { status: 'available', expiration: wireTime(masterExpires) }
    : { status: 'unavailable', expiration: null };
}

/** The master of an event's recording, or undefined while there is none to be had. */
function renderMaster(event: LiveEvent, now: Date) {
  const access = renderMasterAccess(event, now);
  return access.status === 'available' ? { id: event.id, type: 'master', ...access } : undefined;
}

function renderClip(mediaId: string) {
  return { media_id: mediaId };
}

function statusOf({ state }: LiveEvent): 'active' | 'idle' {
  return isOver(state) ? 'idle' : 'active';
}

/** What lists of events are filtered and sorted by. */
const EVENT_FIELDS: Fields<LiveEvent> = {
  named: {
    id: { kind: 'text', of: ({ id }) => id },
    media_id: { kind: 'text', of: ({ id }) => id },
    created: { kind: 'time', of: ({ created }) => created },
    last_modified: { kind: 'time', of: ({ lastModified }) => lastModified },
    status: { kind: 'text', of: statusOf },
  },
};

const TIMECODE = /^(\d{2}):([0-5]\d):([0-5]\d)(?:\.(\d{3}))?$/;
const trimPoint = z
  .string({ error: ({ input }) => (input === undefined ? 'is missing.' : 'is given twice.') })
  .regex(TIMECODE, { message: 'must be a time into the event, as HH:MM:SS.mmm.', abort: true })
  .transform(secondsOf);

const ClipQuery = z
  .object({ trim_in_point: trimPoint, trim_out_point: trimPoint })
  .refine((query) => query.trim_in_point < query.trim_out_point, {
    path: ['trim_out_point'],
    message: 'must be after trim_in_point.',
  })
  .transform((query) => ({ from: query.trim_in_point, to: query.trim_out_point }));

/** The piece that the query of a clip asks for, in seconds into the event. @throws HttpError 400 with every problem. */
function readClipQuery(query: unknown): { from: number; to: number } {
  const read = ClipQuery.safeParse(query);
  if (read.success) return read.data;
  throw new HttpError(
    400,
    read.error.issues.map(({ path, message }) => ({
      code: 'invalid_parameter',
      description: `${path.join('.')}: ${message}`,
    })),
  );
}

/** Why there is no master yet, and what to wait for. */
function masterHasToWait({ metadata: { reconnectWindow } }: Channel): string {
  const end = reconnectWindow === 0 ? 'as soon as' : `${reconnectWindow} s after`;
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

function secondsOf(timecode: string): number {
  const [, hours, minutes, seconds, thousandths = '0'] = TIMECODE.exec(timecode) ?? [];
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(thousandths) / 1000;
}
