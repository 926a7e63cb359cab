import type { EmulatorContext } from '../context';
import { KEY_FILE_PARAMETER } from '../library/media';
import type { CHANNEL } from '../resources/live-table';
import type { MetadataOf } from '../resources/resource';
import { channelNotification } from '../webhooks/notification';
import { dropMaster, type LiveEvent } from './events';

/** `creating` until the first encoder connects; then `active` while there is a current event, else `idle`. */
type ChannelStatus = 'creating' | 'active' | 'idle';

export type ChannelMetadata = MetadataOf<typeof CHANNEL>;

export interface Channel {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  readonly streamKey: string;
  status: ChannelStatus;
  enabled: boolean;
  metadata: ChannelMetadata;
  currentEventId: string | undefined;
  /** Newest first. */
  recentEventIds: string[];
}

/** The key file that a channel's events are encrypted with: the one that a custom parameter names, else its id's. */
export function keyFileOfChannel({ id, metadata }: Channel): string {
  return metadata.custom_params[KEY_FILE_PARAMETER] ?? id;
}

/** A channel's title, or what stands for it. */
export function titleOf({ id, metadata }: Channel): string {
  return metadata.title.trim() === '' ? `Channel ${id}` : metadata.title;
}

/** What a channel is made of, beside what is the same for every new one. */
type NewChannel = Pick<Channel, 'id' | 'siteId' | 'created' | 'streamKey' | 'metadata'>;

export function createChannel(context: EmulatorContext, siteId: string, metadata: ChannelMetadata): Channel {
  const { state, clock, newResourceId, newSecret, notify } = context;
  const made = { id: newResourceId(), siteId, created: clock.now(), streamKey: newSecret(), metadata };
  const channel = addChannel(state, made);
  notify(channelNotification('channel_created', channel));
  return channel;
}

/** Adds a channel that no encoder has connected to. */
export function addChannel(state: EmulatorContext['state'], made: NewChannel): Channel {
  const channel: Channel = {
    ...made,
    lastModified: made.created,
    status: 'creating',
    enabled: true,
    currentEventId: undefined,
    recentEventIds: [],
  };
  state.channels.add(channel);
  state.streamKeys.set(channel.streamKey, channel);
  return channel;
}

export function updateChannel(context: EmulatorContext, channel: Channel, metadata: ChannelMetadata): void {
  channel.metadata = metadata;
  modified(context, channel);
}

/** Lets encoders connect. A channel that is enabled already stays as it is. */
export function enableChannel(context: EmulatorContext, channel: Channel): void {
  if (channel.enabled) return;
  channel.enabled = true;
  modified(context, channel);
}

/** Ends the current event, drops its encoder and lets none connect. */
export function disableChannel(context: EmulatorContext, channel: Channel): void {
  if (!channel.enabled) return;
  channel.enabled = false;
  modified(context, channel);
  context.broadcast.stop(channel, 'channel_disabled');
}

function modified({ clock, state }: EmulatorContext, channel: Channel): void {
  channel.lastModified = clock.now();
  state.channels.changed(channel);
}

/** Ends the current event and removes the channel with its events; the replays of its events stay. */
export function deleteChannel({ broadcast, state, uploads }: EmulatorContext, channel: Channel): void {
  broadcast.stop(channel, 'channel_deleted');
  for (const event of eventsOf(state, channel)) {
    dropMaster({ uploads }, event);
    state.events.remove(event);
  }
  state.streamKeys.delete(channel.streamKey);
  state.channels.remove(channel);
}

/** The events of a channel, newest first, as many as are wanted. */
export function eventsOf(
  { events }: EmulatorContext['state'],
  channel: Channel,
  limit = Number.POSITIVE_INFINITY,
): LiveEvent[] {
  return channel.recentEventIds.slice(0, limit).flatMap((id) => events.find(id) ?? []);
}
