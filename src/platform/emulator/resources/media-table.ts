import * as z from 'zod';
import { objectParams, text } from '../json-body';
import {
  Choice,
  CustomParams,
  Flag,
  list,
  MediaType,
  Moment,
  Reference,
  type ShownFields,
  Timecode,
  WebAddress,
  WholeNumber,
} from './fields';
import type { Resource } from './resource';

export const SITE = '/v2/sites/:siteId';

export const TAGS = {
  schema: list(text(200).min(1, 'is empty'), 100),
  default: [],
  filter: 'text',
  says: 'Words to find it by.',
} as const;

export const CUSTOM_PARAMS = {
  schema: CustomParams,
  default: {},
  says: 'Names and values of your own. An update replaces all of them: send the ones to keep as well.',
} as const;

/** Where what was begun is to be sent. The answer that begins an upload has them, and no other. */
const UPLOAD_LINKS = {
  upload_link: {
    schema: z.string(),
    once: true,
    says: 'Where to PUT the file, for the method `direct`.',
  },
  upload_id: {
    schema: z.string(),
    once: true,
    says: 'The upload whose parts to send, for the method `multipart`.',
  },
  upload_token: {
    schema: z.string(),
    once: true,
    says: 'The bearer token of this upload, for the method `multipart`.',
  },
} as const satisfies ShownFields;

const STATUS = ['created', 'processing', 'updating', 'ready', 'failed'] as const;

const status = {
  schema: Choice(STATUS),
  filter: 'text',
  says: '`created` until its file is there, `processing` or `updating` until it can be played, then `ready`, or `failed`.',
} as const;
const errorMessage = {
  schema: z.string().nullable(),
  says: 'Why it failed.',
} as const;

const mimeType = { schema: MediaType, says: 'The media type of the file.' } as const;
const downloadUrl = {
  schema: WebAddress,
  says: 'Where to fetch the file from, for the method `fetch`.',
} as const;
const METHODS = ['direct', 'multipart', 'fetch', 'external'] as const;
const method = (methods: readonly [string, ...string[]]) =>
  ({
    schema: Choice(methods),
    default: 'direct',
    says: 'How the file comes: sent to a link, sent in parts, fetched from an address, or left where it is.',
  }) as const;

