import type { Response } from 'express';
import * as z from 'zod';
import { field } from '../json-body';
import { type Media, publicationOf } from '../resources/media';
import { type Rendition, renditionPath } from '../resources/renditions';
import { lazy } from '../resources/resource-calls';
import { textTrackPath } from '../resources/text-tracks';
import { CLEARKEY_PATH } from '../upstreams/clearkey-license';
import {
  FAIRPLAY_CERTIFICATE_URL,
  FAIRPLAY_SPC_URL,
  PLAYREADY_LICENSE_URL,
  WIDEVINE_LICENSE_URL,
} from '../upstreams/config-service';
import { answer, type DeliveryParts } from './answers';
import { renderPosters, written } from './pictures';
import type { Watchable } from './watchable';

export const HLS = 'application/vnd.apple.mpegurl';
export const DASH = 'application/dash+xml';

const text = z.string();

const Source = z.object({
  file: field(text, 'Its address.'),
  type: field(text, 'Its media type.'),
  height: field(z.int().optional(), 'Pixels.'),
  width: field(z.int().optional(), 'Pixels.'),
  label: field(text.optional(), 'Its name in the menu of the player.'),
  bitrate: field(z.int().optional(), 'Bits a second.'),
  filesize: field(z.int().optional(), 'Bytes.'),
  drm: field(z.record(text, z.looseObject({})).optional(), 'Where players get the keys, by the DRM system.'),
});

const Track = z.object({
  kind: field(text, 'The kind of track.'),
  file: field(text.optional(), 'Its address. Tracks in the stream itself have none.'),
  label: field(text.optional(), 'Its name in the menu of the player.'),
  language: field(text.optional(), 'The code of its language.'),
});

const Picture = z.object({
  src: field(text, 'Its address.'),
  width: field(z.int(), 'Pixels.'),
  type: field(text, 'Its media type.'),
});

/** A playlist item, but for the custom parameters that lie flat in it. Typed clients take no fraction for an integer. */
export const Item = z.object({
  title: field(text, 'The title.'),
  description: field(text, 'The description.'),
  mediaid: field(text, 'The id of the media.'),
  link: field(text, 'The page that it is shown on, or the address of its document.'),
  image: field(text, 'The address of its poster.'),
  images: field(z.array(Picture), 'The poster in several widths.'),
  feedid: field(text.optional(), 'The playlist that it is of.'),
  duration: field(z.int(), 'Whole seconds; 0 for a live event.'),
  pubdate: field(z.int(), 'Since when viewers may watch it, in seconds since 1970.'),
  tags: field(text, 'The tags, with commas between them.'),
  sources: field(z.array(Source), 'The sources; a player plays the first one that it can.'),
  tracks: field(z.array(Track), 'Captions, chapters and others.'),
  variations: field(z.strictObject({}), 'Always empty.'),
});

type Source = z.output<typeof Source>;
type Track = z.output<typeof Track>;
type Item = z.output<typeof Item>;

interface Shown {
  readonly origin: string;
  readonly feedId?: string;
}

const OF_NO_EVENT = { permalink: null, description: null };

/** Every field of its item is present with its type, also without a value: typed clients decode it strictly. */
export async function entryOf(context: DeliveryParts, watchable: Watchable, { origin, feedId }: Shown) {
  const { id, metadata } = watchable;
  const { permalink, description } = watchable.live ? OF_NO_EVENT : watchable.media.metadata;
  const published = watchable.live
    ? (watchable.event.publishedAt ?? watchable.event.created)
    : publicationOf(watchable.media);
  const address = `${origin}/v2/media/${id}`;
  const item: Item = {
    title: metadata.title,
    mediaid: id,
    link: permalink ?? address,
    ...(await renderPosters(context, watchable, address)),
    ...(feedId !== undefined && { feedid: feedId }),
    duration: watchable.live ? 0 : Math.round(watchable.media.duration),
    pubdate: Math.floor(published.getTime() / 1000),
    description: description ?? '',
    tags: metadata.tags.join(','),
    sources: sourcesOf(context, watchable, origin),
    // Tracks in the stream itself have no file.
    tracks: watchable.live
      ? watchable.channel.metadata.text_tracks.map((track) => ({ kind: 'captions', ...track }))
      : tracksOf(context, watchable.media, origin),
    variations: {},
  };
  return { item, customParams: metadata.custom_params };
}

type Entry = Awaited<ReturnType<typeof entryOf>>;

export interface Feed {
  readonly title: string;
  readonly description: string;
  readonly kind: string;
  /** Of a playlist alone, as are its links and custom parameters. */
  readonly feedid?: string;
  readonly links?: Readonly<Record<string, string>>;
  readonly customParams?: Readonly<Record<string, string>>;
  readonly entries: readonly Entry[];
  readonly feedInstanceId: string;
}

