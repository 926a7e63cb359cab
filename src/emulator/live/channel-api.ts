import type { Express, Request } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import { originOf } from '../addresses';
import { requireCredential } from '../auth';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { checkedBody, objectParams, readJson, resourceBody, text } from '../json-body';
import type { Fields } from '../listing/filter';
import { listPage } from '../listing/list';
import {
  type Channel,
  type ChannelMetadata,
  createChannel,
  deleteChannel,
  disableChannel,
  enableChannel,
  eventsOf,
  updateChannel,
} from './channels';
import { isOver } from './event-machine';
import { type LiveEvent, previewUrls } from './events';

const listOf = <Item extends z.ZodType>(item: Item, max: number) =>
  z.array(item, 'must be an array').max(max, `has more than ${max} entries`);

const SimulcastTarget = z.strictObject(
  {
    stream_key: text(1000).min(1, 'is empty'),
    stream_url: text(2000).regex(/^rtmps?:\/\/[^\s/]/, 'must be an rtmps:// address'),
    title: text(1000),
  },
  objectParams,
);

const MAX_NAME_LENGTH = 200;
const hasGoodNames = (named: object) =>
  Object.keys(named).every((name) => name !== '' && name.length <= MAX_NAME_LENGTH);
const BAD_NAME = `has a name that is empty or longer than ${MAX_NAME_LENGTH} characters`;

const CustomParams = z
  .record(z.string(), text(4000), 'must be an object whose values are strings')
  .refine(hasGoodNames, BAD_NAME)
  .refine((params) => Object.keys(params).length <= 100, 'has more than 100 entries');

/** Flat, as a value of any depth could not be written again. */
const TextTrack = z
  .record(
    z.string(),
    z.union(
      [text(4000), z.number(), z.boolean(), z.null()],
      'must be a string of at most 4000 characters, a number, true, false or null',
    ),
    'must be an object',
  )
  .refine(hasGoodNames, BAD_NAME);

/** `null` means the same as leaving a field out: clients that serialise a class send it. */
const Metadata = z.strictObject(
  {
    title: text(1000).nullish(),
    tags: listOf(text(200), 100).nullish(),
    custom_params: CustomParams.nullish(),
    dvr: z.enum(['on', 'off'], 'must be on or off').nullish(),
    publishing_mode: z.enum(['auto', 'manual'], 'must be auto or manual').nullish(),
    latency: text(50)
      .regex(/^[a-z0-9_-]+$/, 'must be a name such as default')
      .nullish(),
    reconnect_window: z
      .int('must be a whole number of seconds')
      .min(0, 'must not be negative')
      .max(1800, 'must be at most 1800 seconds')
      .nullish(),
    simulcast_targets: listOf(SimulcastTarget, 20).nullish(),
    text_tracks: listOf(TextTrack, 50).nullish(),
  },
  objectParams,
);

export const ChannelBody = resourceBody(Metadata);

const DEFAULTS: ChannelMetadata = {
  title: '',
  tags: [],
  customParams: {},
  dvr: 'on',
  publishingMode: 'auto',
  latency: 'default',
  reconnectWindow: 60,
  simulcastTargets: [],
  textTracks: [],
};

/** The metadata that a body leaves: its own fields, each as a whole, over those that were there. */
export function metadataAfter(
  { metadata }: z.output<typeof ChannelBody>,
  before: ChannelMetadata = DEFAULTS,
): ChannelMetadata {
  return {
    title: metadata.title ?? before.title,
    tags: metadata.tags ?? before.tags,
    customParams: metadata.custom_params ?? before.customParams,
    dvr: metadata.dvr ?? before.dvr,
    publishingMode: metadata.publishing_mode ?? before.publishingMode,
    latency: metadata.latency ?? before.latency,
    reconnectWindow: metadata.reconnect_window ?? before.reconnectWindow,
    simulcastTargets:
      metadata.simulcast_targets?.map(({ stream_key, stream_url, title }) => ({
        streamKey: stream_key,
        streamUrl: stream_url,
        title,
      })) ?? before.simulcastTargets,
    textTracks: metadata.text_tracks ?? before.textTracks,
  };
}