export const MEDIA = {
  type: 'media',
  plural: 'media',
  noun: 'media',
  says: 'A video or audio on demand: uploaded, or recorded from a live event.',
  collection: `${SITE}/media`,
  one: `${SITE}/media/:mediaId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    title: { schema: text(1000), default: '', filter: 'words', says: 'The title.' },
    description: { schema: text(5000), filter: 'words', says: 'What it is about.' },
    author: { schema: text(200), filter: 'text', says: 'Who made it.' },
    permalink: { schema: text(2000), filter: 'text', says: 'The page that it is shown on.' },
    category: {
      schema: text(200),
      filter: 'text',
      says: 'The category for advertising and recommendations.',
    },
    language: { schema: text(50), filter: 'text', says: 'The spoken language.' },
    publish_start_date: {
      schema: Moment,
      filter: 'time',
      otherwise: 'created',
      says: 'From when viewers may watch it. Without it, from its creation.',
    },
    publish_end_date: {
      schema: Moment,
      filter: 'time',
      says: 'Until when viewers may watch it. `null`: without an end.',
    },
    tags: TAGS,
    external_id: { schema: text(200), filter: 'text', says: 'Its id in a system of yours.' },
    protection_rule_key: {
      schema: text(200),
      filter: 'text',
      says: 'The protection rule that applies to it.',
    },
    custom_params: CUSTOM_PARAMS,
  },
  upload: {
    method: method(METHODS),
    mime_type: mimeType,
    download_url: downloadUrl,
    source_url: { schema: WebAddress, says: 'Where the content stays, for the method `external`.' },
    trim_in_point: { schema: Timecode, says: 'Where it is to begin. Not for `external`.' },
    trim_out_point: { schema: Timecode, says: 'Where it is to end. Not for `external`.' },
  },
  shown: {
    status,
    media_type: { schema: Choice(['video', 'audio']), filter: 'text', says: 'What it is.' },
    hosting_type: {
      schema: Choice(['hosted', 'external']),
      filter: 'text',
      says: 'Whether the platform has the content.',
    },
    mime_type: { schema: z.string().nullable(), filter: 'text', says: 'The media type of the content.' },
    error_message: errorMessage,
    duration: { schema: z.number(), filter: 'number', says: 'Seconds; 0 while it is not known.' },
    trim_in_point: { schema: z.string().nullable(), says: 'Where it begins in the uploaded file.' },
    trim_out_point: { schema: z.string().nullable(), says: 'Where it ends in the uploaded file.' },
    external_id: { schema: z.string().nullable(), says: 'The same as in the metadata.' },
    source_url: { schema: z.string().nullable(), says: 'Where external content is.' },
    ...UPLOAD_LINKS,
  },
  actions: {
    reupload: {
      methods: ['PUT', 'POST'],
      path: `${SITE}/media/:mediaId/reupload`,
      title: 'Replace the content of a media',
      status: 200,
      says: 'Replaces the content; the id, the metadata and the addresses stay.',
      upload: true,
    },
  },
} as const satisfies Resource;

const OF_MEDIA = `${SITE}/media/:mediaId`;

export const ORIGINAL = {
  type: 'original',
  plural: 'originals',
  noun: 'original',
  says: 'A file as it was uploaded for a media. The primary one is what is converted.',
  collection: `${OF_MEDIA}/originals`,
  one: `${OF_MEDIA}/originals/:originalId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    name: { schema: text(200), default: 'Original', filter: 'words', says: 'The name.' },
    language: { schema: text(100), filter: 'text', says: 'The spoken language, such as English.' },
    language_code: { schema: text(50), filter: 'text', says: 'Its code, such as en.' },
    type: { schema: text(50), default: 'primary', filter: 'text', says: 'What it is for.' },
  },
  upload: {
    method: method(['direct', 'multipart', 'fetch']),
    mime_type: mimeType,
    download_url: downloadUrl,
  },
  shown: {
    status,
    error_message: errorMessage,
    container_format: { schema: z.string().nullable(), says: 'The format of the file, such as mp4.' },
    duration: { schema: z.number(), says: 'Seconds; 0 while it is not known.' },
    size: { schema: z.int(), filter: 'number', says: 'Bytes.' },
    md5: { schema: z.string().nullable(), says: 'The MD5 of the file, in hexadecimal.' },
    includes: { schema: z.looseObject({}), says: 'Its tracks, by their kind.' },
    ...UPLOAD_LINKS,
  },
  refusals: {
    delete: [
      { status: 409, code: 'conflict', when: 'It is the primary original: the content of the media.' },
    ],
  },
} as const satisfies Resource;

export const MEDIA_RENDITION = {
  type: 'media_rendition',
  plural: 'media_renditions',
  noun: 'rendition',
  says: 'A media in one size, as it is delivered.',
  collection: `${OF_MEDIA}/media_renditions`,
  one: `${OF_MEDIA}/media_renditions/:renditionId`,
  verbs: ['list', 'create', 'read', 'delete'],
  metadata: {},
  relationships: {
    media_rendition_template: {
      schema: Reference,
      required: true,
      says: 'What to make. A media has one rendition for each template.',
    },
  },
  shown: {
    status,
    error_message: errorMessage,
    media_type: { schema: Choice(['video', 'audio']), filter: 'text', says: 'What it is.' },
    delivery_url: { schema: z.string().nullable(), says: 'Where the file is, once it is ready.' },
    filesize: { schema: z.int(), filter: 'number', says: 'Bytes.' },
    width: { schema: z.int(), filter: 'number', says: 'Pixels.' },
    height: { schema: z.int(), filter: 'number', says: 'Pixels.' },
  },
  refusals: {
    create: [
      {
        status: 409,
        code: 'conflict',
        when: 'The media has a rendition of this template already, or its content is external.',
      },
    ],
  },
} as const satisfies Resource;

const TRACK_KINDS = ['captions', 'subtitles', 'chapters', 'thumbnails', 'descriptions'] as const;

