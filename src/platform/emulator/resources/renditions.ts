import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import type { ItemStore } from '../listing/item-store';
import { type ContentStatus, STATE_FIELDS } from './content';
import { Choice, Reference, row } from './fields';
import { inMedia, type Media, mediaOf, ONE_MEDIA, partOf } from './media';
import { type Behaviour, named, type Platform, type Resource, type Stored } from './resource';

export const MEDIA_RENDITION = {
  ...named('media_rendition', ONE_MEDIA, 'renditionId'),
  noun: 'rendition',
  says: 'A media in one size, as it is delivered.',
  verbs: ['list', 'create', 'read', 'delete'],
  metadata: {},
  relationships: {
    media_rendition_template: row(Reference, 'What to make. A media has one rendition for each template.', {
      required: true,
    }),
  },
  shown: {
    ...STATE_FIELDS,
    media_type: row(Choice(['video', 'audio']), 'What it is.', { filter: 'text' }),
    delivery_url: row(z.string().nullable(), 'Where the file is, once it is ready.'),
    filesize: row(z.int(), 'Bytes.', { filter: 'number' }),
    width: row(z.int(), 'Pixels.', { filter: 'number' }),
    height: row(z.int(), 'Pixels.', { filter: 'number' }),
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

/** A media in one size. */
export interface Rendition extends Stored<typeof MEDIA_RENDITION> {
  readonly mediaId: string;
  readonly templateId: string;
  /** Whether the platform made it by itself. */
  readonly isAutomatic: boolean;
  status: ContentStatus;
  width: number;
  height: number;
  /** Bytes. */
  filesize: number;
}

declare module './resource' {
  interface LibraryState {
    /** By media. */
    readonly renditions: ItemStore<Rendition>;
  }
}

export function renditionBehaviour(parts: Platform): Behaviour<typeof MEDIA_RENDITION, Rendition> {
  const { state } = parts;
  return {
    ...inMedia(parts, state.renditions, 'renditionId'),
    create(ids, { relationships }) {
      const media = mediaOf(parts, ids);
      const templateId = relationships.media_rendition_template?.id ?? '';
      if (state.renditions.of(media.id).some((other) => other.templateId === templateId))
        throw conflict('This media has a rendition of this template already. Delete it to make it again.');
      if (media.hostingType === 'external')
        throw conflict('The content of this media is external: the platform makes no renditions of it.');
      if (media.status === 'ready' && !media.file)
        throw conflict('This media was recorded live, and the emulator keeps no recordings. Upload a file.');
      const { width, height } = media;
      const rendition = addRendition(parts, media, templateId, { width, height, isAutomatic: false });
      if (rendition.status === 'processing' && media.status === 'ready')
        parts.clock.after(CONVERSION_MS, () => finish(parts, media, rendition));
      return rendition;
    },
    remove: (rendition) => state.renditions.remove(rendition),
    shown: {
      error_message: () => null,
      media_type: ({ mediaId }) => state.media.find(mediaId)?.mediaType ?? 'video',
      delivery_url: (rendition, { origin }) =>
        rendition.status === 'ready' && !isEncrypted(parts, rendition)
          ? `${origin}${renditionPath(rendition)}`
          : null,
    },
    relationships: ({ templateId }) => ({ media_rendition_template: { id: templateId } }),
  };
}

function conflict(description: string): HttpError {
  return new HttpError(409, { code: 'conflict', description });
}

/** Whether viewers get the media of a rendition only encrypted. */
function isEncrypted({ state, packaging }: Platform, { mediaId }: Rendition): boolean {
  const media = state.media.find(mediaId);
  return media !== undefined && packaging.encrypts(media);
}

/** How long a conversion takes, by the platform's clock. */
export const CONVERSION_MS = 2_000;

/** The path at which viewers get a rendition. */
export function renditionPath({ mediaId, id }: Rendition): string {
  return `/videos/${mediaId}-${id}.mp4`;
}

/** The heights of automatic renditions, of a video that is at least as high. */
const LADDER = [180, 270, 406, 720, 1080] as const;

/** Makes the renditions of a media's content, and finishes those that were requested before it arrived. */
export function makeRenditions(parts: Platform, media: Media): void {
  if (!media.file) return;
  const { state } = parts;
  const heights = media.mediaType === 'audio' ? [] : LADDER.filter((height) => height <= media.height);
  const wanted = (heights.length > 0 ? heights : [media.height]).map((height) => ({
    templateId: height > 0 ? `${height}p` : media.mediaType,
    width: media.height > 0 ? Math.round((media.width * height) / media.height / 2) * 2 : 0,
    height,
  }));
  const before = state.renditions.of(media.id);
  // Automatic renditions of an earlier content get the sizes of this one.
  for (const rendition of before) if (rendition.isAutomatic) state.renditions.remove(rendition);
  for (const { templateId, ...size } of wanted) {
    const kept = before.find((other) => other.templateId === templateId);
    if (kept?.isAutomatic) state.renditions.add(Object.assign(kept, size));
    else if (!kept) addRendition(parts, media, templateId, { ...size, isAutomatic: true });
  }
  for (const rendition of state.renditions.of(media.id)) finish(parts, media, rendition);
}

function addRendition(
  parts: Platform,
  media: Media,
  templateId: string,
  size: Pick<Rendition, 'width' | 'height' | 'isAutomatic'>,
): Rendition {
  const rendition: Rendition = {
    ...partOf(parts, media),
    metadata: {},
    templateId,
    status: 'processing',
    ...size,
    filesize: 0,
  };
  parts.state.renditions.add(rendition);
  return rendition;
}

/** The emulator converts nothing: a rendition is the uploaded file, under an address of its own. */
function finish({ state, clock }: Platform, media: Media, rendition: Rendition): void {
  if (!state.renditions.find(rendition.id) || !media.file) return;
  rendition.status = 'ready';
  rendition.filesize = media.file.size;
  rendition.lastModified = clock.now();
}

/** Removes the renditions of a media that is deleted, or whose content is external now. */
export function dropRenditions({ state }: Platform, { id }: Media): void {
  for (const rendition of state.renditions.of(id)) state.renditions.remove(rendition);
}
