import * as z from 'zod';
import { objectParams, text } from '../json-body';
import { Choice, FlatObject, list, Timecode } from './fields';
import { CUSTOM_PARAMS, TAGS } from './media-table';
import type { Resource } from './resource';

const SITE = '/v2/sites/:siteId';
const OF_CHANNEL = `${SITE}/channels/:channelId`;
const OF_EVENT = `${OF_CHANNEL}/events/:eventId`;

const SimulcastTarget = z.strictObject(
  {
    stream_key: text(1000).min(1, 'is empty'),
    stream_url: text(2000).regex(/^rtmps?:\/\/[^\s/]/, 'must be an rtmps:// address'),
    title: text(1000),
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
    title: { schema: text(1000), default: '', filter: 'near', says: 'The title.' },
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
      says: 'Where else the stream is to be sent. They are kept; nothing is sent.',
    },
    text_tracks: {
      schema: list(FlatObject, 50),
      default: [],
      says: 'Text tracks of the stream. They are kept as they are given.',
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
      schema: z.array(z.object({ media_id: z.string(), status: z.enum(['active', 'idle']) })),
      says: 'The newest 10 events, newest first.',
    },
  },
  actions: {
    enable: {
      methods: ['PUT'],
      path: `${OF_CHANNEL}/enable`,
      status: 204,
      says: 'Lets encoders connect.',
    },
    disable: {
      methods: ['PUT'],
      path: `${OF_CHANNEL}/disable`,
      status: 204,
      says: 'Ends the current event and lets no encoder connect.',
    },
  },
} as const satisfies Resource;

const masterAccess = {
  status: z.enum(['available', 'unavailable']),
  expiration: z.string().nullable(),
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
      status: 204,
      says: 'Lets viewers watch the event of a channel whose publishing mode is `manual`.',
      conflict: 'The event is published already, or over.',
    },
    request_master: {
      methods: ['PUT'],
      path: `${OF_EVENT}/request_master`,
      status: 204,
      says: 'Makes the master of an event that is over available for 24 hours.',
      conflict: 'The event is not over.',
    },
    master: {
      methods: ['GET'],
      path: `${OF_EVENT}/master`,
      status: 200,
      says: 'The master of the recording, while it is available. It has no file.',
      answer: {
        id: { schema: z.string(), says: 'The id of the event.' },
        type: { schema: z.literal('master'), says: 'What it is.' },
        status: { schema: masterAccess.status, says: 'Always `available`.' },
        expiration: { schema: masterAccess.expiration, says: 'Until when.' },
      },
    },
    clip: {
      methods: ['PUT'],
      path: `${OF_EVENT}/clip`,
      status: 200,
      says: 'Makes a media of a piece of an event, while it runs or after.',
      query: {
        trim_in_point: { schema: Timecode, required: true, says: 'Where the piece begins in the event.' },
        trim_out_point: { schema: Timecode, required: true, says: 'Where it ends.' },
      },
      answer: { media_id: { schema: z.string(), says: 'The new media.' } },
      conflict: 'The piece goes beyond what is recorded.',
    },
  },
} as const satisfies Resource;
