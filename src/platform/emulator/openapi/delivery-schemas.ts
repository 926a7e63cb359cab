import * as z from 'zod';
import type { Schema } from '../../../http/openapi';
import { HLS } from '../delivery/documents';
import { jsonSchema } from './schemas';

/** What there is nothing of, or what is asked for wrongly: clients read `message`. */
export const MESSAGE = jsonSchema(z.object({ message: z.string().meta({ description: 'What is wrong.' }) }));

/** The public document of a channel. */
export const CHANNEL_DOCUMENT = jsonSchema(
  z.object({
    status: z
      .enum(['active', 'idle'])
      .meta({ description: 'Whether there is an event that viewers may watch.' }),
    current_event: z.string().optional().meta({ description: 'The id of that event.' }),
  }),
);

const told = <S extends z.ZodType>(schema: S, description: string) => schema.meta({ description });

const Source = z.object({
  file: told(z.string(), 'Its address.'),
  type: told(z.string(), 'Its media type.'),
  height: told(z.int().optional(), 'Pixels.'),
  width: told(z.int().optional(), 'Pixels.'),
  label: told(z.string().optional(), 'Its name in the menu of the player.'),
  bitrate: told(z.int().optional(), 'Bits a second.'),
  filesize: told(z.int().optional(), 'Bytes.'),
});

const Picture = z.object({
  src: told(z.string(), 'Its address.'),
  width: told(z.int(), 'Pixels.'),
  type: told(z.string(), 'Its media type.'),
});

const Track = z.object({
  kind: told(z.string(), 'What it is.'),
  file: told(z.string(), 'Its address.'),
  label: told(z.string().optional(), 'Its name in the menu of the player.'),
  language: told(z.string().optional(), 'The code of its language.'),
});

/** Custom parameters lie flat in it. */
const PlaylistItem = z.looseObject({
  title: told(z.string(), 'The title.'),
  description: told(z.string(), 'What it is about.'),
  mediaid: told(z.string(), 'The id of the media.'),
  link: told(z.string(), 'The page that it is shown on, or the address of its document.'),
  image: told(z.string(), 'The address of its poster.'),
  images: told(z.array(Picture), 'The poster in several widths.'),
  feedid: told(z.string().optional(), 'The playlist that it is of.'),
  duration: told(z.int(), 'Whole seconds; 0 for a live event.'),
  pubdate: told(z.int(), 'Since when viewers may watch it, in seconds since 1970.'),
  tags: told(z.string(), 'The tags, with commas between them.'),
  sources: told(z.array(Source), 'What a player plays; the first that it can.'),
  tracks: told(z.array(Track), 'Captions, chapters and others.'),
  variations: told(z.strictObject({}), 'Always empty.'),
});

const Feed = z.looseObject({
  title: told(z.string(), 'The title.'),
  description: told(z.string(), 'What it is about.'),
  kind: told(z.string(), 'What it is.'),
  feed_instance_id: told(z.string(), 'The id of this answer.'),
  playlist: told(z.array(PlaylistItem), 'Its items.'),
});

/** The document of a media. */
export const MEDIA_DOCUMENT = jsonSchema(Feed);

/** A page of a playlist. */
export const PLAYLIST_DOCUMENT = jsonSchema(
  Feed.extend({
    feedid: told(z.string(), 'The id of the playlist.'),
    links: told(
      z.record(z.string(), z.string()),
      'The addresses of pages: `first`, `last`, and `next` and `previous` where there are any.',
    ),
  }),
);

export const MRSS: Schema = { type: 'string', description: 'The same as Media RSS.' };
export const MANIFEST: Schema = { type: 'string', description: 'An HLS playlist (RFC 8216).' };

const ORIGIN = 'http://127.0.0.1:8080';
const ADDRESS = `${ORIGIN}/v2/media/Xw7a9bPq`;

const item = {
  show: 'evening',
  title: 'Town hall',
  mediaid: 'Xw7a9bPq',
  link: ADDRESS,
  image: `${ADDRESS}/poster.svg`,
  images: [{ src: `${ADDRESS}/poster.svg?width=640`, width: 640, type: 'image/svg+xml' }],
  duration: 63,
  pubdate: 1_893_499_200,
  description: '',
  tags: 'news',
  sources: [
    { file: `${ORIGIN}/manifests/Xw7a9bPq.m3u8`, type: HLS },
    {
      file: `${ORIGIN}/videos/Xw7a9bPq-r3nd1t10.mp4`,
      type: 'video/mp4',
      height: 720,
      width: 1280,
      label: '720p',
      bitrate: 134_218,
      filesize: 1_048_576,
    },
  ],
  tracks: [{ kind: 'captions', file: `${ORIGIN}/tracks/tr4ckAbc.vtt`, label: 'English', language: 'en' }],
  variations: {},
};

export const MEDIA_EXAMPLE = {
  title: 'Town hall',
  description: '',
  kind: 'Single Item',
  playlist: [item],
  feed_instance_id: '8a0c4f9e-3f2b-4a52-9d0c-5c1f1f5b1c11',
};

const PAGE = `${ORIGIN}/v2/playlists/p1ay1ist?page_limit=500&page_offset=1`;

export const PLAYLIST_EXAMPLE = {
  ...MEDIA_EXAMPLE,
  title: 'Best of the week',
  kind: 'MANUAL',
  feedid: 'p1ay1ist',
  links: { first: PAGE, last: PAGE },
  playlist: [{ ...item, feedid: 'p1ay1ist' }],
};

export const MANIFEST_EXAMPLE = `#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:4
#EXT-X-MEDIA-SEQUENCE:0
`;
