import * as z from 'zod';
import { HttpError, type Problem } from '../../../http/errors';
import { objectParams, text } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import { mediaNotification } from '../webhooks/notification';
import {
  CONTENT_VALUES,
  type Content,
  downloadUrl,
  dropContent,
  errorMessage,
  LINK_FIELDS,
  method,
  mimeType,
  noContent,
  status,
  takeContent,
} from './content';
import { Choice, Flag, list, SITE, WholeNumber } from './fields';
import type { Media, MediaParts } from './media';
import { type Behaviour, type BodyOf, inSite, newItem, type Resource } from './resource';

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
    ...LINK_FIELDS,
  },
} as const satisfies Resource;

type SourceType = 'custom_upload' | 'video_position' | 'thumbstrip_index';

/** A picture of a media. */
export interface Thumbnail extends Content {
  readonly created: Date;
  lastModified: Date;
  metadata: Record<never, never>;
  readonly thumbnailType: 'static' | 'video';
  readonly sourceType: SourceType;
  /** Seconds into the media that it is taken from. */
  readonly videoPosition: number;
  /** Undefined while it is of none. */
  mediaId: string | undefined;
  isPoster: boolean;
}

/** One may be a short video. */
const PICTURES = ['image/*', 'video/*'];
const MAX_PICTURE_BYTES = 50 * 1024 ** 2;

/** The path at which viewers get a thumbnail. */
export function thumbnailPath({ id }: Thumbnail): string {
  return `/thumbnails/${id}`;
}

export interface ThumbnailParts extends MediaParts {
  readonly state: MediaParts['state'] & ThumbnailState;
}

interface ThumbnailState {
  readonly thumbnails: ItemStore<Thumbnail>;
  /** The ids of a media's thumbnails, by its own. */
  readonly mediaThumbnails: Map<string, Set<string>>;
}

/** The thumbnail that represents a media: its poster, or the latest one while there is no picture of a poster. */
export function posterOf({ state }: { readonly state: ThumbnailState }, media: Media): Thumbnail | undefined {
  const ready = thumbnailsOf(state, media).filter(({ status }) => status === 'ready');
  return ready.find(({ isPoster }) => isPoster) ?? ready.at(-1);
}

/** The pictures of a media, in the order in which they were attached. */
export function thumbnailsOf({ thumbnails, mediaThumbnails }: ThumbnailState, { id }: Media): Thumbnail[] {
  return [...(mediaThumbnails.get(id) ?? [])].flatMap((each) => thumbnails.find(each) ?? []);
}

export function thumbnailBehaviour(parts: ThumbnailParts): Behaviour<typeof THUMBNAIL, Thumbnail> {
  const { state, clock, notify } = parts;
  return {
    ...inSite(state.thumbnails, 'thumbnailId'),
    create({ siteId = '' }, { upload, relationships }) {
      const related = relatedMedia(relationships);
      const taken = takenFrom(upload, related?.id);
      requireMedia(parts, siteId, {
        'relationships.media.0.id': related?.id,
        'upload.source_media_id': taken,
      });
      const thumbnail = newThumbnail(parts, siteId, {
        thumbnailType: upload.thumbnail_type ?? 'static',
        sourceType: sourceTypeOf(upload),
        videoPosition: upload.video_position ?? 0,
      });
      state.thumbnails.add(thumbnail);
      attach(parts, thumbnail, related?.id ?? taken, related?.is_poster ?? false);
      const picture = () => {
        thumbnail.status = 'ready';
        thumbnail.lastModified = clock.now();
        const { mediaId: id } = thumbnail;
        if (id !== undefined) notify(mediaNotification('thumbnail_created', { id, siteId }));
      };
      if (taken !== undefined) picture();
      else {
        const arrival = { accept: PICTURES, maxBytes: MAX_PICTURE_BYTES, arrived: picture };
        takeContent(parts, state.thumbnails, thumbnail, upload, arrival);
      }
      return thumbnail;
    },
    update(thumbnail, _metadata, { relationships }) {
      const related = relatedMedia(relationships);
      requireMedia(parts, thumbnail.siteId, { 'relationships.media.0.id': related?.id });
      if (related) attach(parts, thumbnail, related.id, related.is_poster ?? thumbnail.isPoster);
      thumbnail.lastModified = clock.now();
    },
    remove: (thumbnail) => removeThumbnail(parts, thumbnail),
    shown: {
      ...CONTENT_VALUES,
      thumbnail_type: ({ thumbnailType }) => thumbnailType,
      source_type: ({ sourceType }) => sourceType,
      delivery_url: (thumbnail, { origin }) =>
        thumbnail.status === 'ready' ? `${origin}${thumbnailPath(thumbnail)}` : null,
      media_id: ({ mediaId }) => mediaId,
    },
    relationships: ({ mediaId, isPoster }) => ({
      media: mediaId === undefined ? [] : [{ id: mediaId, is_poster: isPoster }],
    }),
  };
}

