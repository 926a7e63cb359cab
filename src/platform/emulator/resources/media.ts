import * as z from 'zod';
import type { Timer } from '../clock';
import { text } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import {
  type Content,
  downloadUrl,
  errorMessage,
  LINK_FIELDS,
  method,
  mimeType,
  noContent,
  status,
} from './content';
import { Choice, CUSTOM_PARAMS, Moment, SITE, TAGS, Timecode, WebAddress } from './fields';
import {
  type MetadataOf,
  newItem,
  type PathIds,
  type Platform,
  type Resource,
  type Stored,
} from './resource';
import { notFound } from './resource-calls';

/** The path of a media, as Express writes it. */
export const ONE_MEDIA = `${SITE}/media/:mediaId`;

export const MEDIA = {
  type: 'media',
  plural: 'media',
  noun: 'media',
  says: 'A video or audio on demand: uploaded, or recorded from a live event.',
  collection: `${SITE}/media`,
  one: ONE_MEDIA,
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
    method: method(['direct', 'multipart', 'fetch', 'external']),
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
    ...LINK_FIELDS,
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
  mediaType: 'video' | 'audio';
  hostingType: 'hosted' | 'external';
  mimeType: string | null;
  /** Seconds; 0 while it is not known. */
  duration: number;
  /** Pixels; 0 while they are not known. */
  width: number;
  height: number;
  trimInPoint: string | null;
  trimOutPoint: string | null;
  /** Where external content is. */
  sourceUrl: string | null;
  /** Whether viewers never see it, as the replay of an event that was not published. */
  readonly hidden: boolean;
  /** The live event that it was recorded from. */
  readonly eventId: string | undefined;
  /** The key file that its event was encrypted with. */
  readonly keyFile: string | undefined;
  /** Seconds into the event, for a clip. */
  readonly clip: { readonly from: number; readonly to: number } | undefined;
  /** Whether the renditions of a content of its were all made once. */
  converted: boolean;
  /** Whether webhooks were notified that viewers can have it. */
  announced: boolean;
  /** What is scheduled for it. */
  readonly timers: { processing: Timer | undefined; publication: Timer | undefined };
  /** How often viewers asked for it. */
  views: number;
}

declare module './resource' {
  interface LibraryState {
    readonly media: ItemStore<Media>;
  }
  interface Platform {
    readonly packaging: { encrypts(media: Media): boolean };
  }
}

interface NewMedia
  extends Pick<Media, 'id' | 'siteId' | 'created' | 'metadata'>,
    Partial<Omit<Media, 'id' | 'siteId' | 'created' | 'metadata' | 'lastModified' | 'timers'>> {}

/** A media without content, with the given values. */
export function newMedia(given: NewMedia): Media {
  return {
    ...noContent(),
    mediaType: 'video',
    hostingType: 'hosted',
    mimeType: null,
    duration: 0,
    width: 0,
    height: 0,
    trimInPoint: null,
    trimOutPoint: null,
    sourceUrl: null,
    hidden: false,
    eventId: undefined,
    keyFile: undefined,
    clip: undefined,
    converted: false,
    announced: false,
    views: 0,
    lastModified: given.created,
    timers: { processing: undefined, publication: undefined },
    ...given,
  };
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

/** From when viewers may watch a media. */
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

/** The common fields of a new part of a media. */
export function partOf(parts: Platform, { id: mediaId, siteId }: Media) {
  return { ...newItem(parts, siteId), mediaId };
}

/** Lists and finds the parts of a media. @param idName the parameter of their path. */
export function inMedia<Part extends { readonly id: string }>(
  parts: Platform,
  store: ItemStore<Part>,
  idName: string,
) {
  return {
    list: (ids: PathIds) => store.of(mediaOf(parts, ids).id),
    find: (ids: PathIds) => store.findOf(mediaOf(parts, ids).id, ids[idName] ?? ''),
  };
}
