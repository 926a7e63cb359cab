import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import {
  type Answer,
  contentOf,
  jsonSchema,
  type PathItem,
  parameter,
  type Schema,
} from '../../../http/openapi';
import { DASH, HLS } from '../delivery/documents';
import type { PlaylistQuery } from '../delivery/playlists';
import { DYNAMIC_PLAYLIST } from '../resources/playlists';
import { field, json, operationsAt, type Row, type Seeded, text } from './operation';

export const DELIVERY_TAG = 'Public delivery';

/** The body of every refusal: clients read `message`. */
const MESSAGE = jsonSchema(z.object({ message: field(text, 'What is wrong.') }));

const ChannelDocument = z.object({
  status: field(z.enum(['active', 'idle']), 'Whether there is an event that viewers may watch.'),
  current_event: field(text.optional(), 'The id of that event.'),
});

const Source = z.object({
  file: field(text, 'Its address.'),
  type: field(text, 'Its media type.'),
  height: field(z.int().optional(), 'Pixels.'),
  width: field(z.int().optional(), 'Pixels.'),
  label: field(text.optional(), 'Its name in the menu of the player.'),
  bitrate: field(z.int().optional(), 'Bits a second.'),
  filesize: field(z.int().optional(), 'Bytes.'),
});
const Picture = z.object({
  src: field(text, 'Its address.'),
  width: field(z.int(), 'Pixels.'),
  type: field(text, 'Its media type.'),
});
const Track = z.object({
  kind: field(text, 'What it is.'),
  file: field(text, 'Its address.'),
  label: field(text.optional(), 'Its name in the menu of the player.'),
  language: field(text.optional(), 'The code of its language.'),
});

/** Custom parameters are fields next to these. */
const PlaylistItem = z.looseObject({
  title: field(text, 'The title.'),
  description: field(text, 'What it is about.'),
  mediaid: field(text, 'The id of the media.'),
  link: field(text, 'The page that it is shown on, or the address of its document.'),
  image: field(text, 'The address of its poster.'),
  images: field(z.array(Picture), 'The poster in several widths.'),
  feedid: field(text.optional(), 'The playlist that it is of.'),
  duration: field(z.int(), 'Whole seconds; 0 for a live event.'),
  pubdate: field(z.int(), 'Since when viewers may watch it, in seconds since 1970.'),
  tags: field(text, 'The tags, with commas between them.'),
  sources: field(z.array(Source), 'What a player plays; the first that it can.'),
  tracks: field(z.array(Track), 'Captions, chapters and others.'),
  variations: field(z.strictObject({}), 'Always empty.'),
});
const MediaDocument = z.looseObject({
  title: field(text, 'The title.'),
  description: field(text, 'What it is about.'),
  kind: field(text, 'What it is.'),
  feed_instance_id: field(text, 'The id of this answer.'),
  playlist: field(z.array(PlaylistItem), 'Its items.'),
});
const PlaylistDocument = MediaDocument.extend({
  feedid: field(text, 'The id of the playlist.'),
  links: field(
    z.record(text, text),
    'The addresses of pages: `first`, `last`, and `next` and `previous` where there are any.',
  ),
});
const MRSS: Schema = { type: 'string', description: 'The same as Media RSS.' };

type ParameterSchema = NonNullable<OpenApi.ParameterObject['schema']>;
type PlaylistParameter = Exclude<keyof typeof PlaylistQuery.shape, 'format'>;

/** What a viewer's request may ask of a playlist. */
const PLAYLIST_PARAMETERS: Readonly<Record<PlaylistParameter, readonly [string, ParameterSchema?]>> = {
  page_limit: [
    'How many items a page has at most.',
    { type: 'integer', minimum: 1, maximum: 500, default: 500 },
  ],
  page_offset: ['Which item is the first, from 1.', { type: 'integer', minimum: 1, default: 1 }],
  tags: ['Only media with these tags, separated by commas.'],
  tags_mode: ['Whether one of the tags is enough.', { type: 'string', enum: ['any', 'all'], default: 'all' }],
  sort: [
    'In place of the order of a dynamic playlist.',
    { type: 'string', enum: [...DYNAMIC_PLAYLIST.metadata.sort.schema.options] },
  ],
  backfill: [
    'Whether a playlist of searches or articles that finds nothing shows what is trending.',
    { type: 'string', enum: ['true', 'false'] },
  ],
  related_media_id: ['The media that those of a recommendations playlist are like.'],
  search: ['What a search playlist looks for.'],
  page_title: ['The title of the page, for an article matching playlist.'],
  page_description: ['The description of the page.'],
  page_keywords: ['The keywords of the page.'],
};