type Given = BodyOf<typeof THUMBNAIL>;

function sourceTypeOf({ source_type, source_media_id, ...from }: Given['upload']): SourceType {
  if (source_type) return source_type;
  if (typeof from.thumbstrip_index === 'number') return 'thumbstrip_index';
  // Clients that leave a 0 out mean the start of the media.
  return source_media_id || typeof from.video_position === 'number' ? 'video_position' : 'custom_upload';
}

/** The media that a picture is taken from, or undefined when it is uploaded. @throws HttpError 400 */
function takenFrom(upload: Given['upload'], relatedId: string | undefined): string | undefined {
  if (sourceTypeOf(upload) === 'custom_upload') return undefined;
  const id = upload.source_media_id || relatedId;
  if (id !== undefined) return id;
  const description = 'upload.source_media_id: is missing; it says of which media the picture is';
  throw new HttpError(400, { code: 'invalid_body', description });
}

function relatedMedia({ media }: Given['relationships']) {
  return media?.[0];
}

/** @param ids by the fields that have them. @throws HttpError 400 that names each media that is missing. */
function requireMedia(
  { state }: ThumbnailParts,
  siteId: string,
  ids: Readonly<Record<string, string | undefined>>,
): void {
  const problems: Problem[] = Object.entries(ids).flatMap(([field, id]) =>
    id === undefined || state.media.findOf(siteId, id)
      ? []
      : [{ code: 'invalid_body', description: `${field}: this site has no media with this id` }],
  );
  if (problems.length > 0) throw new HttpError(400, problems);
}

/** A picture of no media, which is not there yet. */
function newThumbnail(
  parts: ThumbnailParts,
  siteId: string,
  of: Pick<Thumbnail, 'thumbnailType' | 'sourceType' | 'videoPosition'>,
): Thumbnail {
  return {
    ...noContent(),
    ...newItem(parts, siteId),
    metadata: {},
    mediaId: undefined,
    isPoster: false,
    ...of,
  };
}

/** Makes a thumbnail one of a media, or of another one; a media has one poster at most. */
function attach(
  { state }: ThumbnailParts,
  thumbnail: Thumbnail,
  mediaId: string | undefined,
  isPoster: boolean,
): void {
  detach(state, thumbnail);
  thumbnail.mediaId = mediaId;
  thumbnail.isPoster = isPoster;
  if (mediaId === undefined) return;
  const ids = state.mediaThumbnails.get(mediaId) ?? new Set();
  state.mediaThumbnails.set(mediaId, ids.add(thumbnail.id));
  if (!isPoster) return;
  for (const id of ids) {
    const other = state.thumbnails.find(id);
    if (other && other !== thumbnail) other.isPoster = false;
  }
}

function detach({ mediaThumbnails }: ThumbnailState, { id, mediaId }: Thumbnail): void {
  const ids = mediaThumbnails.get(mediaId ?? '');
  ids?.delete(id);
  if (ids?.size === 0) mediaThumbnails.delete(mediaId ?? '');
}

/** Makes a picture of a media automatically, unless it has one. It is the poster until one is chosen. */
export function makePoster(parts: ThumbnailParts, media: Media): void {
  const { state, notify } = parts;
  if (posterOf(parts, media)) return;
  const thumbnail = newThumbnail(parts, media.siteId, {
    thumbnailType: 'static',
    sourceType: 'video_position',
    videoPosition: 0,
  });
  thumbnail.status = 'ready';
  state.thumbnails.add(thumbnail);
  attach(parts, thumbnail, media.id, !thumbnailsOf(state, media).some(({ isPoster }) => isPoster));
  notify(mediaNotification('thumbnail_created', media));
}

function removeThumbnail(parts: ThumbnailParts, thumbnail: Thumbnail): void {
  const { state, notify } = parts;
  dropContent(parts, thumbnail);
  detach(state, thumbnail);
  state.thumbnails.remove(thumbnail);
  const { mediaId: id, siteId } = thumbnail;
  if (id !== undefined) notify(mediaNotification('thumbnail_deleted', { id, siteId }));
}

/** Removes the pictures of a media that is deleted; only its own end is reported. */
export function dropThumbnails(parts: ThumbnailParts, media: Media): void {
  for (const thumbnail of thumbnailsOf(parts.state, media)) {
    dropContent(parts, thumbnail);
    detach(parts.state, thumbnail);
    parts.state.thumbnails.remove(thumbnail);
  }
}