export const TEXT_TRACK = {
  type: 'text_track',
  plural: 'text_tracks',
  noun: 'text track',
  says: 'Captions, subtitles or chapters of a media. Viewers get it when it is published.',
  collection: `${OF_MEDIA}/text_tracks`,
  one: `${OF_MEDIA}/text_tracks/:trackId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    label: { schema: text(200), filter: 'words', says: 'The name in the menu of the player.' },
    srclang: { schema: text(50), filter: 'text', says: 'The code of the language, such as en.' },
    position: { schema: WholeNumber(1000), default: 0, filter: 'number', says: 'The place in the menu.' },
    track_kind: {
      schema: Choice(TRACK_KINDS),
      default: 'captions',
      fixed: true,
      unseen: true,
      says: 'What it is.',
    },
  },
  upload: {
    method: method(['direct', 'fetch']),
    file_format: { schema: text(50), says: 'The format of the file, such as vtt or srt.' },
    auto_publish: { schema: Flag, default: false, says: 'Whether to publish it as soon as it is ready.' },
    mime_type: mimeType,
    download_url: downloadUrl,
  },
  shown: {
    status,
    error_message: errorMessage,
    track_kind: { schema: Choice(TRACK_KINDS), filter: 'text', says: 'What it is.' },
    published: { schema: z.boolean(), says: 'Whether viewers get it.' },
    delivery_url: { schema: z.string().nullable(), says: 'Where the file is, once it is ready.' },
    ...UPLOAD_LINKS,
  },
  actions: {
    publish: {
      methods: ['PUT'],
      path: `${OF_MEDIA}/text_tracks/:trackId/publish`,
      title: 'Publish a text track',
      status: 204,
      says: 'Lets viewers have it.',
    },
    unpublish: {
      methods: ['PUT'],
      path: `${OF_MEDIA}/text_tracks/:trackId/unpublish`,
      title: 'Unpublish a text track',
      status: 204,
      says: 'Takes it from viewers.',
    },
  },
} as const satisfies Resource;

const THUMBNAIL_TYPES = ['static', 'video'] as const;

export const THUMBNAIL = {
  type: 'thumbnail',
  plural: 'thumbnails',
  alsoListedAs: 'thumbnail',
  noun: 'thumbnail',
  says: 'A picture of a media. One of them is its poster.',
  collection: `${SITE}/thumbnails`,
  one: `${SITE}/thumbnails/:thumbnailId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {},
  upload: {
    method: method(['direct', 'multipart', 'fetch']),
    thumbnail_type: {
      schema: Choice(THUMBNAIL_TYPES),
      default: 'static',
      says: 'A picture, or a short moving one.',
    },
    mime_type: mimeType,
    download_url: downloadUrl,
    source_type: {
      schema: Choice(['custom_upload', 'video_position', 'thumbstrip_index']),
      says: 'Where the picture comes from. It follows from the other fields.',
    },
    source_media_id: { schema: text(200), says: 'The media to take the picture from.' },
    video_position: { schema: z.number('must be a number').min(0), says: 'Seconds into that media.' },
    thumbstrip_index: { schema: WholeNumber(10_000), says: 'The picture of its strip of pictures.' },
  },
  relationships: {
    media: {
      schema: list(
        z.strictObject(
          {
            id: text(200).min(1, 'is empty').meta({ description: 'The media.' }),
            is_poster: Flag.nullish().meta({ description: 'Whether this is its poster; then no other is.' }),
          },
          objectParams,
        ),
        1,
      ),
      says: 'The media that it is of, and whether it is its poster.',
    },
  },
  shown: {
    status,
    error_message: errorMessage,
    thumbnail_type: { schema: Choice(THUMBNAIL_TYPES), filter: 'text', says: 'What it is.' },
    source_type: { schema: z.string(), filter: 'text', says: 'Where the picture comes from.' },
    delivery_url: { schema: z.string().nullable(), says: 'Where the picture is, once it is ready.' },
    media_id: { schema: z.string(), filter: 'text', unseen: true, says: 'The media that it is of.' },
    ...UPLOAD_LINKS,
  },
} as const satisfies Resource;
