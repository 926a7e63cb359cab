import * as z from 'zod';
import type { Answer, Example, OperationOptions, Schema } from '../../http/openapi';
import { operation, type PathItem, pathParameters, type Seeded, templateOf } from './operation';
import { jsonSchema } from './schemas';

export const DELIVERY_TAG = 'Public delivery';

const JSON_TYPE = 'application/json';
const HLS = 'application/vnd.apple.mpegurl';
const ORIGIN = 'http://127.0.0.1:8080';

const Message = jsonSchema(z.object({ message: z.string().meta({ description: 'Why there is nothing.' }) }));
const ABSENT: Answer = {
  description: 'There is nothing under this id, or nothing that viewers may have now.',
  content: { [JSON_TYPE]: Message },
};

const ChannelDocument = z.object({
  status: z
    .enum(['active', 'idle'])
    .meta({ description: 'Whether there is an event that viewers may watch.' }),
  current_event: z.string().optional().meta({ description: 'The id of that event.' }),
});

const Source = z.object({
  file: z.string().meta({ description: 'Its address.' }),
  type: z.string().meta({ description: 'Its media type.' }),
});
const Picture = z.object({
  src: z.string().meta({ description: 'Its address.' }),
  width: z.int().meta({ description: 'Pixels.' }),
  type: z.string().meta({ description: 'Its media type.' }),
});
const Track = z.looseObject({
  kind: z.string().meta({ description: 'What it is.' }),
  file: z.string().meta({ description: 'Its address.' }),
});

/** Custom parameters lie flat in it. */
const PlaylistItem = z.looseObject({
  title: z.string().meta({ description: 'The title.' }),
  description: z.string().meta({ description: 'What it is about.' }),
  mediaid: z.string().meta({ description: 'The id of the media.' }),
  link: z.string().meta({ description: 'The address of its document.' }),
  image: z.string().meta({ description: 'The address of its poster.' }),
  images: z.array(Picture).meta({ description: 'The poster in several sizes.' }),
  duration: z.number().meta({ description: 'Seconds; 0 for a live event.' }),
  pubdate: z.int().meta({ description: 'Since when viewers may watch it, in seconds since 1970.' }),
  tags: z.string().meta({ description: 'The tags, with commas between them.' }),
  sources: z.array(Source).meta({ description: 'What a player plays.' }),
  tracks: z.array(Track).meta({ description: 'Captions, chapters and others.' }),
  variations: z.looseObject({}).meta({ description: 'Always empty.' }),
});

const MediaDocument = z.object({
  title: z.string().meta({ description: 'The title.' }),
  description: z.string().meta({ description: 'What it is about.' }),
  kind: z.string().meta({ description: 'What it is.' }),
  feed_instance_id: z.string().meta({ description: 'The id of this answer.' }),
  playlist: z.array(PlaylistItem).meta({ description: 'The one item.' }),
});

const item = {
  title: 'Town hall',
  description: '',
  mediaid: 'Xw7a9bPq',
  link: `${ORIGIN}/v2/media/Xw7a9bPq`,
  image: `${ORIGIN}/v2/media/Xw7a9bPq/poster.svg`,
  images: [{ src: `${ORIGIN}/v2/media/Xw7a9bPq/poster.svg?width=640`, width: 640, type: 'image/svg+xml' }],
  duration: 62.5,
  pubdate: 1_893_499_200,
  tags: 'news',
  sources: [{ file: `${ORIGIN}/manifests/Xw7a9bPq.m3u8`, type: HLS }],
  tracks: [],
  variations: {},
};
const MEDIA_DOCUMENT = {
  title: 'Town hall',
  description: '',
  kind: 'Single Item',
  feed_instance_id: '8a0c4f9e-3f2b-4a52-9d0c-5c1f1f5b1c11',
  playlist: [{ show: 'evening', ...item }],
};

const Playlist: Schema = { type: 'string', description: 'An HLS playlist (RFC 8216).' };
const PLAYLIST = `#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:4
#EXT-X-MEDIA-SEQUENCE:0
`;

const MANIFESTS = {
  '/live/events/:eventId.m3u8': {
    operationId: 'eventManifest',
    summary: 'The stream of a live event',
    description:
      'An HLS playlist, as long as viewers may watch the event, and of its replay. It lists no segment.',
  },
  '/manifests/:mediaId.m3u8': {
    operationId: 'mediaManifest',
    summary: 'The stream of a media',
    description: 'An HLS playlist, as long as viewers may watch the media. It lists no segment.',
  },
  '/live/previews/:previewToken.m3u8': {
    operationId: 'previewManifest',
    summary: 'The preview of a live event',
    description:
      'An HLS playlist, as long as the event lasts, also before it is published. Its address is the `preview_url` of the channel.',
  },
} as const;

/** What players and mobile apps ask for, without a credential. */
export function deliveryOperations(seeded: Seeded): Record<string, PathItem> {
  const get = ({ path, parameters = [], ...delivered }: Delivered): [string, PathItem] => {
    const template = templateOf(path);
    const { operationId, summary, description, type, schema, value } = delivered;
    const answer: Example['answer'] = { status: 200, type, ...(value !== undefined && { value }) };
    const made = operation({
      method: 'get',
      path: template,
      operationId,
      tag: DELIVERY_TAG,
      summary,
      description,
      access: 'open',
      parameters: [...pathParameters(template, seeded), ...parameters],
      answers: { 200: { description: summary, content: { [type]: schema } }, 404: ABSENT },
      examples: { [operationId]: { summary, answer } },
    });
    return [template, { get: made }];
  };
  return Object.fromEntries([
    get({
      path: '/live/channels/:channelId.json',
      operationId: 'channelDocument',
      summary: 'The state of a channel',
      description:
        'Whether the channel has an event that viewers may watch. Players ask for it every few seconds.',
      type: JSON_TYPE,
      schema: jsonSchema(ChannelDocument),
      value: { status: 'active', current_event: 'ev3ntAbc' },
    }),
    get({
      path: '/v2/media/:mediaId',
      operationId: 'mediaDocument',
      summary: 'The playlist of a media',
      description:
        'What a player takes as its playlist: a media, or a live event under its id. Custom parameters are fields of the item, and never take the place of another one.',
      type: JSON_TYPE,
      schema: jsonSchema(MediaDocument),
      value: MEDIA_DOCUMENT,
    }),
    get({
      path: '/v2/media/:mediaId/poster.svg',
      operationId: 'mediaPoster',
      summary: 'The poster of a media',
      description: 'A picture with the title: the emulator takes none out of a stream.',
      parameters: [
        {
          name: 'width',
          in: 'query',
          required: false,
          description: 'Pixels.',
          schema: { type: 'integer', minimum: 1, maximum: 9999, default: 1280 },
        },
      ],
      type: 'image/svg+xml',
      schema: { type: 'string', description: 'The picture.' },
    }),
    ...Object.entries(MANIFESTS).map(([path, told]) =>
      get({ path, ...told, type: HLS, schema: Playlist, value: PLAYLIST }),
    ),
  ]);
}

interface Delivered {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: OperationOptions['parameters'];
  readonly type: string;
  readonly schema: Schema;
  /** An example of the answer. */
  readonly value?: unknown;
}
