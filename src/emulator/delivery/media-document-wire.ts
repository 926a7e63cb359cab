import { manifestPath, posterPath } from './addresses';
import type { Watchable } from './watchable';

const HLS = 'application/vnd.apple.mpegurl';
const POSTER_WIDTHS = [320, 640, 1280];

/**
 * What a player takes as its playlist. Every field is there and of its type, whatever the media lacks: typed clients
 * decode it strictly. Custom parameters lie flat in the item and never take the place of a field.
 */
export function renderMediaDocument(
  watchable: Watchable,
  { origin, feedId }: { origin: string; feedId: string },
) {
  const { id, title, tags, customParams, duration, published } = described(watchable);
  const link = `${origin}/v2/media/${id}`;
  const poster = `${origin}${posterPath(id)}`;
  const item = {
    title,
    description: '',
    mediaid: id,
    link,
    image: poster,
    images: POSTER_WIDTHS.map((width) => ({ src: `${poster}?width=${width}`, width, type: 'image/svg+xml' })),
    duration,
    pubdate: Math.floor(published.getTime() / 1000),
    tags: tags.join(','),
    sources: [{ file: `${origin}${manifestPath(watchable)}`, type: HLS }],
    tracks: [],
    variations: {},
  };
  return {
    title,
    description: '',
    kind: 'Single Item',
    feed_instance_id: feedId,
    playlist: [{ ...customParams, ...item }],
  };
}

function described(watchable: Watchable) {
  if (!watchable.live) return { ...watchable.media, published: watchable.media.created };
  const { event, channel } = watchable;
  const { title, tags, customParams } = channel.metadata;
  const published = event.publishedAt ?? event.created;
  return { id: event.id, title, tags, customParams, duration: 0, published };
}

/** What delivery answers when there is nothing: clients read `message`. */
export function renderMessage(message: string) {
  return { message };
}
