import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import {
  type Answer,
  contentOf,
  jsonSchema,
  type PathItem,
  parameter,
  queryParameters,
  type Schema,
} from '../../../http/openapi';
import { DASH, HLS, Item } from '../delivery/documents';
import { Formatted } from '../delivery/formats';
import { PlaylistQuery } from '../delivery/playlists';
import { field } from '../json-body';
import { json, operationsAt, type Row, type Seeded, text } from './operation';

export const DELIVERY_TAG = 'Public delivery';

/** The body of every refusal: clients read `message`. */
const MESSAGE = jsonSchema(z.object({ message: field(text, 'What is wrong.') }));

const ChannelDocument = z.object({
  status: field(z.enum(['active', 'idle']), 'Whether there is an event that viewers may watch.'),
  current_event: field(text.optional(), 'The id of that event.'),
});

/** Custom parameters are fields of an item, and of the document of a playlist. */
const MediaDocument = z.looseObject({
  title: field(text, 'The title.'),
  description: field(text, 'What it is about.'),
  kind: field(text, 'What it is.'),
  feed_instance_id: field(text, 'The id of this answer.'),
  playlist: field(z.array(z.looseObject(Item.shape)), 'Its items.'),
});
const PlaylistDocument = MediaDocument.extend({
  feedid: field(text, 'The id of the playlist.'),
  links: field(
    z.record(text, text),
    'The addresses of pages: `first`, `last`, and `next` and `previous` where there are any.',
  ),
});

type Contents = Readonly<Record<string, Schema>>;

/** A document as JSON and as Media RSS. */
const feedOf = (document: z.ZodType): Contents => ({
  'application/json': jsonSchema(document),
  'application/rss+xml': { type: 'string', description: 'The same as Media RSS.' },
});

/** What players and mobile apps ask for, without a credential. */
export function deliveryOperations(seeded: Seeded): Record<string, PathItem> {
  return operationsAt(DELIVERY_TAG, [...DOCUMENTS, ...STREAMS, ...FILES], seeded);
}

/** @param content without it, there is no answer 200. */
function delivered(
  path: `/${string}`,
  id: string,
  [summary, description]: readonly [summary: string, description: string],
  content: Contents | undefined,
  more: Pick<Row, 'parameters'> & Partial<Pick<Row, 'answers'>> & Pick<Answer, 'headers'> = {},
): Row {
  const { answers, parameters = [], headers } = more;
  const found: Answer = {
    description: summary,
    ...(headers && { headers }),
    ...(content && { content: contentOf(content) }),
  };
  return {
    ...{ at: `GET ${path}`, id, summary, description, parameters },
    answers: {
      ...(content && { 200: found }),
      ...answers,
      404: json('There is nothing under this id, or nothing that viewers may have now.', MESSAGE),
    },
  };
}

const WRONG_QUERY = { 400: json('A parameter is not of its form.', MESSAGE) };

const DOCUMENTS: readonly Row[] = [
  delivered(
    '/live/channels/:channelId.json',
    'channelDocument',
    [
      'The state of a channel',
      'Whether the channel has an event that viewers may watch. Players ask for it every few seconds.',
    ],
    { 'application/json': jsonSchema(ChannelDocument) },
  ),
  delivered(
    '/v2/media/:mediaId',
    'mediaDocument',
    [
      'The document of a media',
      'What a player takes as its playlist: a media, or a live event under its id. Custom parameters are fields of the item, and never replace another one.',
    ],
    feedOf(MediaDocument),
    { parameters: queryParameters(Formatted), answers: WRONG_QUERY },
  ),
  delivered(
    '/v2/playlists/:playlistId',
    'playlistDocument',
    [
      'The document of a playlist',
      'The media of a playlist that viewers may watch now. Other parameters are ignored.',
    ],
    feedOf(PlaylistDocument),
    { parameters: queryParameters(PlaylistQuery), answers: WRONG_QUERY },
  ),
];

const file = (description: string): Schema => ({ type: 'string', format: 'binary', description });
const rangeOf = (content: Contents): Record<number, Answer> => ({
  206: { description: 'The range of bytes that was asked for.', content: contentOf(content) },
  416: json('The file has no such range of bytes.', MESSAGE),
});

const VIDEO_OR_AUDIO = { 'video/*': file('A video.'), 'audio/*': file('An audio.') };

const TO_PACKAGER = {
  answers: { 302: { description: 'There are segments: `location` is their address.' } },
};

/** The playlist of a stream, and the packager's files of it. */
function streamOf(base: `/${string}`, id: string, summary: string, description: string): readonly Row[] {
  const files = [
    ['hls', 'Hls', HLS, 'playlists list'],
    ['dash', 'Dash', DASH, 'a manifest lists'],
  ] as const;
  return [
    delivered(
      `${base}.m3u8`,
      `${id}Manifest`,
      [
        summary,
        `An HLS playlist, ${description} Once there are segments, it leads to the playlist of the packager. Before, and without a packager, it lists none.`,
      ],
      { [HLS]: { type: 'string', description: 'An HLS playlist (RFC 8216).' } },
      TO_PACKAGER,
    ),
    delivered(
      `${base}.mpd`,
      `${id}Dash`,
      [
        `${summary} as DASH`,
        'Leads to the manifest of the packager. 404 while there is no segment, and without a packager.',
      ],
      undefined,
      TO_PACKAGER,
    ),
    ...files.map(([format, name, type, lists]) => {
      const content: Contents = {
        [type]: { type: 'string', description: 'What lists the segments.' },
        ...VIDEO_OR_AUDIO,
      };
      return delivered(
        `${base}/${format}/*file`,
        `${id}${name}File`,
        [
          `A file of ${summary.toLowerCase()} as ${name.toUpperCase()}`,
          `A playlist, a manifest or a segment, as the packager has it, or a range of it, as long as viewers may watch the stream. With \`dvr\` off, ${lists} the last 30 seconds of a live event.`,
        ],
        content,
        { answers: { ...rangeOf(content), 502: json('The packager does not answer.', MESSAGE) } },
      );
    }),
  ];
}

const STREAMS: readonly Row[] = [
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

const WIDTH = parameter('width', 'Pixels, of a picture that the emulator draws.', {
  type: 'integer',
  minimum: 1,
  maximum: 9999,
  default: 1280,
});

const fileOf = (
  path: `/${string}`,
  id: string,
  summary: string,
  description: string,
  content: Contents,
  parameters: readonly OpenApi.ParameterObject[] = [],
) =>
  delivered(path, id, [summary, `${description} A range of it can be asked for.`], content, {
    headers: FILE_HEADERS,
    parameters,
    answers: { ...rangeOf(content), 412: json('The file is not the one that `if-match` names.', MESSAGE) },
  });

const TRACK = { 'text/*': file('The track.'), 'application/*': file('The track.') };
const PICTURE = { 'image/*': file('The picture.') };

const FILES: readonly Row[] = [
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
