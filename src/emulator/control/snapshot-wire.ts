import type { EmulatorContext } from '../context';
import type { Media } from '../library/media';
import type { Channel } from '../live/channel';
import { renderChannel } from '../live/channel-wire';
import { eventsOf } from '../live/channels';
import { renderEvent } from '../live/event-wire';
import type { LiveEvent } from '../live/live-event';
import { previewPath } from '../live/preview-address';
import { wireTime } from '../wire-time';
import { renderCredential } from './credentials-wire';
import { masked } from './masked';
import { renderFaults } from './switches-wire';

/** Everything that the platform holds; secrets only when they are to be revealed. */
export function renderState(context: EmulatorContext, reveal: boolean) {
  const { state, clock, seeds, clients, faults, webhooks } = context;
  const now = clock.now();
  return {
    now: wireTime(now),
    sites: seeds.siteIds,
    credentials: state.credentials.list().map((each) => renderCredential(each, { reveal })),
    clients: [...clients.values()].map(({ name, apiKey, sharedSecret }) => ({
      name,
      api_key: masked(apiKey, reveal),
      shared_secret: masked(sharedSecret, reveal),
    })),
    channels: state.channels.all().map((channel) => snapshotOfChannel(context, channel, reveal)),
    events: state.events.all().map((event) => snapshotOfEvent(event, now, reveal)),
    media: state.media.all().map(snapshotOfMedia),
    webhooks: webhooks.snapshot({ reveal }),
    ...renderFaults(faults.list()),
  };
}

function snapshotOfChannel({ state }: EmulatorContext, channel: Channel, reveal: boolean) {
  const shown = renderChannel(channel, { recentEvents: eventsOf(state, channel), previewUrls: [] });
  const { preview_url: _addresses, ...fields } = shown;
  return {
    ...fields,
    site_id: channel.siteId,
    current_event: channel.currentEventId ?? null,
    stream_key: masked(shown.stream_key, reveal),
    metadata: {
      ...shown.metadata,
      simulcast_targets: shown.metadata.simulcast_targets.map((target) => ({
        ...target,
        stream_key: masked(target.stream_key, reveal),
      })),
    },
  };
}

function snapshotOfEvent(event: LiveEvent, now: Date, reveal: boolean) {
  return {
    ...renderEvent(event, now),
    site_id: event.siteId,
    channel_id: event.channelId,
    publishing_mode: event.mode,
    state: event.state,
    preview_path: masked(previewPath(event), reveal),
  };
}

function snapshotOfMedia(media: Media) {
  return {
    id: media.id,
    site_id: media.siteId,
    created: wireTime(media.created),
    title: media.title,
    duration: media.duration,
    published: media.published,
    event_id: media.eventId,
    clip: media.clip ?? null,
  };
}