const FORMAT = parameter('format', 'The format of the answer.', {
  type: 'string',
  enum: ['json', 'mrss'],
  default: 'json',
});
const WIDTH = parameter('width', 'Pixels, of a picture that the emulator draws.', {
  type: 'integer',
  minimum: 1,
  maximum: 9999,
  default: 1280,
});

interface Delivered {
  readonly path: `/${string}`;
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  /** By media types; without it, there is no answer 200. */
  readonly content?: Readonly<Record<string, Schema>>;
  readonly headers?: NonNullable<Answer['headers']>;
  /** Beside 200 and 404. */
  readonly answers?: Readonly<Record<number, Answer>>;
}

/** What players and mobile apps ask for, without a credential. */
export function deliveryOperations(seeded: Seeded): Record<string, PathItem> {
  const rows = [...DOCUMENTS, ...STREAMS, ...FILES].map(
    ({ path, content, headers, answers, ...delivered }): Row => ({
      ...delivered,
      at: `GET ${path}`,
      answers: {
        ...(content && {
          200: { description: delivered.summary, ...(headers && { headers }), content: contentOf(content) },
        }),
        ...answers,
        404: json('There is nothing under this id, or nothing that viewers may have now.', MESSAGE),
      },
    }),
  );
  return operationsAt(DELIVERY_TAG, rows, seeded);
}

const WRONG_QUERY = { 400: json('A parameter is not of its form.', MESSAGE) };

const DOCUMENTS: readonly Delivered[] = [
  {
    path: '/live/channels/:channelId.json',
    id: 'channelDocument',
    summary: 'The state of a channel',
    description:
      'Whether the channel has an event that viewers may watch. Players ask for it every few seconds.',
    content: { 'application/json': jsonSchema(ChannelDocument) },
  },
  {
    path: '/v2/media/:mediaId',
    id: 'mediaDocument',
    summary: 'The document of a media',
    description:
      'What a player takes as its playlist: a media, or a live event under its id. Custom parameters are fields of the item, and never replace another one.',
    parameters: [FORMAT],
    content: { 'application/json': jsonSchema(MediaDocument), 'application/rss+xml': MRSS },
    answers: WRONG_QUERY,
  },
  {
    path: '/v2/playlists/:playlistId',
    id: 'playlistDocument',
    summary: 'The document of a playlist',
    description: 'The media of a playlist that viewers may watch now. Other parameters are ignored.',
    parameters: [
      FORMAT,
      ...Object.entries(PLAYLIST_PARAMETERS).map(([name, [says, schema]]) => parameter(name, says, schema)),
    ],
    content: { 'application/json': jsonSchema(PlaylistDocument), 'application/rss+xml': MRSS },
    answers: WRONG_QUERY,
  },
];

const file = (description: string): Schema => ({ type: 'string', format: 'binary', description });
const rangeOf = (content: Readonly<Record<string, Schema>>): Record<number, Answer> => ({
  206: { description: 'The range of bytes that was asked for.', content: contentOf(content) },
  416: json('The file has no such range of bytes.', MESSAGE),
});

const VIDEO_OR_AUDIO = { 'video/*': file('A video.'), 'audio/*': file('An audio.') };

const LEADS_ON = { 302: { description: 'There are segments: `location` is their address.' } };

