import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { wireTime } from '../clock';
import { field, objectParams } from '../json-body';
import {
  dropMaster,
  EVENT_REFUSALS,
  EVENT_STATES,
  type EventRefusal,
  isOver,
  isViewable,
  type LiveEvent,
  type Master,
  masterPath,
  secondsStreamed,
  statusOf,
} from '../live/live-event';
import type { StoredFile } from '../uploads/uploads';
import { valuesAfter } from './body';
import { type Channel, channelOf, keyFileOfChannel, ONE_CHANNEL } from './channels';
import { Amount, Choice, Id, KeptFile, row, secondsOf, Text, Time, timecode } from './fields';
import { MEDIA, type Media, newMedia } from './media';
import { takeRecording } from './media-behaviour';
import { type Behaviour, named, type Platform, putAction, type Resource } from './resource';

const ONE_EVENT = `${ONE_CHANNEL}/events/:eventId`;

const masterAccess = {
  status: z.enum(['available', 'unavailable']).meta({ description: 'Whether it can be had.' }),
  expiration: z.string().nullable().meta({ description: 'Until when.' }),
};

export const EVENT = {
  ...named('event', ONE_CHANNEL, 'eventId'),
  says: 'One broadcast of a channel, of 12 hours at most. When it ends, it becomes a media under its own id.',
  verbs: ['list', 'read'],
  metadata: {},
  shown: {
    media_id: row(z.string(), 'The media of the event. It is the same id.', { filter: 'text' }),
    status: row(Choice(['active', 'idle']), '`idle` when it is over.', { filter: 'text' }),
    published_at: row(z.string().nullable(), 'From when on viewers may watch it.'),
    ended_at: row(z.string().nullable(), 'When it ended.'),
    master_access: row(
      z.object(masterAccess),
      'Whether the master of the recording can be had, and until when.',
    ),
  },
  kept: {
    channelId: Id,
    /** Whether viewers get it as soon as the encoder connects, or after a publish call; its channel's mode at its start. */
    mode: Choice(['auto', 'manual']),
    state: Choice(EVENT_STATES),
    /** Unguessable part of the preview's address: its holder may watch before the event is published. */
    previewToken: Text,
    publishedAt: Time.optional(),
    /** When the encoder was last seen to go; undefined while it streams. */
    encoderGoneAt: Time.optional(),
    /** How long encoders were away before they came back, in milliseconds: nothing was recorded then. */
    awayMs: Amount.prefault(0),
    endedAt: Time.optional(),
    /** Until when the recording's master is available; undefined before it is requested. */
    masterExpires: Time.optional(),
    /** Its file, undefined while it is fetched, and the secret part of the file's address. */
    master: z.strictObject({ token: Text, file: KeptFile.optional() }, objectParams).optional(),
  },
  actions: {
    publish: putAction(
      `${ONE_EVENT}/publish`,
      'Publish an event',
      'Lets viewers watch the event of a channel whose publishing mode is `manual`.',
      [409, 'event_published_by_channel', 'The channel publishes its events automatically.'],
      [409, 'event_already_published', 'The event is published already.'],
      [409, 'event_ended', 'The event is over.'],
    ),
    request_master: putAction(
      `${ONE_EVENT}/request_master`,
      'Request the master of an event',
      'Makes the master of an event that is over available for 24 hours, once its file has come from the packager.',
      [409, 'event_not_ended', 'The event is not over.'],
    ),
    master: {
      methods: ['GET'],
      path: `${ONE_EVENT}/master`,
      title: 'Read the master of an event',
      status: 200,
      says: 'The master of the recording, while it is available. It has a file where a packager records.',
      refusals: [[404, 'master_unavailable', 'No master is available.']],
      answer: z.object({
        id: field(z.string(), 'The id of the event.'),
        type: field(z.literal('master'), 'The type of the resource.'),
        status: field(masterAccess.status, 'Always `available`.'),
        expiration: masterAccess.expiration,
        delivery_url: field(
          z.string().optional(),
          'Where its file is. Everybody with this address can have it until then.',
        ),
      }),
    },
    clip: {
      methods: ['PUT'],
      path: `${ONE_EVENT}/clip`,
      title: 'Clip an event',
      status: 200,
      says: 'Makes a media of a piece of an event, while it runs or after. It is `processing` until its file has come from the packager.',
      query: z.object({
        trim_in_point: field(timecode('is given twice'), 'Where the piece begins in the event.'),
        trim_out_point: field(timecode('is given twice'), 'Where it ends.'),
      }),
      answer: z.object({ media_id: field(z.string(), 'The new media.') }),
      refusals: [[409, 'beyond_recording', 'The piece goes beyond the recording.']],
    },
  },
} as const satisfies Resource;

export interface WantedRecording {
  readonly eventId: string;
  /** Seconds into the event; without it, the whole of one that is over. */
  readonly piece: { readonly from: number; readonly to: number } | undefined;
  readonly isWanted: () => boolean;
  /** The taker owns the file from then on. */
  readonly take: (file: StoredFile) => void | Promise<void>;
  /** Nothing was recorded, so none will arrive. */
  readonly absent: () => void;
  /** It is not available now, for this reason; it is tried again unless the emulator itself has no room. */
  readonly problem: (description: string, isFinal: boolean) => void;
}

