import * as z from 'zod';
import { objectParams, text } from '../json-body';
import { Choice, FlatObject, list, Timecode } from './fields';
import { CUSTOM_PARAMS, SITE, TAGS } from './media-table';
import type { Resource } from './resource';

const OF_CHANNEL = `${SITE}/channels/:channelId`;
const OF_EVENT = `${OF_CHANNEL}/events/:eventId`;

const SimulcastTarget = z.strictObject(
  {
    stream_key: text(1000).min(1, 'is empty').meta({ description: 'The key there. It is a secret.' }),
    stream_url: text(2000)
      .regex(/^rtmps?:\/\/[^\s/]/, 'must be an rtmps:// address')
      .meta({ description: 'The address there.' }),
    title: text(1000).meta({ description: 'The name of the place.' }),
  },
  objectParams,
);

export const CHANNEL = {
  type: 'channel',
  plural: 'channels',
  noun: 'channel',
  says: 'Takes the stream of one encoder at a time. Each broadcast is a live event.',
  collection: `${SITE}/channels`,
  one: OF_CHANNEL,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    title: { schema: text(1000), default: '', filter: 'words', says: 'The title.' },
    tags: TAGS,
    custom_params: CUSTOM_PARAMS,
    dvr: {
      schema: Choice(['on', 'off']),
      default: 'on',
      filter: 'text',
      says: 'Whether viewers may go back in a running event.',
    },
    publishing_mode: {
      schema: Choice(['auto', 'manual']),
      default: 'auto',
      filter: 'text',
      says: 'Whether viewers get an event as soon as the encoder connects, or after a publish call.',
    },
    latency: {
      schema: text(50).regex(/^[a-z0-9_-]+$/, 'must be a name such as default'),
      default: 'default',
      filter: 'text',
      says: 'How far viewers are behind. The value is kept; it has no effect.',
    },
    reconnect_window: {
      schema: z
        .int('must be a whole number of seconds')
        .min(0, 'must not be negative')
        .max(1800, 'must be at most 1800 seconds'),
      default: 60,
      filter: 'number',
      says: 'Seconds that the encoder may be gone without ending the event.',
    },
    simulcast_targets: {
      schema: list(SimulcastTarget, 20),
      default: [],
      says: 'Where else the stream is to be sent. The packager sends it; without one nothing is sent.',
    },
    text_tracks: {
      schema: list(FlatObject, 50),
      default: [],
      says: 'Text tracks of the stream. They are kept and delivered as they are given.',
    },
  },
  shown: {
    status: {
      schema: Choice(['creating', 'active', 'idle']),
      filter: 'text',
      says: '`creating` until the first encoder connects; then `active` while there is a current event, else `idle`.',
    },
    enabled: { schema: z.boolean(), says: 'Whether encoders may connect.' },
    stream_key: { schema: z.string(), says: 'What the encoder is configured with. It is a secret.' },
    preview_url: {
      schema: z.array(z.string()),
      says: 'Where the current event can be watched before it is published.',
    },
    recent_events: {
      schema: z.array(
        z.object({
          media_id: z.string().meta({ description: 'The media of the event.' }),
          status: z.enum(['active', 'idle']).meta({ description: '`idle` when it is over.' }),
        }),
      ),
      says: 'The newest 10 events, newest first.',
    },
  },
  actions: {
    enable: {
      methods: ['PUT'],
      path: `${OF_CHANNEL}/enable`,
      title: 'Enable a channel',
      status: 204,
      says: 'Lets encoders connect.',
    },
    disable: {
      methods: ['PUT'],
      path: `${OF_CHANNEL}/disable`,
      title: 'Disable a channel',
      status: 204,
      says: 'Ends the current event and lets no encoder connect.',
    },
  },
} as const satisfies Resource;

const masterAccess = {
  status: z.enum(['available', 'unavailable']).meta({ description: 'Whether it can be had.' }),
  expiration: z.string().nullable().meta({ description: 'Until when.' }),
};

export const EVENT = {
  type: 'event',
  plural: 'events',
  noun: 'event',
  says: 'One broadcast of a channel, of 12 hours at most. When it ends, it becomes a media under its own id.',
  collection: `${OF_CHANNEL}/events`,
  one: OF_EVENT,
  verbs: ['list', 'read'],
  metadata: {},
  shown: {
    media_id: { schema: z.string(), filter: 'text', says: 'The media of the event. It is the same id.' },
    status: { schema: Choice(['active', 'idle']), filter: 'text', says: '`idle` when it is over.' },
    published_at: { schema: z.string().nullable(), says: 'From when on viewers may watch it.' },
    ended_at: { schema: z.string().nullable(), says: 'When it ended.' },
    master_access: {
      schema: z.object(masterAccess),
      says: 'Whether the master of the recording can be had, and until when.',
    },
  },
  actions: {
    publish: {
      methods: ['PUT'],
      path: `${OF_EVENT}/publish`,
      title: 'Publish an event',
      status: 204,
      says: 'Lets viewers watch the event of a channel whose publishing mode is `manual`.',
      refusals: [
        {
          status: 409,
          code: 'event_published_by_channel',
          when: 'The channel publishes its events by itself.',
        },
        { status: 409, code: 'event_already_published', when: 'The event is published already.' },
        { status: 409, code: 'event_ended', when: 'The event is over.' },
      ],
    },
    request_master: {
      methods: ['PUT'],
      path: `${OF_EVENT}/request_master`,
      title: 'Request the master of an event',
      status: 204,
      says: 'Makes the master of an event that is over available for 24 hours, once its file has come from the packager.',
      refusals: [{ status: 409, code: 'event_not_ended', when: 'The event is not over.' }],
    },
    master: {
      methods: ['GET'],
      path: `${OF_EVENT}/master`,
      title: 'Read the master of an event',
      status: 200,
      says: 'The master of the recording, while it is available. It has a file where a packager records.',
      refusals: [{ status: 404, code: 'master_unavailable', when: 'No master is available.' }],
      answer: {
        id: { schema: z.string(), says: 'The id of the event.' },
        type: { schema: z.literal('master'), says: 'What it is.' },
        status: { schema: masterAccess.status, says: 'Always `available`.' },
        expiration: { schema: masterAccess.expiration, says: 'Until when.' },
        delivery_url: {
          schema: z.string().optional(),
          says: 'Where its file is. Who knows this address can have it until then.',
        },
      },
    },
    clip: {
      methods: ['PUT'],
      path: `${OF_EVENT}/clip`,
      title: 'Clip an event',
      status: 200,
      says: 'Makes a media of a piece of an event, while it runs or after. It is `processing` until its file has come from the packager.',
      query: {
        trim_in_point: { schema: Timecode, required: true, says: 'Where the piece begins in the event.' },
        trim_out_point: { schema: Timecode, required: true, says: 'Where it ends.' },
      },
      answer: { media_id: { schema: z.string(), says: 'The new media.' } },
      refusals: [{ status: 409, code: 'beyond_recording', when: 'The piece goes beyond what is recorded.' }],
    },
  },
} as const satisfies Resource;