/** The playlist of a stream, and what the packager has of it. */
function streamOf(
  base: `/${string}`,
  id: string,
  summary: string,
  description: string,
): readonly Delivered[] {
  const files = [
    ['hls', 'Hls', HLS, 'playlists list'],
    ['dash', 'Dash', DASH, 'a manifest lists'],
  ] as const;
  return [
    {
      path: `${base}.m3u8`,
      id: `${id}Manifest`,
      summary,
      description: `An HLS playlist, ${description} Once there are segments, it leads to the playlist of the packager. Before, and without a packager, it lists none.`,
      content: { [HLS]: { type: 'string', description: 'An HLS playlist (RFC 8216).' } },
      answers: LEADS_ON,
    },
    {
      path: `${base}.mpd`,
      id: `${id}Dash`,
      summary: `${summary} as DASH`,
      description:
        'Leads to the manifest of the packager. 404 while there is no segment, and without a packager.',
      answers: LEADS_ON,
    },
    ...files.map(([format, name, type, lists]): Delivered => {
      const content = {
        [type]: { type: 'string', description: 'What lists the segments.' } as const,
        ...VIDEO_OR_AUDIO,
      };
      return {
        path: `${base}/${format}/*file`,
        id: `${id}${name}File`,
        summary: `A file of ${summary.toLowerCase()} as ${name.toUpperCase()}`,
        description: `A playlist, a manifest or a segment, as the packager has it, or a range of it, as long as viewers may watch the stream. With \`dvr\` off, ${lists} the last 30 seconds of a live event.`,
        content,
        answers: { ...rangeOf(content), 502: json('The packager does not answer.', MESSAGE) },
      };
    }),
  ];
}

const STREAMS: readonly Delivered[] = [
  ...streamOf(
    '/live/events/:eventId',
    'event',
    'The stream of a live event',
    'while viewers may watch the event, and of its replay.',
  ),
  ...streamOf('/manifests/:mediaId', 'media', 'The stream of a media', 'while viewers may watch the media.'),
  ...streamOf(
    '/live/previews/:previewToken',
    'preview',
    'The preview of a live event',
    'as long as the event lasts, also before it is published. Its address is the `preview_url` of the channel.',
  ),
];

const FILE_HEADERS: NonNullable<Answer['headers']> = {
  etag: { description: 'The MD5 of an uploaded file, in quotes.', schema: { type: 'string' } },
  'accept-ranges': { description: 'Always `bytes`.', schema: { type: 'string' } },
};

const fileOf = (
  path: `/${string}`,
  id: string,
  summary: string,
  description: string,
  content: Readonly<Record<string, Schema>>,
  parameters: readonly OpenApi.ParameterObject[] = [],
): Delivered => ({
  path,
  id,
  summary,
  description: `${description} A range of it can be asked for.`,
  content,
  headers: FILE_HEADERS,
  parameters,
  answers: { ...rangeOf(content), 412: json('The file is not the one that `if-match` names.', MESSAGE) },
});

const TRACK = { 'text/*': file('The track.'), 'application/*': file('The track.') };
const PICTURE = { 'image/*': file('The picture.') };

const FILES: readonly Delivered[] = [
  fileOf(
    '/videos/:mediaId-:renditionId.:ending',
    'renditionFile',
    'The file of a rendition',
    'The uploaded file, as the emulator converts nothing.',
    VIDEO_OR_AUDIO,
  ),
  fileOf(
    '/live/masters/:token.mp4',
    'masterFile',
    'The file of a master',
    'The recording of a live event as it came from the encoder, at the `delivery_url` of its master, until that expires.',
    VIDEO_OR_AUDIO,
  ),
  fileOf(
    '/tracks/:trackId.:ending',
    'trackFile',
    'The file of a text track',
    'The file as it was uploaded, once the track is published.',
    TRACK,
  ),
  fileOf(
    '/v2/media/:mediaId/poster.:ending',
    'mediaPoster',
    'The poster of a media',
    'The picture that was uploaded as the poster, or one with the title that the emulator draws.',
    PICTURE,
    [WIDTH],
  ),
  fileOf(
    '/thumbnails/:thumbnailId{.:ending}',
    'thumbnailPicture',
    'The picture of a thumbnail',
    'The picture that was uploaded, or one with the title that the emulator draws. An ending such as `.jpg` may follow.',
    { ...PICTURE, 'video/*': file('A moving one.') },
    [WIDTH],
  ),
];
