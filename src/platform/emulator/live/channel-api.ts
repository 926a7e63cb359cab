import type { Express } from 'express';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { CHANNEL } from '../resources/live-table';
import type { Behaviour, PathIds } from '../resources/resource';
import { callsOf, notFound } from '../resources/resource-calls';
import { mountResource } from '../resources/resource-routes';
import {
  type Channel,
  createChannel,
  deleteChannel,
  disableChannel,
  enableChannel,
  eventsOf,
  updateChannel,
} from './channels';
import { previewUrls, statusOf } from './events';

const RECENT_EVENTS = 10;

/** The management API's channels. */
export function mountChannels(app: Express, context: EmulatorContext): void {
  mountResource(app, context, callsOf(CHANNEL, channelBehaviour(context), context.clock.now));
}

/** What is special about channels. */
export function channelBehaviour(context: EmulatorContext): Behaviour<typeof CHANNEL, Channel> {
  const { state } = context;
  const done = (act: typeof enableChannel) => (channel: Channel) => {
    act(context, channel);
    return undefined;
  };
  return {
    list: ({ siteId = '' }) => state.channels.of(siteId),
    find: ({ siteId = '', channelId = '' }) => state.channels.findOf(siteId, channelId),
    create: ({ siteId = '' }, { metadata }) =>
      createChannel(context, siteId, valuesAfter(CHANNEL.metadata, metadata)),
    update: (channel, metadata) => updateChannel(context, channel, metadata),
    remove: (channel) => deleteChannel(context, channel),
    shown: {
      status: ({ status }) => status,
      enabled: ({ enabled }) => enabled,
      stream_key: ({ streamKey }) => streamKey,
      preview_url: (channel, { origin }) => previewUrls(state, channel, origin),
      recent_events: (channel) =>
        eventsOf(state, channel, RECENT_EVENTS).map((event) => ({
          media_id: event.id,
          status: statusOf(event),
        })),
    },
    actions: { enable: done(enableChannel), disable: done(disableChannel) },
  };
}

/** The channel that a path means. @throws HttpError 404 when its site has none with this id. */
export function channelOf({ state }: EmulatorContext, { siteId = '', channelId = '' }: PathIds): Channel {
  const channel = state.channels.findOf(siteId, channelId);
  if (channel) return channel;
  throw notFound(CHANNEL);
}
