import { HttpError, type Problem } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import type { THUMBNAIL } from '../resources/media-table';
import type { Behaviour, BodyOf } from '../resources/resource';
import { mediaNotification } from '../webhooks/notification';
import { type Content, dropContent, noContent, takeContent, UPLOAD_LINKS } from './content';
import type { Media } from './media';

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

/** The thumbnail that stands for a media. Until the picture of its poster is there, and without one, the latest. */
export function posterOf({ state }: Pick<EmulatorContext, 'state'>, media: Media): Thumbnail | undefined {
  const ready = thumbnailsOf(state, media).filter(({ status }) => status === 'ready');
  return ready.find(({ isPoster }) => isPoster) ?? ready.at(-1);
}

/** The pictures of a media, in the order they became its. */
export function thumbnailsOf(
  { thumbnails, mediaThumbnails }: EmulatorContext['state'],
  { id }: Media,
): Thumbnail[] {
  return [...(mediaThumbnails.get(id) ?? [])].flatMap((each) => thumbnails.find(each) ?? []);
}

/** What is special about thumbnails. */
export function thumbnailBehaviour(context: EmulatorContext): Behaviour<typeof THUMBNAIL, Thumbnail> {
  const { state, clock, notify } = context;
  const changed = (thumbnail: Thumbnail) => {
    thumbnail.lastModified = clock.now();
    state.thumbnails.changed(thumbnail);
  };
  return {
    list: ({ siteId = '' }) => state.thumbnails.of(siteId),
    find: ({ siteId = '', thumbnailId = '' }) => state.thumbnails.findOf(siteId, thumbnailId),
    create({ siteId = '' }, { upload, relationships }) {
      const related = relatedMedia(relationships);
      const taken = takenFrom(upload, related?.id);
      requireMedia(context, siteId, {
        'relationships.media.0.id': related?.id,
        'upload.source_media_id': taken,
      });
      const thumbnail = newThumbnail(context, siteId, {
        thumbnailType: upload.thumbnail_type ?? 'static',
        sourceType: sourceTypeOf(upload),
        videoPosition: upload.video_position ?? 0,
      });
      state.thumbnails.add(thumbnail);
      attach(context, thumbnail, related?.id ?? taken, related?.is_poster ?? false);
      const picture = () => {
        thumbnail.status = 'ready';
        changed(thumbnail);
        const { mediaId: id } = thumbnail;
        if (id !== undefined) notify(mediaNotification('thumbnail_created', { id, siteId }));
      };
      if (taken !== undefined) picture();
      else {
        const arrival = { accept: PICTURES, maxBytes: MAX_PICTURE_BYTES, arrived: picture };
        takeContent(context, state.thumbnails, thumbnail, upload, arrival);
      }
      return thumbnail;
    },
    update(thumbnail, _metadata, { relationships }) {
      const related = relatedMedia(relationships);
      requireMedia(context, thumbnail.siteId, { 'relationships.media.0.id': related?.id });
      if (related) attach(context, thumbnail, related.id, related.is_poster ?? thumbnail.isPoster);
      changed(thumbnail);
    },
    remove: (thumbnail) => removeThumbnail(context, thumbnail),
    shown: {
      status: ({ status }) => status,
      error_message: ({ errorMessage }) => errorMessage,
      thumbnail_type: ({ thumbnailType }) => thumbnailType,
      source_type: ({ sourceType }) => sourceType,
      delivery_url: (thumbnail, { origin }) =>
        thumbnail.status === 'ready' ? `${origin}${thumbnailPath(thumbnail)}` : null,
      media_id: ({ mediaId }) => mediaId,
      ...UPLOAD_LINKS,
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
  // Clients that leave a 0 out mean the begin of the media.
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

/** @param ids by the fields that have them. @throws HttpError 400 that names each media that the site has not. */
function requireMedia(
  { state }: EmulatorContext,
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
  { clock, newResourceId }: EmulatorContext,
  siteId: string,
  of: Pick<Thumbnail, 'thumbnailType' | 'sourceType' | 'videoPosition'>,
): Thumbnail {
  const created = clock.now();
  return {
    ...noContent(),
    id: newResourceId(),
    siteId,
    created,
    lastModified: created,
    metadata: {},
    mediaId: undefined,
    isPoster: false,
    ...of,
  };
}

/** Makes a thumbnail one of a media, or of another one; a media has one poster at most. */
function attach(
  { state }: EmulatorContext,
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
    if (!other?.isPoster || other === thumbnail) continue;
    other.isPoster = false;
    state.thumbnails.changed(other);
  }
}

function detach({ mediaThumbnails }: EmulatorContext['state'], { id, mediaId }: Thumbnail): void {
  const ids = mediaThumbnails.get(mediaId ?? '');
  ids?.delete(id);
  if (ids?.size === 0) mediaThumbnails.delete(mediaId ?? '');
}

/** Takes a picture of a media, as the platform does by itself, unless it has one. It is the poster until one is chosen. */
export function makePoster(context: EmulatorContext, media: Media): void {
  const { state, notify } = context;
  if (posterOf(context, media)) return;
  const thumbnail = newThumbnail(context, media.siteId, {
    thumbnailType: 'static',
    sourceType: 'video_position',
    videoPosition: 0,
  });
  thumbnail.status = 'ready';
  state.thumbnails.add(thumbnail);
  attach(context, thumbnail, media.id, !thumbnailsOf(state, media).some(({ isPoster }) => isPoster));
  notify(mediaNotification('thumbnail_created', media));
}

function removeThumbnail(context: EmulatorContext, thumbnail: Thumbnail): void {
  const { state, notify } = context;
  dropContent(context, thumbnail);
  detach(state, thumbnail);
  state.thumbnails.remove(thumbnail);
  const { mediaId: id, siteId } = thumbnail;
  if (id !== undefined) notify(mediaNotification('thumbnail_deleted', { id, siteId }));
}

/** Removes the pictures of a media that goes; only its own end is told. */
export function dropThumbnails(context: EmulatorContext, media: Media): void {
  for (const thumbnail of thumbnailsOf(context.state, media)) {
    dropContent(context, thumbnail);
    detach(context.state, thumbnail);
    context.state.thumbnails.remove(thumbnail);
  }
}
