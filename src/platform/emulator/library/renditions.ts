import { HttpError } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { MEDIA, type MEDIA_RENDITION, ORIGINAL } from '../resources/media-table';
import type { Behaviour, MetadataOf, PathIds } from '../resources/resource';
import { notFound } from '../resources/resource-calls';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/upload';
import {
  type Content,
  type ContentStatus,
  dropContent,
  MAX_FILE_BYTES,
  noContent,
  statusUnderWay,
  takeContent,
  UPLOAD_LINKS,
} from './content';
import type { Media } from './media';

/** A file of a media as it was uploaded. The primary one is the media's own content. */
export interface Original extends Content {
  readonly mediaId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof ORIGINAL>;
  /** Whether its file is that of the media. */
  readonly isPrimary: boolean;
  containerFormat: string | null;
  /** Seconds. */
  duration: number;
  /** Pixels. */
  width: number;
  height: number;
}

/** A media in one size. */
export interface Rendition {
  readonly id: string;
  readonly siteId: string;
  readonly mediaId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof MEDIA_RENDITION>;
  readonly templateId: string;
  /** Whether the platform made it by itself. */
  readonly isAutomatic: boolean;
  status: ContentStatus;
  width: number;
  height: number;
  /** Bytes. */
  filesize: number;
}

/** The media that a path means. @throws HttpError 404 when its site has none with this id. */
export function mediaOf({ state }: EmulatorContext, { siteId = '', mediaId = '' }: PathIds): Media {
  const media = state.media.findOf(siteId, mediaId);
  if (media) return media;
  throw notFound(MEDIA);
}

/** What a part of a media begins with. */
export function partOf({ clock, newResourceId }: EmulatorContext, { id: mediaId, siteId }: Media) {
  const created = clock.now();
  return { id: newResourceId(), siteId, mediaId, created, lastModified: created };
}

/** What is special about originals. */
export function originalBehaviour(context: EmulatorContext): Behaviour<typeof ORIGINAL, Original> {
  const { state, clock } = context;
  return {
    list: (ids) => state.originals.of(mediaOf(context, ids).id),
    find: (ids) => state.originals.findOf(mediaOf(context, ids).id, ids.originalId ?? ''),
    create(ids, { metadata, upload }) {
      const media = mediaOf(context, ids);
      const original: Original = {
        ...noContent(),
        ...partOf(context, media),
        metadata: { ...valuesAfter(ORIGINAL.metadata, metadata), type: metadata.type ?? 'alternate' },
        isPrimary: false,
        ...NOTHING_KNOWN,
      };
      state.originals.add(original);
      takeContent(context, state.originals, original, upload, {
        maxBytes: MAX_FILE_BYTES,
        arrived: (file) => describe(context, original, file),
      });
      return original;
    },
    update(original, metadata) {
      original.metadata = metadata;
      original.lastModified = clock.now();
      state.originals.changed(original);
    },
    remove(original) {
      if (original.isPrimary) {
        const description =
          'The primary original is the content of the media. Delete the media, or reupload it.';
        throw new HttpError(409, { code: 'conflict', description });
      }
      dropContent(context, original);
      state.originals.remove(original);
    },
    shown: {
      status: ({ status }) => status,
      error_message: ({ errorMessage }) => errorMessage,
      container_format: ({ containerFormat }) => containerFormat,
      duration: ({ duration }) => duration,
      size: ({ file }) => file?.size ?? 0,
      md5: ({ file }) => file?.md5 ?? null,
      includes: ({ id, width, height }) => (width > 0 ? { video_track: { [id]: { width, height } } } : {}),
      ...UPLOAD_LINKS,
    },
  };
}

const NOTHING_KNOWN = { containerFormat: null, duration: 0, width: 0, height: 0 };

async function describe({ state, clock }: EmulatorContext, original: Original, file: StoredFile) {
  original.status = statusUnderWay(original);
  state.originals.changed(original);
  const facts = await probe(file);
  if (state.originals.find(original.id) !== original || original.file !== file) return;
  original.containerFormat = formatOf(facts?.mimeType ?? file.declaredType ?? null);
  original.duration = facts?.duration ?? 0;
  original.width = facts?.width ?? 0;
  original.height = facts?.height ?? 0;
  original.status = 'ready';
  original.lastModified = clock.now();
  state.originals.changed(original);
}

function formatOf(mimeType: string | null): string | null {
  return mimeType?.split(/[/;]/)[1] ?? null;
}

/** Keeps the file of a media as its primary original, in place of the one before. @param duration of the whole file. */
export function keepOriginal(context: EmulatorContext, media: Media, duration: number): void {
  const { state, clock } = context;
  const { width, height, file } = media;
  const facts = {
    containerFormat: formatOf(media.mimeType),
    duration,
    width,
    height,
    file,
    status: 'ready' as const,
    lastModified: clock.now(),
  };
  const before = state.originals.of(media.id).find(({ isPrimary }) => isPrimary);
  if (before) {
    Object.assign(before, facts);
    state.originals.changed(before);
    return;
  }
  state.originals.add({
    ...noContent(),
    ...partOf(context, media),
    metadata: valuesAfter(ORIGINAL.metadata, {}),
    isPrimary: true,
    ...facts,
  });
}

