import { z } from 'zod';
import { HttpError } from '../../http/errors';
import type { Fields } from '../listing/fields';
import { wireTime } from '../wire-time';
import type { Channel } from './channel';
import { isOver } from './event-machine';
import type { LiveEvent } from './live-event';
import { secondsStreamed } from './replay';

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
export function renderMaster(event: LiveEvent, now: Date) {
  const access = renderMasterAccess(event, now);
  return access.status === 'available' ? { id: event.id, type: 'master', ...access } : undefined;
}

export function renderClip(mediaId: string) {
  return { media_id: mediaId };
}

function statusOf({ state }: LiveEvent): 'active' | 'idle' {
  return isOver(state) ? 'idle' : 'active';
}

/** What lists of events are filtered and sorted by. */
export const EVENT_FIELDS: Fields<LiveEvent> = {
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
export function readClipQuery(query: unknown): { from: number; to: number } {
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
export function masterHasToWait({ metadata: { reconnectWindow } }: Channel): string {
  const end = reconnectWindow === 0 ? 'as soon as' : `${reconnectWindow} s after`;
  return `The master is made of an event that has ended, and this one runs. It ends ${end} its encoder has gone; wait for the webhook channel_idle, or for the status idle.`;
}

/** Why there is no clip up to this second of the event, and what to wait for. */
export function clipHasToWait(event: LiveEvent, to: number, now: Date): string {
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