/** A channel as the management API shows it. `recentEvents` come newest first. */
export function renderChannel(
  channel: Channel,
  shown: { readonly recentEvents: readonly LiveEvent[]; readonly previewUrls: readonly string[] },
) {
  return {
    id: channel.id,
    type: 'channel',
    created: wireTime(channel.created),
    last_modified: wireTime(channel.lastModified),
    status: channel.status,
    enabled: channel.enabled,
    stream_key: channel.streamKey,
    preview_url: shown.previewUrls,
    recent_events: shown.recentEvents.map(({ id, state }) => ({
      media_id: id,
      status: isOver(state) ? 'idle' : 'active',
    })),
    metadata: renderMetadata(channel.metadata),
    relationships: {},
    schema: null,
  };
}

function renderMetadata(metadata: ChannelMetadata) {
  return {
    title: metadata.title,
    tags: metadata.tags,
    custom_params: metadata.customParams,
    dvr: metadata.dvr,
    publishing_mode: metadata.publishingMode,
    latency: metadata.latency,
    reconnect_window: metadata.reconnectWindow,
    simulcast_targets: metadata.simulcastTargets.map(({ streamKey, streamUrl, title }) => ({
      stream_key: streamKey,
      stream_url: streamUrl,
      title,
    })),
    text_tracks: metadata.textTracks,
  };
}

/** What lists of channels are filtered and sorted by. */
const CHANNEL_FIELDS: Fields<Channel> = {
  named: {
    id: { kind: 'text', of: ({ id }) => id },
    created: { kind: 'time', of: ({ created }) => created },
    last_modified: { kind: 'time', of: ({ lastModified }) => lastModified },
    status: { kind: 'text', of: ({ status }) => status },
    title: { kind: 'text', near: true, of: ({ metadata }) => metadata.title },
    tags: { kind: 'text', of: ({ metadata }) => metadata.tags },
    dvr: { kind: 'text', of: ({ metadata }) => metadata.dvr },
    publishing_mode: { kind: 'text', of: ({ metadata }) => metadata.publishingMode },
    latency: { kind: 'text', of: ({ metadata }) => metadata.latency },
    reconnect_window: { kind: 'number', of: ({ metadata }) => metadata.reconnectWindow },
  },
  prefixed: {
    prefix: 'custom_params.',
    field: (name) => ({
      kind: 'text',
      of: ({ metadata: { customParams } }) =>
        Object.hasOwn(customParams, name) ? customParams[name] : undefined,
    }),
  },
};

const RECENT_EVENTS = 10;

/** The management API's channels. */
export function mountChannels(app: Express, context: EmulatorContext): void {
  const { state } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');

  const shown = (request: Pick<Request, 'protocol' | 'get' | 'socket'>) => (channel: Channel) =>
    renderChannel(channel, {
      recentEvents: eventsOf(state, channel, RECENT_EVENTS),
      previewUrls: previewUrls(state, channel, originOf(request)),
    });

  app
    .route('/v2/sites/:siteId/channels')
    .get(reads, (request, response) => {
      const channels = state.channels.list(request.params.siteId);
      const listed = { name: 'channels', fields: CHANNEL_FIELDS, render: shown(request) };
      response.json(listPage(channels, request.query, listed));
    })
    .post(writes, readJson, (request, response) => {
      const body = checkedBody(ChannelBody, request.body);
      const channel = createChannel(context, request.params.siteId, metadataAfter(body));
      response.status(201).json(shown(request)(channel));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/v2/sites/:siteId/channels/:channelId')
    .get(reads, (request, response) => {
      response.json(shown(request)(channelOf(context, request.params)));
    })
    .patch(writes, readJson, (request, response) => {
      const channel = channelOf(context, request.params);
      const body = checkedBody(ChannelBody, request.body);
      updateChannel(context, channel, metadataAfter(body, channel.metadata));
      response.json(shown(request)(channel));
    })
    .delete(writes, (request, response) => {
      deleteChannel(context, channelOf(context, request.params));
      response.status(204).end();
    })
    .all(onlyMethods('GET', 'PATCH', 'DELETE'));

  for (const [action, act] of Object.entries({ enable: enableChannel, disable: disableChannel })) {
    app
      .route(`/v2/sites/:siteId/channels/:channelId/${action}`)
      .put(writes, (request: Request<{ siteId: string; channelId: string }>, response) => {
        act(context, channelOf(context, request.params));
        response.status(204).end();
      })
      .all(onlyMethods('PUT'));
  }
}

/** The channel that a path means. @throws HttpError 404 when its site has none with this id. */
export function channelOf(
  { state }: EmulatorContext,
  { siteId, channelId }: { siteId: string; channelId: string },
): Channel {
  const channel = state.channels.findOf(siteId, channelId);
  if (channel) return channel;
  throw new HttpError(404, { code: 'not_found', description: 'This site has no channel with this id.' });
}
