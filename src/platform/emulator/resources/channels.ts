import * as z from 'zod';
import { field, objectOf, text } from '../json-body';
import { dropMaster, previewPath, statusOf } from '../live/live-event';
import { Choice, CUSTOM_PARAMS, Flag, FlatObject, Id, list, row, SITE, TAGS, Text } from './fields';
import { KEY_FILE_PARAMETER } from './media';
import {
  type Behaviour,
  type LibraryState,
  type MetadataOf,
  named,
  newItem,
  type PathIds,
  type Platform,
  putAction,
  type Resource,
  type Stored,
} from './resource';
import { notFound } from './resource-calls';

export const ONE_CHANNEL = `${SITE}/channels/:channelId`;

const SimulcastTarget = objectOf({
  stream_key: field(text(1000).min(1, 'is empty'), 'The key there. It is a secret.'),
  stream_url: field(
    text(2000).regex(/^rtmps?:\/\/[^\s/]/, 'must be an rtmps:// address'),
    'The address there.',
  ),
  title: field(text(1000), 'The name of the place.'),
});

const STATUS = ['creating', 'active', 'idle'] as const;

export const CHANNEL = {
  ...named('channel', SITE, 'channelId'),
  says: 'Takes the stream of one encoder at a time. Each broadcast is a live event.',
  metadata: {
    title: row(text(1000), 'The title.', { default: '', filter: 'words' }),
    tags: TAGS,
    custom_params: CUSTOM_PARAMS,
    dvr: row(Choice(['on', 'off']), 'Whether viewers may go back in a running event.', {
      default: 'on',
      filter: 'text',
    }),
    publishing_mode: row(
      Choice(['auto', 'manual']),
      'Whether viewers get an event as soon as the encoder connects, or after a publish call.',
      { default: 'auto', filter: 'text' },
    ),
    latency: row(
      text(50).regex(/^[a-z0-9_-]+$/, 'must be a name such as default'),
      'How far viewers are behind: `low` makes segments of 1 s, any other name of 2 s. The next encoder gets it.',
      { default: 'default', filter: 'text' },
    ),
    reconnect_window: row(
      z
        .int('must be a whole number of seconds')
        .min(0, 'must not be negative')
        .max(1800, 'must be at most 1800 seconds'),
      'Seconds that the encoder may be gone without ending the event.',
      { default: 60, filter: 'number' },
    ),
    simulcast_targets: row(
      list(SimulcastTarget, 20),
      'Where else the stream is to be sent. The packager sends it; without one nothing is sent.',
      { default: [] },
    ),
    text_tracks: row(
      list(FlatObject, 50),
      'Text tracks of the stream. They are kept and delivered as they are given.',
      { default: [] },
    ),
  },
  shown: {
    status: row(
      Choice(STATUS),
      '`creating` until the first encoder connects; then `active` while there is a current event, else `idle`.',
      { filter: 'text' },
    ),
    enabled: row(z.boolean(), 'Whether encoders may connect.'),
    stream_key: row(z.string(), 'The stream key for the encoder. It is a secret.'),
    preview_url: row(z.array(z.string()), 'Where the current event can be watched before it is published.'),
    recent_events: row(
      z.array(
        z.object({
          media_id: field(z.string(), 'The media of the event.'),
          status: field(z.enum(['active', 'idle']), '`idle` when it is over.'),
        }),
      ),
      'The newest 10 events, newest first.',
    ),
  },
  kept: {
    streamKey: Text,
    status: Choice(STATUS).default('creating'),
    enabled: Flag.default(true),
    currentEventId: Id.optional(),
  },
  actions: {
    enable: putAction(`${ONE_CHANNEL}/enable`, 'Enable a channel', 'Lets encoders connect.'),
    disable: putAction(
      `${ONE_CHANNEL}/disable`,
      'Disable a channel',
      'Ends the current event and lets no encoder connect.',
    ),
  },
} as const satisfies Resource;

export type ChannelMetadata = MetadataOf<typeof CHANNEL>;

export type Channel = Stored<typeof CHANNEL>;

/** The key file of a channel's events: the one that a custom parameter names, else that of its id. */
export function keyFileOfChannel({ id, metadata }: Channel): string {
  return metadata.custom_params[KEY_FILE_PARAMETER] ?? id;
}

export function titleOf({ id, metadata }: Channel): string {
  return metadata.title.trim() === '' ? `Channel ${id}` : metadata.title;
}

interface ChannelParts extends Platform {
  readonly broadcast: { stop(channel: Channel, why: string): void };
}

const RECENT_EVENTS = 10;

export function channelBehaviour(parts: ChannelParts): Behaviour<typeof CHANNEL, Channel> {
  const { state, broadcast } = parts;
  return {
    store: state.channels,
    create: ({ siteId = '' }, { metadata }) => createChannel(parts, siteId, metadata),
    // The replays of its events stay.
    remove(channel) {
      broadcast.stop(channel, 'channel_deleted');
      for (const event of state.events.of(channel.id)) {
        dropMaster(parts, event);
        state.events.remove(event);
      }
      state.channels.remove(channel);
    },
    shown: {
      preview_url: (channel, { origin }) => previewUrls(state, channel, origin),
      recent_events({ id }) {
        const recent = state.events.of(id).slice(-RECENT_EVENTS).reverse();
        return recent.map((event) => ({ media_id: event.id, status: statusOf(event) }));
      },
    },
    actions: {
      enable(channel) {
        if (!channel.enabled) state.channels.change(channel, { enabled: true });
        return undefined;
      },
      disable(channel) {
        if (!channel.enabled) return undefined;
        state.channels.change(channel, { enabled: false });
        broadcast.stop(channel, 'channel_disabled');
        return undefined;
      },
    },
  };
}

export function createChannel(parts: Platform, siteId: string, metadata: ChannelMetadata): Channel {
  const made = newItem(CHANNEL, parts, { siteId, streamKey: parts.newSecret(), metadata });
  const channel = parts.state.channels.add(made);
  parts.notify('channel_created', channel);
  return channel;
}

/** The channel of a path. @throws HttpError 404 when its site has none with this id. */
export function channelOf(
  { state }: Pick<Platform, 'state'>,
  { siteId = '', channelId = '' }: PathIds,
): Channel {
  const channel = state.channels.findOf(siteId, channelId);
  if (channel) return channel;
  throw notFound(CHANNEL);
}

export function channelOfKey({ channels }: LibraryState, streamKey: string): Channel | undefined {
  return channels.all().find((channel) => channel.streamKey === streamKey);
}

/** Where the channel's current event can be watched before it is published; empty while nothing runs. */
export function previewUrls({ events }: LibraryState, channel: Channel, origin: string): readonly string[] {
  const event = events.find(channel.currentEventId ?? '');
  return event ? [`${origin}${previewPath(event)}`] : [];
}
