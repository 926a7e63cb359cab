import type { Express, Request, Response } from 'express';
import { routeAt } from '../../../http/app';
import { isOver } from '../live/live-event';
import type { Channel } from '../resources/channels';
import { answer, countBytes, type DeliveryParts, NO_MEDIA, openFiles } from './answers';
import { HLS } from './documents';
import { watchableOf } from './watchable';

interface Shown {
  readonly id: string;
  readonly siteId: string;
  readonly live: boolean;
  /** Whether the owner asks, who may see the problem. */
  readonly isPreview?: boolean;
  /** How many seconds of it viewers may have; undefined for all. */
  readonly window: number | undefined;
}

/** The length of a live stream without DVR: more than players keep before them. */
const WINDOW_SECONDS = 30;

const PLACES = [
  ['/live/events', shownUnder],
  ['/manifests', shownUnder],
  ['/live/previews', previewUnder],
] as const;

/** Manifests and playlists, and the segments below them. Each request gets only streams that viewers may watch now. */
export function mountManifests(app: Express, parts: DeliveryParts): void {
  const { packaging } = parts;
  for (const [path, find] of PLACES)
    for (const [ending, format] of FORMATS) {
      routeAt(app, `${path}/:id.${ending}`).get(({ params: { id } }, response) => {
        const shown = find(parts, id);
        const packaged = shown && packaging.deliverable(shown.id)?.[format];
        const why = shown && packaging.whyNothing(shown.id);
        if (packaged) redirect(response, `${path}/${id}`, packaged.path, shown);
        // Unlike a stream without a segment, this needs a repair: the embed reads the code, and shows the message.
        else if (why !== undefined)
          answer(response.status(404), '', {
            message: shown?.isPreview ? why : NOT_AVAILABLE,
            code: 'not_available',
          });
        else if (format === 'hls') answer(response, NO_MEDIA, shown && emptyPlaylist(shown), HLS);
        else answer(response, shown ? NO_SEGMENT : NO_MEDIA, undefined);
      });
      routeAt(app, `${path}/:id/${format}/*file`).get(openFiles, async (request, response) => {
        const { id, file } = request.params;
        const shown = find(parts, id);
        if (!shown || !packaging.deliverable(shown.id)?.[format] || !file.every((part) => NAME.test(part)))
          return answer(response, NO_MEDIA, undefined);
        await forward(parts, shown, [format, ...file].join('/'), request, response);
      });
    }
}

const FORMATS = [
  ['m3u8', 'hls'],
  ['mpd', 'dash'],
] as const;

const NO_SEGMENT = 'There is no segment to play under this id yet.';
const NOT_AVAILABLE = 'The stream is not available.';

/** A part of a path below a stream; dots alone would leave it. */
const NAME = /^\w[\w.-]*$/;

/** The platform has no manifest of content that is elsewhere. */
function shownUnder({ state, clock }: DeliveryParts, id: string): Shown | undefined {
  const watchable = watchableOf(state, clock.now(), id);
  if (!watchable) return undefined;
  if (watchable.live) return live(watchable.event, watchable.channel);
  const { hostingType, siteId } = watchable.media;
  return hostingType === 'hosted' ? { id, siteId, live: false, window: undefined } : undefined;
}

/** The preview of an event that is on; the holder of the token may watch before it is published. */
function previewUnder({ state: { channels, events } }: DeliveryParts, token: string): Shown | undefined {
  const event = events.all().find(({ previewToken }) => previewToken === token);
  const channel = channels.find(event?.channelId ?? '');
  return event && channel && !isOver(event.state) ? { ...live(event, channel), isPreview: true } : undefined;
}

function live(
  { id, siteId }: { readonly id: string; readonly siteId: string },
  { metadata }: Channel,
): Shown {
  return { id, siteId, live: true, window: metadata.dvr === 'off' ? WINDOW_SECONDS : undefined };
}

function redirect(response: Response, address: string, path: string, { id, window }: Shown): void {
  const below = path.slice(`/media/${id}`.length);
  response.set('cache-control', 'no-store').redirect(302, `${address}${below}${queryOf(window)}`);
}

function queryOf(window: number | undefined): string {
  return window === undefined ? '' : `?window=${window}`;
}

const ASKED = ['range', 'if-range', 'if-none-match', 'if-modified-since'];
const ANSWERED = [
  'content-type',
  'content-length',
  'content-range',
  'accept-ranges',
  'etag',
  'last-modified',
  'cache-control',
];
const MANIFEST = /\.(?:m3u8|mpd)$/;

/** Answers with a file of the packager, as it comes: it keeps no copy, and a slow viewer slows it down. */
async function forward(
  parts: DeliveryParts,
  { id, siteId, window }: Shown,
  file: string,
  request: Request,
  response: Response,
): Promise<void> {
  const ending = new AbortController();
  response.on('close', () => ending.abort());
  const outcome = await parts.packaging.client?.forward({
    path: `/media/${id}/${file}${MANIFEST.test(file) ? queryOf(window) : ''}`,
    method: request.method === 'HEAD' ? 'HEAD' : 'GET',
    headers: headersOf(request.headers, ASKED),
    signal: ending.signal,
  });
  if (!outcome?.ok) {
    if (!response.destroyed) fail(response);
    return;
  }
  const { statusCode = 0, headers } = outcome.value;
  const isFound = [200, 206, 304, 416].includes(statusCode);
  if (!isFound || response.destroyed) {
    outcome.value.destroy();
    if (response.destroyed) return;
    if (statusCode === 404) answer(response, NO_MEDIA, undefined);
    else fail(response);
    return;
  }
  response.status(statusCode).set(headersOf(headers, ANSWERED));
  // Live streams and their publication change, and a cache must not decide who may watch.
  const { 'cache-control': caching } = headers;
  if (MANIFEST.test(file)) response.set('cache-control', 'no-store');
  else if (caching !== undefined) response.set('cache-control', caching.replace(/\bpublic\b/, 'private'));
  countBytes(parts, response, siteId);
  outcome.value.on('error', () => response.destroy()).pipe(response);
}

function headersOf(
  headers: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

function fail(response: Response): void {
  answer(response.status(502), '', { message: 'The packager does not answer. Try again in a moment.' });
}

/** For a stream without a segment. It exists only while players may have it, so that the status is right. */
function emptyPlaylist({ live }: Shown): string {
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