/** What is special about renditions. */
export function renditionBehaviour(context: EmulatorContext): Behaviour<typeof MEDIA_RENDITION, Rendition> {
  const { state } = context;
  return {
    list: (ids) => state.renditions.of(mediaOf(context, ids).id),
    find: (ids) => state.renditions.findOf(mediaOf(context, ids).id, ids.renditionId ?? ''),
    create(ids, { relationships }) {
      const media = mediaOf(context, ids);
      const templateId = relationships.media_rendition_template?.id ?? '';
      if (state.renditions.of(media.id).some((other) => other.templateId === templateId)) {
        const description = 'This media has a rendition of this template already. Delete it to make it anew.';
        throw new HttpError(409, { code: 'conflict', description });
      }
      if (media.hostingType === 'external') {
        const description = 'The content of this media is external: the platform makes no renditions of it.';
        throw new HttpError(409, { code: 'conflict', description });
      }
      if (media.status === 'ready' && !media.file) {
        const description =
          'This media was recorded live, and the emulator keeps no recordings. Upload a file.';
        throw new HttpError(409, { code: 'conflict', description });
      }
      const { width, height } = media;
      const rendition = addRendition(context, media, templateId, { width, height, isAutomatic: false });
      if (rendition.status === 'processing' && media.status === 'ready')
        context.clock.after(CONVERSION_MS, () => finish(context, media, rendition));
      return rendition;
    },
    remove: (rendition) => state.renditions.remove(rendition),
    shown: {
      status: ({ status }) => status,
      error_message: () => null,
      media_type: ({ mediaId }) => state.media.find(mediaId)?.mediaType ?? 'video',
      delivery_url: (rendition, { origin }) =>
        rendition.status === 'ready' && !isEncrypted(context, rendition)
          ? `${origin}${renditionPath(rendition)}`
          : null,
      filesize: ({ filesize }) => filesize,
      width: ({ width }) => width,
      height: ({ height }) => height,
    },
    relationships: ({ templateId }) => ({ media_rendition_template: { id: templateId } }),
  };
}

/** Whether viewers get the media of a rendition encrypted alone. */
function isEncrypted({ state, packaging }: EmulatorContext, { mediaId }: Rendition): boolean {
  const media = state.media.find(mediaId);
  return media !== undefined && packaging.encrypts(media);
}

/** How long a conversion takes, by the platform's clock. */
export const CONVERSION_MS = 2_000;

/** The path at which viewers get a rendition. */
export function renditionPath({ mediaId, id }: Rendition): string {
  return `/videos/${mediaId}-${id}.mp4`;
}

/** The heights that the platform makes by itself, of a video that is at least as high. */
const LADDER = [180, 270, 406, 720, 1080] as const;

/** Makes the renditions of a media's content, and finishes those that were asked for before it came. */
export function makeRenditions(context: EmulatorContext, media: Media): void {
  if (!media.file) return;
  const { state } = context;
  const heights = media.mediaType === 'audio' ? [] : LADDER.filter((height) => height <= media.height);
  const wanted = (heights.length > 0 ? heights : [media.height]).map((height) => ({
    templateId: height > 0 ? `${height}p` : media.mediaType,
    width: media.height > 0 ? Math.round((media.width * height) / media.height / 2) * 2 : 0,
    height,
  }));
  const before = [...state.renditions.of(media.id)];
  // What the platform made of an earlier content, it makes in the sizes of this one.
  for (const rendition of before) if (rendition.isAutomatic) state.renditions.remove(rendition);
  for (const { templateId, ...size } of wanted) {
    const kept = before.find((other) => other.templateId === templateId);
    if (kept?.isAutomatic) state.renditions.add(Object.assign(kept, size));
    else if (!kept) addRendition(context, media, templateId, { ...size, isAutomatic: true });
  }
  for (const rendition of state.renditions.of(media.id)) finish(context, media, rendition);
}

function addRendition(
  context: EmulatorContext,
  media: Media,
  templateId: string,
  size: Pick<Rendition, 'width' | 'height' | 'isAutomatic'>,
): Rendition {
  const rendition: Rendition = {
    ...partOf(context, media),
    metadata: {},
    templateId,
    status: 'processing',
    ...size,
    filesize: 0,
  };
  context.state.renditions.add(rendition);
  return rendition;
}

/** The emulator converts nothing: a rendition is the uploaded file, under an address of its own. */
function finish({ state, clock }: EmulatorContext, media: Media, rendition: Rendition): void {
  if (!state.renditions.find(rendition.id) || !media.file) return;
  rendition.status = 'ready';
  rendition.filesize = media.file.size;
  rendition.lastModified = clock.now();
  state.renditions.changed(rendition);
}

/** Removes what belongs to a media that goes. */
export function dropRenditions(context: EmulatorContext, { id }: Media): void {
  const { state } = context;
  for (const original of [...state.originals.of(id)]) {
    if (!original.isPrimary) dropContent(context, original);
    state.originals.remove(original);
  }
  for (const rendition of [...state.renditions.of(id)]) state.renditions.remove(rendition);
}
