import * as z from 'zod';
import { HttpError, httpError, type Problem } from '../../../http/errors';
import { field, objectOf, text } from '../json-body';
import {
  CONTENT_FIELDS,
  CONTENT_KEPT,
  CONTENT_VALUES,
  type Content,
  dropAll,
  takeContent,
  uploadBy,
} from './content';
import { Amount, Choice, Flag, Id, list, row, SITE, WholeNumber } from './fields';
import { type Media, partOf } from './media';
import {
  type Behaviour,
  type BodyOf,
  named,
  newItem,
  type Platform,
  type Resource,
  type Stored,
} from './resource';

const THUMBNAIL_TYPES = ['static', 'video'] as const;
const SOURCE_TYPES = ['custom_upload', 'video_position', 'thumbstrip_index'] as const;

export const THUMBNAIL = {
  ...named('thumbnail', SITE, 'thumbnailId'),
  alsoListedAs: 'thumbnail',
  says: 'A picture of a media. One of them is its poster.',
  metadata: {},
  upload: {
    ...uploadBy('direct', 'multipart', 'fetch'),
    thumbnail_type: row(Choice(THUMBNAIL_TYPES), 'A picture, or a short moving one.', { default: 'static' }),
    source_type: row(Choice(SOURCE_TYPES), 'Where the picture comes from. It follows from the other fields.'),
    source_media_id: row(text(200), 'The media to take the picture from.'),
    video_position: row(z.number('must be a number').min(0), 'Seconds into that media.'),
    thumbstrip_index: row(WholeNumber(10_000), 'The picture of its strip of pictures.'),
  },
  relationships: {
    media: row(
      list(
        objectOf({
          id: field(text(200).min(1, 'is empty'), 'The media.'),
          is_poster: field(Flag.nullish(), 'Whether this is its poster; then no other is.'),
        }),
        1,
      ),
      'The media that it is of, and whether it is its poster.',
    ),
  },
  shown: {
    ...CONTENT_FIELDS,
    thumbnail_type: row(Choice(THUMBNAIL_TYPES), 'The kind of thumbnail.', { filter: 'text' }),
    source_type: row(z.string(), 'Where the picture comes from.', { filter: 'text' }),
    delivery_url: row(z.string().nullable(), 'Where the picture is, once it is ready.'),
    media_id: row(z.string(), 'The media that it is of.', { filter: 'text', unseen: true }),
  },
  kept: {
    ...CONTENT_KEPT,
    thumbnailType: Choice(THUMBNAIL_TYPES).default('static'),
    sourceType: Choice(SOURCE_TYPES).default('video_position'),
    /** Seconds into the media that it is taken from. */
    videoPosition: Amount.default(0),
    /** Undefined while it belongs to none. */
    mediaId: Id.optional(),
    isPoster: Flag.default(false),
  },
} as const satisfies Resource;

type SourceType = (typeof SOURCE_TYPES)[number];

export type Thumbnail = Content & Stored<typeof THUMBNAIL>;

/** One may be a short video. */
const PICTURES = ['image/*', 'video/*'];
const MAX_PICTURE_BYTES = 50 * 1024 ** 2;

/** The thumbnail that represents a media: its poster, or the latest one while there is no picture of a poster. */
export function posterOf({ state }: Pick<Platform, 'state'>, media: Media): Thumbnail | undefined {
  const ready = thumbnailsOf(state, media).filter(({ status }) => status === 'ready');
  return ready.find(({ isPoster }) => isPoster) ?? ready.at(-1);
}

/** The pictures of a media, the oldest first. */
export function thumbnailsOf({ thumbnails }: Platform['state'], { id }: Media): Thumbnail[] {
  return thumbnails.all().filter(({ mediaId }) => mediaId === id);
}

export function thumbnailBehaviour(parts: Platform): Behaviour<typeof THUMBNAIL, Thumbnail> {
  const { state, notify } = parts;
  return {
    store: state.thumbnails,
    create({ siteId = '' }, { upload, relationships }) {
      const related = relationships.media?.[0];
      const taken = takenFrom(upload, related?.id);
      requireMedia(parts, siteId, {
        'relationships.media.0.id': related?.id,
        'upload.source_media_id': taken === related?.id ? undefined : taken,
      });
      const made = newItem(THUMBNAIL, parts, {
        siteId,
        metadata: {},
        thumbnailType: upload.thumbnail_type ?? 'static',
        sourceType: sourceTypeOf(upload),
        videoPosition: upload.video_position ?? 0,
      });
      const thumbnail = state.thumbnails.add(made);
      attach(parts, thumbnail, related?.id ?? taken, related?.is_poster ?? false);
      const ready = () => {
        state.thumbnails.change(thumbnail, { status: 'ready' });
        const { mediaId: id } = thumbnail;
        if (id !== undefined) notify('thumbnail_created', { id, siteId });
      };
      if (taken !== undefined) ready();
      else {
        const arrival = { accept: PICTURES, maxBytes: MAX_PICTURE_BYTES, arrived: ready };
        takeContent(parts, state.thumbnails, thumbnail, upload, arrival);
      }
      return thumbnail;
    },
    update(thumbnail, _metadata, { relationships }) {
      const related = relationships.media?.[0];
      requireMedia(parts, thumbnail.siteId, { 'relationships.media.0.id': related?.id });
      if (related) attach(parts, thumbnail, related.id, related.is_poster ?? thumbnail.isPoster);
      state.thumbnails.change(thumbnail);
    },
    remove(thumbnail) {
      dropAll(parts, state.thumbnails, [thumbnail]);
      const { mediaId: id, siteId } = thumbnail;
      if (id !== undefined) notify('thumbnail_deleted', { id, siteId });
    },
    shown: {
      ...CONTENT_VALUES,
      delivery_url: ({ id, status }, { origin }) =>
        status === 'ready' ? `${origin}/thumbnails/${id}` : null,
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
  throw httpError(
    'invalid_body',
    'upload.source_media_id: is missing; it says of which media the picture is',
  );
}

/** @param ids by the fields that have them. @throws HttpError 400 that names each media that is missing. */
function requireMedia(
  { state }: Platform,
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

/** Makes a thumbnail one of a media, or of another one; a media has one poster at most. */
function attach({ state }: Platform, thumbnail: Thumbnail, mediaId: string | undefined, isPoster: boolean) {
  if (isPoster)
    for (const other of state.thumbnails.of(thumbnail.siteId))
      if (other.mediaId === mediaId) other.isPoster = false;
  thumbnail.mediaId = mediaId;
  thumbnail.isPoster = isPoster;
}

/** Makes a picture of a media automatically, unless it has one. It is the poster until one is chosen. */
export function makePoster(parts: Platform, media: Media): void {
  const { state, notify } = parts;
  const pictures = thumbnailsOf(state, media);
  if (pictures.some(({ status }) => status === 'ready')) return;
  const isPoster = !pictures.some((picture) => picture.isPoster);
  const given = { ...partOf(media), metadata: {}, status: 'ready', isPoster } as const;
  state.thumbnails.add(newItem(THUMBNAIL, parts, given));
  notify('thumbnail_created', media);
}