interface EventParts extends Platform {
  readonly recordings: Platform['recordings'] & { want(wanted: WantedRecording): void };
  readonly broadcast: { publish(event: LiveEvent): Published };
}

export type Published = { readonly ok: true } | { readonly ok: false; readonly refusal: EventRefusal };

export function eventBehaviour(parts: EventParts): Behaviour<typeof EVENT, LiveEvent> {
  const { state, clock, broadcast } = parts;
  const channelOfEvent = ({ siteId, channelId }: LiveEvent) => channelOf(parts, { siteId, channelId });
  return {
    store: state.events,
    parent: (ids) => channelOf(parts, ids),
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
        if (requestMaster(parts, event)) return undefined;
        const { reconnect_window } = channelOfEvent(event).metadata;
        const description = `The master is made of an event that has ended, and this one runs. It ends ${reconnect_window} s after its encoder is disconnected; wait for the webhook channel_idle, or for the status idle.`;
        throw refused('event_not_ended', description);
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
        const media = makeClip(parts, channelOfEvent(event), event, piece);
        if (!media) {
          const recorded = secondsStreamed(event, clock.now());
          const timecode = new Date(Math.round(recorded * 1000)).toISOString().slice(11, 23);
          const description = `trim_out_point is beyond the recording of this event, which is ${timecode}. Choose an earlier point; while the event runs, more is recorded.`;
          throw refused('beyond_recording', description);
        }
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

const MASTER_LIFETIME_MS = 24 * 60 * 60 * 1000;

/**
 * Makes the master of an event's recording available, at once or when its file has arrived. Returns false,
 * and does nothing, before the event is over.
 */
function requestMaster(parts: EventParts, event: LiveEvent): boolean {
  if (!isOver(event.state)) return false;
  const { clock, recordings, state, newSecret } = parts;
  const makeAvailable = () =>
    state.events.change(event, { masterExpires: new Date(clock.now().getTime() + MASTER_LIFETIME_MS) });
  if (event.master?.file) makeAvailable();
  if (event.master) return true;
  const master: Master = { token: newSecret(), file: undefined };
  event.master = master;
  const giveUp = () => {
    event.master = undefined;
  };
  recordings.want({
    eventId: event.id,
    piece: undefined,
    isWanted: () => state.events.find(event.id) === event,
    take(file) {
      master.file = file;
      makeAvailable();
      dropMasterLater(parts, event);
    },
    absent() {
      giveUp();
      makeAvailable();
    },
    problem: (_description, isFinal) => isFinal && giveUp(),
  });
  return true;
}

/** Schedules the end of a master, if there is one. A file that the packager had not sent must be requested again. */
export function resumeMaster(parts: EventParts, event: LiveEvent): void {
  if (event.master?.file) dropMasterLater(parts, event);
  else event.master = undefined;
}

function dropMasterLater(parts: EventParts, event: LiveEvent): void {
  const { clock } = parts;
  const left = (event.masterExpires ?? clock.now()).getTime() - clock.now().getTime();
  if (left > 0) clock.after(left, () => dropMasterLater(parts, event));
  else dropMaster(parts, event);
}

/** Makes a media of a piece of an event, or returns undefined when the piece goes beyond the recording. */
function makeClip(
  parts: EventParts,
  channel: Channel,
  event: LiveEvent,
  piece: { readonly from: number; readonly to: number },
): Media | undefined {
  const { state, clock, newResourceId, notify, recordings } = parts;
  const created = clock.now();
  if (piece.to > secondsStreamed(event, created)) return undefined;
  const clip = recorded(event, channel, {
    id: newResourceId(),
    created,
    duration: Math.round((piece.to - piece.from) * 1000) / 1000,
    clip: piece,
    status: 'processing',
    converted: false,
    announced: false,
  });
  state.media.add(clip);
  const announce = () => {
    state.media.change(clip, { status: 'ready', errorMessage: null, converted: true, announced: true });
    notify('media_available', clip);
  };
  recordings.want({
    eventId: event.id,
    piece,
    // It may have been deleted, or given a file of its own.
    isWanted: () => state.media.find(clip.id) === clip && clip.status === 'processing' && !clip.file,
    take: (file) => takeRecording(parts, clip, file),
    absent: announce,
    problem: (errorMessage, isFinal) =>
      state.media.change(clip, { errorMessage, ...(isFinal && { status: 'failed' }) }),
  });
  return clip;
}

/** The media that an event becomes at its end, under the event's own id. */
export function replayOf(event: LiveEvent, channel: Channel): Media {
  const ended = event.endedAt ?? event.created;
  return recorded(event, channel, {
    id: event.id,
    created: ended,
    duration: secondsStreamed(event, ended),
    hidden: !isViewable(event.state),
  });
}

function recorded(
  { id: eventId, siteId }: LiveEvent,
  channel: Channel,
  own: Pick<Media, 'id' | 'created'> & Partial<Media>,
): Media {
  const { title, tags, custom_params } = channel.metadata;
  return newMedia({
    siteId,
    eventId,
    keyFile: keyFileOfChannel(channel),
    status: 'ready',
    mimeType: 'video/mp4',
    converted: true,
    announced: true,
    ...own,
    metadata: valuesAfter(MEDIA.metadata, {
      title,
      tags,
      custom_params,
      publish_start_date: wireTime(own.created),
    }),
  });
}