export async function mediaFeed(context: DeliveryParts, watchable: Watchable, origin: string): Promise<Feed> {
  const entry = await entryOf(context, watchable, { origin });
  const { title, description } = entry.item;
  return { title, description, kind: 'Single Item', entries: [entry], feedInstanceId: context.newId('feed') };
}

/** Names that only documents of playlists have as fields. */
const OF_PLAYLISTS = ['feedid', 'links'];

/** Custom parameters lie flat next to the fields of a document, and never take the place of one. */
function flattened(fields: object, customParams: Readonly<Record<string, string>>): object {
  const own = Object.entries(customParams).filter(
    ([name]) => !Object.hasOwn(fields, name) && !OF_PLAYLISTS.includes(name),
  );
  return { ...fields, ...Object.fromEntries(own) };
}

/** Players try sources in their order; external content is played from where it is. */
function sourcesOf(context: DeliveryParts, watchable: Watchable, origin: string): Source[] {
  if (watchable.live) return streamsOf(context, `/live/events/${watchable.id}`, watchable.id, origin);
  const { state, packaging } = context;
  const { media } = watchable;
  if (media.sourceUrl !== null) return [{ file: media.sourceUrl, type: contentTypeOf(media) }];
  const streams = streamsOf(context, `/manifests/${media.id}`, media.id, origin);
  if (packaging.encrypts(media)) return streams;
  const ready = state.renditions.of(media.id).filter(({ status }) => status === 'ready' && media.file);
  ready.sort((a, b) => a.filesize - b.filesize || a.height - b.height);
  const renditions = ready.map((rendition) => {
    const { height, width, filesize } = rendition;
    return {
      file: `${origin}${renditionPath(rendition)}`,
      type: typeOfRendition(media, rendition),
      ...(height > 0 && { height, width }),
      label: height > 0 ? `${height}p` : media.mediaType === 'audio' ? 'Audio' : 'Original',
      ...(media.duration > 0 && { bitrate: Math.round((filesize * 8) / media.duration) }),
      filesize,
    };
  });
  return [...streams, ...renditions];
}

/**
 * The streams that the packager has, or will have soon. For protected ones DASH is first: browsers without
 * its systems skip it, while many start HLS and fail at FairPlay. For others HLS is first, which everything
 * plays.
 */
function streamsOf(context: DeliveryParts, path: string, id: string, origin: string): Source[] {
  const { packaging, state } = context;
  const hls = { file: `${origin}${path}.m3u8`, type: HLS };
  const dash = { file: `${origin}${path}.mpd`, type: DASH };
  const packaged = packaging.deliverable(id);
  const media = state.media.find(id);
  if (media && !packaging.encrypts(media)) return packaged?.dash ? [hls, dash] : [hls];
  if (!packaging.isExpected(id)) return [hls];
  const clearkey = { url: `${origin}${CLEARKEY_PATH}` };
  const systems = {
    dash: { widevine: { url: WIDEVINE_LICENSE_URL }, playready: { url: PLAYREADY_LICENSE_URL }, clearkey },
    hls: {
      fairplay: FAIRPLAY,
      clearkey: { ...clearkey, ...(packaged?.hls && { keyIds: packaged.hls.keyIds.map(base64Url) }) },
    },
  };
  return [
    ...(packaged && !packaged.dash ? [] : [{ ...dash, drm: systems.dash }]),
    ...(packaged && !packaged.hls ? [] : [{ ...hls, drm: systems.hls }]),
  ];
}

const base64Url = (uuid: string) => Buffer.from(uuid.replaceAll(/[{}-]/g, ''), 'hex').toString('base64url');

const FAIRPLAY = { processSpcUrl: FAIRPLAY_SPC_URL, certificateUrl: FAIRPLAY_CERTIFICATE_URL };

/** The media type that a media is delivered with. It is never one that a browser shows as a page. */
function contentTypeOf({ mimeType, mediaType, hostingType }: Media): string {
  const type = mimeType?.split(';')[0]?.trim().toLowerCase() ?? '';
  const streams = hostingType === 'external' && (type === HLS || type === DASH);
  if (streams || /^(?:video|audio)\/[\w.+-]+$/.test(type)) return type;
  return mediaType === 'audio' ? 'audio/mp4' : 'video/mp4';
}

export function typeOfRendition(media: Media, { file, height }: Rendition): string {
  if (!file) return contentTypeOf(media);
  return height > 0 ? 'video/mp4' : 'audio/mp4';
}

function tracksOf({ state }: DeliveryParts, { id }: Media, origin: string): Track[] {
  return state.textTracks
    .of(id)
    .filter(({ isPublished, status }) => isPublished && status === 'ready')
    .toSorted((a, b) => a.metadata.position - b.metadata.position)
    .map((track) => {
      const { track_kind: kind, label, srclang: language } = track.metadata;
      return {
        kind,
        file: `${origin}${textTrackPath(track)}`,
        ...(label !== null && { label }),
        ...(language !== null && { language }),
      };
    });
}

