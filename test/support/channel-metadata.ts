import type { ChannelMetadata } from '../../src/emulator/live/channels';

/** The metadata of a channel that publishes at once, with what a test changes in it. */
export function channelMetadata(changes: Partial<ChannelMetadata> = {}): ChannelMetadata {
  return {
    title: 'Town hall',
    tags: [],
    customParams: {},
    dvr: 'on',
    publishingMode: 'auto',
    latency: 'default',
    reconnectWindow: 0,
    simulcastTargets: [],
    textTracks: [],
    ...changes,
  };
}
