import * as z from 'zod';
import type { Timer } from '../clock';
import { objectParams, text } from '../json-body';
import { CONTENT_FIELDS, CONTENT_KEPT, type Content, uploadBy } from './content';
import {
  Amount,
  Choice,
  CUSTOM_PARAMS,
  Flag,
  Id,
  Moment,
  row,
  SITE,
  TAGS,
  Text,
  Timecode,
  WebAddress,
} from './fields';
import {
  type GivenItem,
  itemOf,
  type MetadataOf,
  named,
  type PathIds,
  type Platform,
  type Resource,
  type Stored,
} from './resource';
import { notFound } from './resource-calls';

export const ONE_MEDIA = `${SITE}/media/:mediaId`;

export const KIND = Choice(['video', 'audio']);
const HOSTING = Choice(['hosted', 'external']);

export const MEDIA = {
  ...named('media', SITE, 'mediaId'),
  plural: 'media',
  says: 'A video or audio on demand: uploaded, or recorded from a live event.',
  collection: `${SITE}/media`,
  one: ONE_MEDIA,
  metadata: {
    title: row(text(1000), 'The title.', { default: '', filter: 'words' }),
    description: row(text(5000), 'The description.', { filter: 'words' }),
    author: row(text(200), 'The author.', { filter: 'text' }),
    permalink: row(text(2000), 'The page that it is shown on.', { filter: 'text' }),
    category: row(text(200), 'The category for advertising and recommendations.', { filter: 'text' }),
    language: row(text(50), 'The spoken language.', { filter: 'text' }),
    publish_start_date: row(Moment, 'From when viewers may watch it. Without it, from its creation.', {
      filter: 'time',
      otherwise: 'created',
    }),
    publish_end_date: row(Moment, 'Until when viewers may watch it. `null`: without an end.', {
      filter: 'time',
    }),
    tags: TAGS,
    external_id: row(text(200), 'Its id in a system of yours.', { filter: 'text' }),
    protection_rule_key: row(text(200), 'The protection rule that applies to it.', { filter: 'text' }),
    custom_params: CUSTOM_PARAMS,
  },
  upload: {
    ...uploadBy('direct', 'multipart', 'fetch', 'external'),
    source_url: row(WebAddress, 'Where the content stays, for the method `external`.'),
    trim_in_point: row(Timecode, 'Where it is to begin. Not for `external`.'),
    trim_out_point: row(Timecode, 'Where it is to end. Not for `external`.'),
  },
  shown: {
    ...CONTENT_FIELDS,
    media_type: row(KIND, 'The kind of media.', { filter: 'text' }),
    hosting_type: row(HOSTING, 'Whether the platform has the content.', { filter: 'text' }),
    mime_type: row(z.string().nullable(), 'The media type of the content.', { filter: 'text' }),
    duration: row(z.number(), 'Seconds; 0 while it is not known.', { filter: 'number' }),
    trim_in_point: row(z.string().nullable(), 'Where it begins in the uploaded file.'),
    trim_out_point: row(z.string().nullable(), 'Where it ends in the uploaded file.'),
    external_id: row(z.string().nullable(), 'The same as in the metadata.'),
    source_url: row(z.string().nullable(), 'Where external content is.'),
  },
  kept: {
    ...CONTENT_KEPT,
    mediaType: KIND.default('video'),
    hostingType: HOSTING.default('hosted'),
    mimeType: Text.nullable().default(null),
    /** Seconds; 0 while it is not known. */
    duration: Amount.default(0),
    /** Pixels; 0 while they are not known. */
    width: Amount.default(0),
    height: Amount.default(0),
    trimInPoint: Text.nullable().default(null),
    trimOutPoint: Text.nullable().default(null),
    sourceUrl: Text.nullable().default(null),
    /** Whether viewers never see it, as the replay of an event that was not published. */
    hidden: Flag.default(false),
    eventId: Id.optional(),
    /** The key file that its event was encrypted with. */
    keyFile: Text.optional(),
    /** Seconds into the event, for a clip. */
    clip: z.object({ from: Amount, to: Amount }, objectParams).optional(),
    /** Whether the renditions of a content of its were all made once. */
    converted: Flag.default(false),
    announced: Flag.default(false),
    views: Amount.default(0),
  },
  actions: {
    reupload: {
      methods: ['PUT', 'POST'],
      path: `${ONE_MEDIA}/reupload`,
      title: 'Replace the content of a media',
      status: 200,
      says: 'Replaces the content; the id, the metadata and the addresses stay.',
      upload: true,
    },
  },
} as const satisfies Resource;

export type MediaMetadata = MetadataOf<typeof MEDIA>;

/** A video or audio on demand: uploaded, a replay of a live event under the event's id, or a clip of one. */
export interface Media extends Content, Stored<typeof MEDIA> {
  readonly timers: { processing: Timer | undefined; publication: Timer | undefined };
}

declare module './resource' {
  interface Platform {
    readonly packaging: { encrypts(media: Media): boolean };
  }
}

export function newMedia(given: GivenItem<typeof MEDIA> & Pick<Media, 'siteId'>): Media {
  return { ...itemOf(MEDIA, given), timers: { processing: undefined, publication: undefined } };
}

/** The custom parameter, of channels as well, that names a key file. */
export const KEY_FILE_PARAMETER = 'stream_id';

/**
 * The key file that a media is protected with, or undefined for one that is packaged in the clear. A parameter that is
 * there holds, even if it is empty: the packager refuses it then, and nothing is delivered in the clear by mistake.
 */
export function keyFileOf({ metadata, keyFile }: Pick<Media, 'metadata' | 'keyFile'>): string | undefined {
  return metadata.custom_params[KEY_FILE_PARAMETER] ?? keyFile;
}

export function publicationOf({ metadata, created }: Media): Date {
  return metadata.publish_start_date === null ? created : new Date(metadata.publish_start_date);
}

/** Whether viewers may watch a media now. While it gets a new content, they have the one before. */
export function isPublished(media: Media, now: Date): boolean {
  const { status, hidden, metadata } = media;
  const end = metadata.publish_end_date;
  return (
    !hidden &&
    (status === 'ready' || status === 'updating') &&
    publicationOf(media) <= now &&
    (end === null || now < new Date(end))
  );
}

/** The media of a path. @throws HttpError 404 when its site has none with this id. */
export function mediaOf({ state }: Pick<Platform, 'state'>, { siteId = '', mediaId = '' }: PathIds): Media {
  const media = state.media.findOf(siteId, mediaId);
  if (media) return media;
  throw notFound(MEDIA);
}

export const partOf = ({ id: mediaId, siteId }: Media) => ({ mediaId, siteId });
