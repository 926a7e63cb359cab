import type { Express, RequestHandler, Response } from 'express';
import { onlyMethods } from '../../http/app';
import { html } from '../../http/html';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import { isPublished, type Media, publicationOf } from '../library/media';
import type { Channel } from '../live/channels';
import { isOver, isViewable } from '../live/event-machine';
import type { LiveEvent } from '../live/events';
import type { EmulatorState } from '../state';

const HLS = 'application/vnd.apple.mpegurl';
const NO_CHANNEL = 'There is no channel with this id.';
const NO_MEDIA = 'There is nothing to watch under this id: it is unknown, or not published yet.';

/** Public delivery: what players and mobile apps ask for, without a credential. */
export function mountDelivery(app: Express, { state, clock, newId }: EmulatorContext): void {
  app.use(['/live', '/manifests', '/v2/media'], openToAll);
  const get = onlyMethods('GET');

  app
    .route('/live/channels/:channelId.json')
    .get((request, response) => {
      const channel = state.channels.find(request.params.channelId);
      answer(response, NO_CHANNEL, channel && renderChannelDocument(eventOnAir(state, channel)));
    })
    .all(get);

  app
    .route('/v2/media/:mediaId')
    .get((request, response) => {
      const watchable = watchableOf(state, clock.now(), request.params.mediaId);
      const shown = { origin: originOf(request), feedId: newId() };
      answer(response, NO_MEDIA, watchable && renderMediaDocument(watchable, shown));
    })
    .all(get);

  app
    .route('/v2/media/:mediaId/poster.svg')
    .get((request, response) => {
      const watchable = watchableOf(state, clock.now(), request.params.mediaId);
      const title = watchable?.live ? watchable.channel.metadata.title : watchable?.media.metadata.title;
      const width = Number(/^[1-9]\d{0,3}$/.exec(String(request.query.width))?.[0] ?? 1280);
      answer(response, NO_MEDIA, title === undefined ? undefined : poster(title, width), 'image/svg+xml');
    })
    .all(get);

  const manifests: Readonly<Record<string, (id: string) => { live: boolean } | undefined>> = {
    '/live/events/:id.m3u8': (id) => watchableOf(state, clock.now(), id),
    '/manifests/:id.m3u8': (id) => watchableOf(state, clock.now(), id),
    '/live/previews/:id.m3u8': (token) => previewOf(state, token),
  };
  for (const [path, find] of Object.entries(manifests)) {
    app
      .route(path)
      .get((request, response) => {
        const found = find(String(request.params.id));
        answer(response, NO_MEDIA, found && manifest(found), HLS);
      })
      .all(get);
  }
}

/** The preview of an event that is on; who holds the token may watch before it is published. */
function previewOf({ channels, events }: EmulatorState, token: string): { live: true } | undefined {
  const event = events.all().find(({ previewToken }) => previewToken === token);
  return event && channels.find(event.channelId) && !isOver(event.state) ? { live: true } : undefined;
}

/** What is delivered changes with the next publish or disconnect, so no answer is kept. Of a 404, clients read `message`. */
function answer(
  response: Response,
  missing: string,
  found: object | string | undefined,
  type?: string,
): void {
  response.status(found === undefined ? 404 : 200).set('cache-control', 'no-store');
  if (found === undefined) response.json({ message: missing });
  else if (typeof found === 'string') response.type(type ?? 'text').send(found);
  else response.json(found);
}

/**
 * For what pages of any origin load without a credential: answers say so, and a preflight is answered here. The
 * security headers of the rest of the platform forbid it otherwise.
 */
export const openToAll: RequestHandler = openFor('GET, HEAD');

/** The same for other methods. `exposed` names the headers of answers that a page may read. */
export function openFor(methods: string, exposed?: string): RequestHandler {
  return (request, response, next) => {
    response.set({
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      ...(exposed !== undefined && { 'access-control-expose-headers': exposed }),
    });
    if (request.method !== 'OPTIONS') {
      next();
      return;
    }
    response
      .set({
        'access-control-allow-methods': methods,
        'access-control-allow-headers': request.get('access-control-request-headers') ?? '*',
        'access-control-max-age': '600',
      })
      .status(204)
      .end();
  };
}

