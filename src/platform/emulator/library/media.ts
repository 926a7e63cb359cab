import type { Timer } from '../clock';
import type { MEDIA } from '../resources/media-table';
import type { MetadataOf } from '../resources/resource';
import { type Content, noContent } from './content';

export type MediaMetadata = MetadataOf<typeof MEDIA>;

/** A video or audio on demand: uploaded, a replay of a live event under the event's id, or a clip of one. */
export interface Media extends Content {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MediaMetadata;
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
  /** Whether it was told that viewers can have it. */
  announced: boolean;
  /** What is still to happen to it by itself. */
  readonly timers: { processing: Timer | undefined; publication: Timer | undefined };
  /** How often viewers asked for it. */
  views: number;
}

interface NewMedia
  extends Pick<Media, 'id' | 'siteId' | 'created' | 'metadata'>,
    Partial<Omit<Media, 'id' | 'siteId' | 'created' | 'metadata' | 'lastModified' | 'timers'>> {}

/** A media without content, but for what is said of it. */
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
 * there holds, even if it is empty: the packager refuses it then, and nothing is delivered in the clear by a slip.
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