export const Formatted = z.object({
  format: field(
    z.enum(['json', 'mrss'], 'must be json or mrss').default('json'),
    'The format of the answer.',
  ),
});

export async function sendFeed(response: Response, feed: Feed, format: 'json' | 'mrss'): Promise<void> {
  if (format === 'mrss')
    return answer(response, '', await renderMrss(feed), 'application/rss+xml; charset=utf-8');
  const { entries, feedInstanceId, customParams = {}, ...fields } = feed;
  const playlist = entries.map((entry) => flattened(entry.item, entry.customParams));
  answer(response, '', flattened({ ...fields, playlist, feed_instance_id: feedInstanceId }, customParams));
}

/** Loaded for the first document that is asked for as MRSS: few are. */
const builder = lazy(async () => {
  const { default: Builder } = await import('fast-xml-builder');
  return new Builder({
    attributeNamePrefix: '@',
    ignoreAttributes: false,
    format: true,
    suppressEmptyNode: true,
    suppressBooleanAttributes: false,
    tagValueProcessor: (_name, value) => written(value),
    attributeValueProcessor: (_name, value) => written(value),
  });
});

/** RSS 2.0 with the extensions of Media RSS 1.5 and those of the platform's player, which reads it as a playlist. */
async function renderMrss(feed: Feed): Promise<string> {
  const { title, description, kind, feedid, links, customParams = {}, entries, feedInstanceId } = feed;
  const channel = {
    title,
    description,
    link: links?.first ?? entries[0]?.item.link ?? '',
    'jwplayer:kind': kind,
    ...(feedid !== undefined && { 'jwplayer:feedid': feedid }),
    'jwplayer:feed_instance_id': feedInstanceId,
    ...Object.fromEntries(
      Object.entries(links ?? {}).map(([name, address]) => [`jwplayer:link_${name}`, address]),
    ),
  };
  const writer = await builder();
  return writer.build({
    '?xml': { '@version': '1.0', '@encoding': 'UTF-8' },
    rss: {
      '@version': '2.0',
      '@xmlns:media': 'http://search.yahoo.com/mrss/',
      '@xmlns:jwplayer': 'http://rss.jwpcdn.com/',
      channel: { ...withParams(channel, customParams), item: entries.map(itemElement) },
    },
  });
}

function itemElement({ item, customParams }: Entry): object {
  const { title, mediaid, link, images, image, feedid, duration, pubdate, description, tags } = item;
  const element = {
    title,
    link,
    description,
    pubDate: new Date(pubdate * 1000).toUTCString(),
    guid: { '@isPermaLink': 'false', '#text': mediaid },
    'media:group': {
      'media:content': item.sources.map(({ file, type, height, width, label, bitrate, filesize }) => ({
        '@url': file,
        '@type': type,
        '@medium': type.startsWith('audio/') ? 'audio' : 'video',
        '@duration': duration,
        ...(width !== undefined && { '@width': width }),
        ...(height !== undefined && { '@height': height }),
        // In kilobits a second, unlike the JSON document.
        ...(bitrate !== undefined && { '@bitrate': Math.round(bitrate / 1000) }),
        ...(filesize !== undefined && { '@fileSize': filesize }),
        ...(label !== undefined && { 'media:title': label }),
      })),
      'media:thumbnail': images.map(({ src, width }) => ({ '@url': src, '@width': width })),
      'media:keywords': tags,
    },
    'jwplayer:image': image,
    ...(feedid !== undefined && { 'jwplayer:feedid': feedid }),
    // Tracks in the stream itself have no file.
    'jwplayer:track': item.tracks.flatMap(({ kind, file, label, language }) =>
      file === undefined
        ? []
        : {
            '@file': file,
            '@kind': kind,
            ...(label !== undefined && { '@label': label }),
            ...(language !== undefined && { '@language': language }),
          },
    ),
  };
  return withParams(element, customParams);
}

/** A name that XML allows for an element, without a colon. */
const NAME = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
/** Names that the player would read as fields of the item. */
const TAKEN = ['source', 'sources', 'tracks', 'images', 'title', 'description', 'link', 'file', 'mediaid'];

function withParams(element: object, customParams: Readonly<Record<string, string>>): object {
  const own = Object.entries(customParams).flatMap(([name, value]) => {
    const tag = `jwplayer:${name}`;
    return NAME.test(name) && !TAKEN.includes(name) && !Object.hasOwn(element, tag) ? [[tag, value]] : [];
  });
  return { ...element, ...Object.fromEntries(own) };
}