/** What viewers may watch under an id: an event that is on, or a video on demand. */
type Watchable =
  | { readonly live: true; readonly event: LiveEvent; readonly channel: Channel }
  | { readonly live: false; readonly media: Media };

/** Undefined for what doesn't exist and for what viewers may not see alike, so that nobody learns of it from outside. */
function watchableOf(
  { events, channels, media }: EmulatorState,
  now: Date,
  id: string,
): Watchable | undefined {
  const event = events.find(id);
  const channel = channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    return isViewable(event.state) ? { live: true, event, channel } : undefined;
  }
  const found = media.find(id);
  return found && isPublished(found, now) ? { live: false, media: found } : undefined;
}

/** The event that viewers of a channel see now. */
function eventOnAir({ events }: EmulatorState, channel: Channel): LiveEvent | undefined {
  const event = events.find(channel.currentEventId ?? '');
  return event && isViewable(event.state) ? event : undefined;
}

/** The path of the HLS playlist that a player is given. */
function manifestPath(watchable: Watchable): string {
  return watchable.live ? `/live/events/${watchable.event.id}.m3u8` : `/manifests/${watchable.media.id}.m3u8`;
}

/** The public document of a channel. To viewers a channel without an event that they may watch is idle. */
function renderChannelDocument(event: LiveEvent | undefined) {
  return event ? { status: 'active', current_event: event.id } : { status: 'idle' };
}

const POSTER_WIDTHS = [320, 640, 1280];

/**
 * What a player takes as its playlist. Every field is there and of its type, whatever the media lacks: typed clients
 * decode it strictly. Custom parameters lie flat in the item and never take the place of a field.
 */
function renderMediaDocument(watchable: Watchable, { origin, feedId }: { origin: string; feedId: string }) {
  const { id, title, tags, customParams, duration, published } = described(watchable);
  const link = `${origin}/v2/media/${id}`;
  const poster = `${link}/poster.svg`;
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
  if (!watchable.live) {
    const { media } = watchable;
    const { title, tags, custom_params: customParams } = media.metadata;
    return {
      id: media.id,
      title,
      tags,
      customParams,
      duration: media.duration,
      published: publicationOf(media),
    };
  }
  const { event, channel } = watchable;
  const { title, tags, custom_params: customParams } = channel.metadata;
  const published = event.publishedAt ?? event.created;
  return { id: event.id, title, tags, customParams, duration: 0, published };
}

/**
 * An HLS media playlist (RFC 8216) that lists no segment, because the emulator packages no media. It is there when a
 * player may have it and isn't when not, so that clients see the right answer at the right moment.
 */
function manifest({ live }: { readonly live: boolean }): string {
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:5',
    '#EXT-X-TARGETDURATION:4',
    '#EXT-X-MEDIA-SEQUENCE:0',
    '# The emulator packages no media: no segment follows.',
    ...(live ? [] : ['#EXT-X-PLAYLIST-TYPE:VOD', '#EXT-X-ENDLIST']),
  ];
  return `${lines.join('\n')}\n`;
}

const MAX_LINE_LENGTH = 36;

/** A picture of 16 to 9 that shows a title, as SVG: the emulator takes no picture from a stream. */
function poster(title: string, width: number): string {
  const line = title.length > MAX_LINE_LENGTH ? `${title.slice(0, MAX_LINE_LENGTH - 1)}…` : title;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.round((width * 9) / 16)}" viewBox="0 0 1280 720">
<defs><linearGradient id="sky" x1="0" y1="0" x2="1" y2="1"><stop stop-color="#1f4744"/><stop offset="1" stop-color="#0c1413"/></linearGradient></defs>
<rect width="1280" height="720" fill="url(#sky)"/>
<text x="640" y="375" fill="#eaf0ee" font-family="system-ui, sans-serif" font-size="56" font-weight="600" text-anchor="middle">${line}</text>
</svg>
`.toString();
}
