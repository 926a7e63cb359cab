import { keyFileOf } from '../library/media';
import type { Broadcast } from '../live/broadcast';
import { type Channel, keyFileOfChannel } from '../live/channels';
import { isOver } from '../live/event-machine';
import type { EmulatorState } from '../state';
import type { FileOrder, LiveOrder } from './packager-client';

/**
 * What the packager is to have under an id. `interrupted`: a live stream whose encoder may come back; `replay`: one that
 * is over.
 */
export type Wanted =
  | { readonly kind: 'live'; readonly order: LiveOrder }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'replay' }
  | { readonly kind: 'file'; readonly order: FileOrder };

interface Parts {
  readonly state: EmulatorState;
  readonly broadcast: Pick<Broadcast, 'sessionOf'>;
  /** Where the packager pulls live streams; undefined when it can pull none. */
  readonly rtmpUrl: string | undefined;
}

/** What the packager is to have under the id of an event or a media, or undefined when it is to have nothing. */
export function wantedOf({ state, broadcast, rtmpUrl }: Parts, id: string): Wanted | undefined {
  const event = state.events.find(id);
  const channel = state.channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    if (rtmpUrl === undefined) return undefined;
    if (broadcast.sessionOf(channel.id)?.eventId !== id) return { kind: 'interrupted' };
    return { kind: 'live', order: liveOrder(channel, `${rtmpUrl}/${event.pullToken}`) };
  }
  const media = state.media.find(id);
  if (!media) return undefined;
  const { file, hostingType } = media;
  if (file && hostingType === 'hosted') {
    return { kind: 'file', order: { path: file.path, size: file.size, keyFile: keyFileOf(media) } };
  }
  return media.eventId === id && hostingType === 'hosted' ? { kind: 'replay' } : undefined;
}

function liveOrder(channel: Channel, source: string): LiveOrder {
  const simulcast = channel.metadata.simulcast_targets.map(({ stream_url, stream_key }) => ({
    url: `${stream_url.replace(/\/+$/, '')}/${stream_key}`,
  }));
  return { source, keyFile: keyFileOfChannel(channel), simulcast };
}
