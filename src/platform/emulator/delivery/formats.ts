import type { Response } from 'express';
import * as z from 'zod';
import { field } from '../json-body';
import { once } from '../resources/resource-calls';
import { answer } from './answers';
import { type Entry, type Feed, renderJson } from './documents';

type Format = 'json' | 'mrss';

/** The parameter of every document. */
export const Formatted = z.object({
  format: field(
    z.enum(['json', 'mrss'], 'must be json or mrss').default('json'),
    'The format of the answer.',
  ),
});

/** Sends a feed in the format that is asked for. */
export async function sendFeed(response: Response, feed: Feed, format: Format): Promise<void> {
  if (format === 'mrss') answer(response, '', await renderMrss(feed), 'application/rss+xml; charset=utf-8');
  else answer(response, '', renderJson(feed));
}

/** Loaded for the first document that is asked for as MRSS: few are. */
const builder = once(async () => {
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

/** Control characters and lone surrogates, which no XML 1.0 document can have, however they are written. */
const NO_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

function written(value: unknown): string {
  return String(value).replaceAll(NO_XML, '');
}

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
    // What is in the stream itself has no file.
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
/** What the player would read as a field of the item. */
const TAKEN = ['source', 'sources', 'tracks', 'images', 'title', 'description', 'link', 'file', 'mediaid'];

/** Custom parameters whose names XML allows, where they don't take the place of something. */
function withParams(element: object, customParams: Readonly<Record<string, string>>): object {
  const own = Object.entries(customParams).flatMap(([name, value]) => {
    const tag = `jwplayer:${name}`;
    return NAME.test(name) && !TAKEN.includes(name) && !Object.hasOwn(element, tag) ? [[tag, value]] : [];
  });
  return { ...element, ...Object.fromEntries(own) };
}
