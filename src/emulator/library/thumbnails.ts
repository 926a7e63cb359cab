import { HttpError, type Problem } from '../../http/errors';
import type { EmulatorContext } from '../context';
import type { THUMBNAIL } from '../resources/media-table';
import type { Behaviour, BodyOf } from '../resources/resource';
import type { StoredFile } from '../uploads/upload';
import { mediaNotification } from '../webhooks/notification';
import { type Content, dropContent, methodOf, takeContent, UPLOAD_LINKS } from './content';
import type { Media } from './media';

type SourceType = 'custom_upload' | 'video_position' | 'thumbstrip_index';

/** A picture of a media. */
export interface Thumbnail extends Content {
  readonly id: string;
  readonly siteId: string;
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

const MAX_PICTURE_BYTES = 50 * 1024 ** 2;

/** The path at which viewers get a thumbnail. */
export function thumbnailPath({ id }: Thumbnail): string {
  return `/thumbnails/${id}`;
}

/** The thumbnail that stands for a media. */
export function posterOf({ state }: Pick<EmulatorContext, 'state'>, media: Media): Thumbnail | undefined {
  return thumbnailsOf(state, media).find(({ isPoster }) => isPoster);
}

function thumbnailsOf({ thumbnails, mediaThumbnails }: EmulatorContext['state'], { id }: Media): Thumbnail[] {
  return [...(mediaThumbnails.get(id) ?? [])].flatMap((each) => thumbnails.find(each) ?? []);
}

/** What is special about thumbnails. */
export function thumbnailBehaviour(context: EmulatorContext): Behaviour<typeof THUMBNAIL, Thumbnail> {
  const { state, clock, notify, newResourceId } = context;
  const changed = (thumbnail: Thumbnail) => {
    thumbnail.lastModified = clock.now();
    state.thumbnails.changed(thumbnail);
  };
  return {
    list: ({ siteId = '' }) => state.thumbnails.list(siteId),
    find: ({ siteId = '', thumbnailId = '' }) => state.thumbnails.findOf(siteId, thumbnailId),
    create({ siteId = '' }, { upload, relationships }) {
      const sourceType = sourceTypeOf(upload);
      if (sourceType === 'custom_upload') methodOf(upload);
      const belongs = belongsTo(context, siteId, relationships);
      const source = sourceMedia(context, siteId, upload);
      const created = clock.now();
      const thumbnail: Thumbnail = {
        id: newResourceId(),
        siteId,
        created,
        lastModified: created,
        metadata: {},
        status: source ? 'ready' : 'created',
        errorMessage: null,
        upload: undefined,
        file: undefined,
        thumbnailType: upload.thumbnail_type ?? 'static',
        sourceType,
        videoPosition: upload.video_position ?? 0,
        mediaId: belongs?.media.id ?? source?.id,
        isPoster: false,
      };
      state.thumbnails.add(thumbnail);
      attach(context, thumbnail, thumbnail.mediaId, belongs?.isPoster ?? false);
      const tell = () => {
        const { mediaId: id } = thumbnail;
        if (id !== undefined) notify(mediaNotification('thumbnail_created', { id, siteId }));
      };
      if (source) tell();
      else {
        takeContent(context, thumbnail, upload, {
          maxBytes: MAX_PICTURE_BYTES,
          arrived(_file: StoredFile) {
            thumbnail.status = 'ready';
            changed(thumbnail);
            tell();
          },
          failed: () => changed(thumbnail),
        });
      }
      return thumbnail;
    },
    update(thumbnail, _metadata, { relationships }) {
      const belongs = belongsTo(context, thumbnail.siteId, relationships);
      if (belongs) attach(context, thumbnail, belongs.media.id, belongs.isPoster ?? thumbnail.isPoster);
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

function sourceTypeOf({ source_type, video_position, thumbstrip_index }: Given['upload']): SourceType {
  if (source_type) return source_type;
  if (typeof video_position === 'number') return 'video_position';
  return typeof thumbstrip_index === 'number' ? 'thumbstrip_index' : 'custom_upload';
}

/** The media that a picture is taken from, or undefined when it is uploaded. @throws HttpError 400 */
function sourceMedia({ state }: EmulatorContext, siteId: string, upload: Given['upload']): Media | undefined {
  if (sourceTypeOf(upload) === 'custom_upload') return undefined;
  const media = state.media.findOf(siteId, upload.source_media_id ?? '');
  if (media) return media;
  const description = `upload.source_media_id: ${
    upload.source_media_id ? 'this site has no media with this id' : 'is missing; it says which media to take'
  }`;
  throw new HttpError(400, { code: 'invalid_body', description });
}

/** What the relationships of a call say, or undefined when they say nothing. @throws HttpError 400 */
function belongsTo(
  { state }: EmulatorContext,
  siteId: string,
  { media: related }: Given['relationships'],
): { media: Media; isPoster: boolean | undefined } | undefined {
  const [wanted] = related ?? [];
  if (!wanted) return undefined;
  const media = state.media.findOf(siteId, wanted.id);
  if (media) return { media, isPoster: wanted.is_poster ?? undefined };
  const problem: Problem = {
    code: 'invalid_body',
    description: 'relationships.media.0.id: this site has no media with this id',
  };
  throw new HttpError(400, problem);
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
    if (other && other !== thumbnail) other.isPoster = false;
  }
}

function detach({ mediaThumbnails }: EmulatorContext['state'], { id, mediaId }: Thumbnail): void {
  const ids = mediaThumbnails.get(mediaId ?? '');
  ids?.delete(id);
  if (ids?.size === 0) mediaThumbnails.delete(mediaId ?? '');
}

/** Makes the poster that the platform takes of a media by itself, unless it has a picture. */
export function makePoster(context: EmulatorContext, media: Media): void {
  const { state, clock, newResourceId, notify } = context;
  if (thumbnailsOf(state, media).length > 0) return;
  const created = clock.now();
  const thumbnail: Thumbnail = {
    id: newResourceId(),
    siteId: media.siteId,
    created,
    lastModified: created,
    metadata: {},
    status: 'ready',
    errorMessage: null,
    upload: undefined,
    file: undefined,
    thumbnailType: 'static',
    sourceType: 'video_position',
    videoPosition: 0,
    mediaId: media.id,
    isPoster: true,
  };
  state.thumbnails.add(thumbnail);
  attach(context, thumbnail, media.id, true);
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
