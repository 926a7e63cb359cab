import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import type { Answer, Example, Schema } from '../../../http/openapi';
import { DASH, HLS } from '../delivery/documents';
import type { PlaylistQuery } from '../delivery/playlists';
import { DYNAMIC_PLAYLIST } from '../resources/playlists';
import {
  CHANNEL_DOCUMENT,
  MANIFEST,
  MANIFEST_EXAMPLE,
  MEDIA_DOCUMENT,
  MEDIA_EXAMPLE,
  MESSAGE,
  MRSS,
  PLAYLIST_DOCUMENT,
  PLAYLIST_EXAMPLE,
} from './delivery-schemas';
import { operation, type PathItem, pathParameters, type Seeded, templateOf } from './operation';

export const DELIVERY_TAG = 'Public delivery';

const JSON_TYPE = 'application/json';
const RSS_TYPE = 'application/rss+xml';

const refused = (description: string): Answer => ({ description, content: { [JSON_TYPE]: MESSAGE } });
const ABSENT = refused('There is nothing under this id, or nothing that viewers may have now.');

type ParameterSchema = NonNullable<OpenApi.ParameterObject['schema']>;

const parameter = (name: string, description: string, schema: ParameterSchema) => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});

const WIDTH = parameter('width', 'Pixels, of a picture that the emulator draws.', {
  type: 'integer',
  minimum: 1,
  maximum: 9999,
  default: 1280,
});
const FORMAT = parameter('format', 'The format of the answer.', {
  type: 'string',
  enum: ['json', 'mrss'],
  default: 'json',
});

const text: ParameterSchema = { type: 'string' };

/** What a viewer's request may say of a playlist. */
const PLAYLIST_PARAMETERS: Readonly<
  Record<
    Exclude<keyof typeof PlaylistQuery.shape, 'format'>,
    readonly [says: string, schema: ParameterSchema]
  >
> = {
  page_limit: [
    'How many items a page has at most.',
    { type: 'integer', minimum: 1, maximum: 500, default: 500 },
  ],
  page_offset: ['Which item is the first, from 1.', { type: 'integer', minimum: 1, default: 1 }],
  tags: ['Only media with these tags, which have commas between them.', text],
  tags_mode: ['Whether one of the tags is enough.', { type: 'string', enum: ['any', 'all'], default: 'all' }],
  sort: [
    'In place of the order of a dynamic playlist.',
    { type: 'string', enum: [...DYNAMIC_PLAYLIST.metadata.sort.schema.options] },
  ],
  backfill: [
    'Whether a playlist of searches or articles that finds nothing shows what is trending.',
    { type: 'string', enum: ['true', 'false'] },
  ],
  related_media_id: ['The media that those of a recommendations playlist are like.', text],
  search: ['What a search playlist looks for.', text],
  page_title: ['The title of the page, for an article matching playlist.', text],
  page_description: ['The description of the page.', text],
  page_keywords: ['The keywords of the page.', text],
};

interface Delivered {
  /** As Express writes it. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  /** By media types; without it, there is no answer 200. */
  readonly content?: Readonly<Record<string, Schema>>;
  /** Beside 200 and 404. */
  readonly answers?: Readonly<Record<number, Answer>>;
  readonly headers?: Record<string, OpenApi.HeaderObject>;
  readonly examples: Readonly<Record<string, Example>>;
}

/** What players and mobile apps ask for, without a credential. */
export function deliveryOperations(seeded: Seeded): Record<string, PathItem> {
  return Object.fromEntries(
    [...DOCUMENTS, ...MANIFESTS, ...FILES].map(({ path, parameters = [], content, ...delivered }) => {
      const { operationId, summary, description, answers, headers, examples } = delivered;
      const template = templateOf(path);
      const made = operation({
        method: 'get',
        path: template,
        operationId,
        tag: DELIVERY_TAG,
        summary,
        description,
        access: 'open',
        parameters: [...pathParameters(template, seeded), ...parameters],
        answers: {
          ...(content && { 200: { description: summary, ...(headers && { headers }), content } }),
          ...answers,
          404: ABSENT,
        },
        examples,
      });
      return [template, { get: made }] as const;
    }),
  );
}

const answered = (summary: string, type: string, value?: unknown, query?: Example['query']): Example => ({
  summary,
  ...(query && { query }),
  answer: { status: 200, type, ...(value !== undefined && { value }) },
});

const WRONG_QUERY = { 400: refused('A parameter is not of its form.') };

