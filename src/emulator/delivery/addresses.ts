import type { Watchable } from './watchable';

/** The path of the HLS playlist that a player is given. */
export function manifestPath(watchable: Watchable): string {
  return watchable.live ? `/live/events/${watchable.event.id}.m3u8` : `/manifests/${watchable.media.id}.m3u8`;
}

export function posterPath(id: string): string {
  return `/v2/media/${id}/poster.svg`;
}
