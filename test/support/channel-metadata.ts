import type { ChannelMetadata } from '../../src/platform/emulator/resources/channels';

/** The metadata of a channel that publishes at once, with what a test changes in it. */
export function channelMetadata(changes: Partial<ChannelMetadata> = {}): ChannelMetadata {
  return {
    title: 'Town hall',
    tags: [],
    custom_params: {},
    dvr: 'on',
    publishing_mode: 'auto',
    latency: 'default',
    reconnect_window: 0,
    simulcast_targets: [],
    text_tracks: [],
    ...changes,
  };
}