const DOCUMENTS: readonly Delivered[] = [
  {
    path: '/live/channels/:channelId.json',
    operationId: 'channelDocument',
    summary: 'The state of a channel',
    description:
      'Whether the channel has an event that viewers may watch. Players ask for it every few seconds.',
    content: { [JSON_TYPE]: CHANNEL_DOCUMENT },
    examples: {
      active: answered('A channel with an event', JSON_TYPE, { status: 'active', current_event: 'ev3ntAbc' }),
    },
  },
  {
    path: '/v2/media/:mediaId',
    operationId: 'mediaDocument',
    summary: 'The document of a media',
    description:
      'What a player takes as its playlist: a media, or a live event under its id. Custom parameters are fields of the item, and never take the place of another one.',
    parameters: [FORMAT],
    content: { [JSON_TYPE]: MEDIA_DOCUMENT, [RSS_TYPE]: MRSS },
    answers: WRONG_QUERY,
    examples: {
      media: answered('A media', JSON_TYPE, MEDIA_EXAMPLE),
      mrss: answered('The same as Media RSS', RSS_TYPE, undefined, { format: 'mrss' }),
    },
  },
  {
    path: '/v2/playlists/:playlistId',
    operationId: 'playlistDocument',
    summary: 'The document of a playlist',
    description:
      'The media of a playlist that viewers may watch now, page by page. Other parameters are left alone.',
    parameters: [
      FORMAT,
      ...Object.entries(PLAYLIST_PARAMETERS).map(([name, [says, schema]]) => parameter(name, says, schema)),
    ],
    content: { [JSON_TYPE]: PLAYLIST_DOCUMENT, [RSS_TYPE]: MRSS },
    answers: WRONG_QUERY,
    examples: {
      playlist: answered('A playlist', JSON_TYPE, PLAYLIST_EXAMPLE),
      page: answered('A page of it', JSON_TYPE, undefined, { page_limit: '10', page_offset: '1' }),
    },
  },
];

const file = (description: string): Schema => ({ type: 'string', format: 'binary', description });

const ranges = (content: Readonly<Record<string, Schema>>) => ({
  206: { description: 'The range of bytes that was asked for.', content },
  412: refused('The file is not the one that `if-match` names.'),
  416: refused('The file has no such range of bytes.'),
});

const some = (type: string): Example => ({
  summary: 'The first bytes',
  headers: { range: 'bytes=0-3' },
  answer: { status: 206, type },
});

const VIDEO_OR_AUDIO = { 'video/*': file('A video.'), 'audio/*': file('An audio.') };
const TRACK: Readonly<Record<string, Schema>> = {
  'text/*': { type: 'string', description: 'The track.' },
  'application/*': { type: 'string', description: 'The track.' },
};
const PICTURE = { 'image/*': file('The picture.') };
const PICTURE_OR_VIDEO = { ...PICTURE, 'video/*': file('A moving one.') };

const manifest = (path: string, operationId: string, summary: string, says: string): Delivered => ({
  path,
  operationId,
  summary,
  description: `An HLS playlist, ${says} Once there are segments, the answer leads to the playlist of the packager. Before, and without a packager, it lists none.`,
  content: { [HLS]: MANIFEST },
  answers: LEADS_ON,
  examples: { manifest: answered(summary, HLS, MANIFEST_EXAMPLE) },
});

const LEADS_ON = { 302: { description: 'There are segments: `location` says where.' } };
const PACKAGER_FAILS = { 502: refused('The packager does not answer.') };

const FORMATS = [
  ['hls', 'Hls', HLS],
  ['dash', 'Dash', DASH],
] as const satisfies readonly ['hls' | 'dash', name: string, type: string][];

/** What the packager has of a stream, at each place of a playlist. */
const packaged = (
  base: string,
  operationId: string,
  what: string,
  formats: readonly ['hls' | 'dash', name: string, type: string][] = FORMATS,
): readonly Delivered[] => [
  {
    path: `${base}.mpd`,
    operationId: `${operationId}Dash`,
    summary: `${what} as DASH`,
    description:
      'Leads to the manifest of the packager. 404 while there is no segment, and without a packager.',
    answers: LEADS_ON,
    examples: { dash: { summary: 'There are segments', answer: { status: 302, type: 'text/plain' } } },
  },
  ...formats.map(([format, name, type]) => ({
    path: `${base}/${format}/*file`,
    operationId: `${operationId}${name}File`,
    summary: `A file of ${what.toLowerCase()} as ${name.toUpperCase()}`,
    description: `A ${name.toUpperCase()} ${format === 'hls' ? 'playlist' : 'manifest'} or a segment, as the packager has it. Ranges of it can be asked for. It is there as long as viewers may watch the stream; with \`dvr\` off, ${format === 'hls' ? 'playlists list' : 'a manifest lists'} the last 30 seconds of a live event.`,
    content: { [type]: { type: 'string', description: 'What lists the segments.' }, ...VIDEO_OR_AUDIO },
    answers: {
      206: {
        description: 'The range of bytes that was asked for.',
        content: { [type]: { type: 'string', description: 'A piece of it.' }, ...VIDEO_OR_AUDIO },
      },
      416: refused('The file has no such range of bytes.'),
      ...PACKAGER_FAILS,
    },
    examples: { file: answered('A playlist or a manifest', type), range: some(type) },
  })),
];

const MANIFESTS: readonly Delivered[] = [
  manifest(
    '/live/events/:eventId.m3u8',
    'eventManifest',
    'The stream of a live event',
    'while viewers may watch the event, and of its replay.',
  ),
  manifest(
    '/manifests/:mediaId.m3u8',
    'mediaManifest',
    'The stream of a media',
    'while viewers may watch the media.',
  ),
  manifest(
    '/live/previews/:previewToken.m3u8',
    'previewManifest',
    'The preview of a live event',
    'as long as the event lasts, also before it is published. Its address is the `preview_url` of the channel.',
  ),
  ...packaged('/live/events/:eventId', 'event', 'The stream of a live event'),
  ...packaged('/manifests/:mediaId', 'media', 'The stream of a media'),
  ...packaged('/live/previews/:previewToken', 'preview', 'The preview of a live event'),
];

const FILE_HEADERS = {
  etag: { description: 'The MD5 of the file, in quotes.', schema: { type: 'string' } },
  'accept-ranges': { description: 'Always `bytes`.', schema: { type: 'string' } },
} as const satisfies Record<string, OpenApi.HeaderObject>;

const FILES: readonly Delivered[] = [
  {
    path: '/videos/:mediaId-:renditionId.:ending',
    operationId: 'renditionFile',
    summary: 'The file of a rendition',
    description: 'The uploaded file, as the emulator converts nothing. Ranges of it can be asked for.',
    content: VIDEO_OR_AUDIO,
    answers: ranges(VIDEO_OR_AUDIO),
    headers: FILE_HEADERS,
    examples: { file: answered('The whole file', 'video/mp4'), range: some('video/mp4') },
  },
  {
    path: '/live/masters/:token.mp4',
    operationId: 'masterFile',
    summary: 'The file of a master',
    description:
      'The recording of a live event as it came from the encoder, at the `delivery_url` of its master, until that expires.',
    content: VIDEO_OR_AUDIO,
    answers: ranges(VIDEO_OR_AUDIO),
    headers: FILE_HEADERS,
    examples: { file: answered('The whole file', 'video/mp4'), range: some('video/mp4') },
  },
  {
    path: '/tracks/:trackId.:ending',
    operationId: 'trackFile',
    summary: 'The file of a text track',
    description: 'The file as it was uploaded, once the track is published.',
    content: TRACK,
    answers: ranges(TRACK),
    headers: FILE_HEADERS,
    examples: { file: answered('The file', 'text/vtt'), range: some('text/vtt') },
  },
  {
    path: '/v2/media/:mediaId/poster.:ending',
    operationId: 'mediaPoster',
    summary: 'The poster of a media',
    description:
      'The picture that was uploaded as the poster, or one with the title that the emulator draws.',
    parameters: [WIDTH],
    content: PICTURE,
    answers: ranges(PICTURE),
    examples: { drawn: answered('A picture that is drawn', 'image/svg+xml', undefined, { width: '640' }) },
  },
  {
    path: '/thumbnails/:thumbnailId{.:ending}',
    operationId: 'thumbnailPicture',
    summary: 'The picture of a thumbnail',
    description:
      'The picture that was uploaded, or one with the title that the emulator draws. An ending such as `.jpg` may follow.',
    parameters: [WIDTH],
    content: PICTURE_OR_VIDEO,
    answers: ranges(PICTURE_OR_VIDEO),
    examples: { drawn: answered('A picture that is drawn', 'image/svg+xml') },
  },
];
