import * as z from 'zod';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/uploads';
import { CONTENT_KEPT, type Content, dropAll, dropContent, STATE_FIELDS } from './content';
import { Amount, Flag, Id, Reference, row, Text } from './fields';
import { KIND, type Media, mediaOf, ONE_MEDIA, partOf } from './media';
import { type Behaviour, named, newItem, type Platform, type Resource, type Stored } from './resource';
import { conflict } from './resource-calls';

export const MEDIA_RENDITION = {
  ...named('media_rendition', ONE_MEDIA, 'renditionId'),
  noun: 'rendition',
  says: 'A media in one size, as it is delivered.',
  verbs: ['list', 'create', 'read', 'delete'],
  metadata: {},
  relationships: {
    media_rendition_template: row(Reference, 'The template. A media has one rendition for each.', {
      required: true,
    }),
  },
  shown: {
    ...STATE_FIELDS,
    media_type: row(KIND, 'The kind of media.', { filter: 'text' }),
    unconverted_reason: row(
      z.string().nullable(),
      'Why a ready rendition is the uploaded file; `null` for one that was converted.',
    ),
    delivery_url: row(z.string().nullable(), 'Where the file is, once it is ready.'),
    filesize: row(z.int(), 'Bytes.', { filter: 'number' }),
    width: row(z.int(), 'Pixels.', { filter: 'number' }),
    height: row(z.int(), 'Pixels.', { filter: 'number' }),
  },
  kept: {
    ...CONTENT_KEPT,
    status: CONTENT_KEPT.status.unwrap().default('processing'),
    mediaId: Id,
    templateId: Text,
    isAutomatic: Flag,
    width: Amount,
    height: Amount,
    /** Bytes. */
    filesize: Amount.default(0),
    unconvertedReason: Text.nullable().default(null),
  },
  refusals: {
    create: [
      [409, 'conflict', 'The media has a rendition of this template already, or its content is external.'],
    ],
  },
} as const satisfies Resource;

/** A media in one size, as the converted file; without one, as the uploaded file. */
export type Rendition = Content & Stored<typeof MEDIA_RENDITION>;

export interface WantedConversion {
  readonly file: StoredFile;
  readonly order: { readonly height?: number; readonly bitrate?: number };
  readonly signal: AbortSignal;
  /** The taker owns the file from then on. */
  readonly take: (file: StoredFile) => Promise<void>;
  /** The packager converts nothing, for this reason. */
  readonly unconverted: (description: string) => void;
  /** It failed for this reason; it is tried again unless that is final. */
  readonly problem: (description: string, isFinal: boolean) => void;
}

declare module './resource' {
  interface Platform {
    readonly recordings: {
      readonly areMade: boolean;
      convert(wanted: WantedConversion): void;
    };
  }
}

export function renditionBehaviour(parts: Platform): Behaviour<typeof MEDIA_RENDITION, Rendition> {
  const { state } = parts;
  return {
    store: state.renditions,
    parent: (ids) => mediaOf(parts, ids),
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
      const given = { ...partOf(media), metadata: {}, templateId, width, height, isAutomatic: false };
      const rendition = state.renditions.add(newItem(MEDIA_RENDITION, parts, given));
      if (rendition.status === 'processing' && media.status === 'ready')
        parts.clock.after(CONVERSION_MS, () => startConversion(parts, media, rendition));
      return rendition;
    },
    remove: (rendition) => dropAll(parts, state.renditions, [rendition]),
    shown: {
      media_type: ({ mediaId }) => state.media.find(mediaId)?.mediaType ?? 'video',
      // Viewers may get the media only encrypted.
      delivery_url(rendition, { origin }) {
        const media = state.media.find(rendition.mediaId);
        const isServed = rendition.status === 'ready' && !(media && parts.packaging.encrypts(media));
        return isServed ? `${origin}${renditionPath(rendition)}` : null;
      },
    },
    relationships: ({ templateId }) => ({ media_rendition_template: { id: templateId } }),
  };
}

/** How long a conversion takes, by the platform's clock. */
export const CONVERSION_MS = 2_000;

export function renditionPath({ mediaId, id }: Rendition): string {
  return `/videos/${mediaId}-${id}.mp4`;
}

/**
 * The automatic renditions of a video that is at least as high: pixels, and kbit/s of the picture. A template
 * of another height has the rate of the next one.
 */
const LADDER: readonly (readonly [height: number, bitrate: number])[] = [
  [180, 300],
  [270, 500],
  [406, 1000],
  [720, 2400],
  [1080, 4500],
];

/** The target of a conversion, by the name of a template: `270p`, or `audio` for sound alone. */
function orderOf(templateId: string, media: Media): WantedConversion['order'] | undefined {
  if (templateId === 'audio') return {};
  const [, digits] = /^([1-9]\d{1,3})p$/.exec(templateId) ?? [];
  if (digits === undefined) return undefined;
  const height = Number(digits);
  const [, rate = 0] = LADDER.find(([least]) => height <= least) ?? LADDER.at(-1) ?? [];
  // More than the file has adds nothing.
  const ofFile = media.duration > 0 ? Math.ceil(((media.file?.size ?? 0) * 8) / media.duration / 1000) : rate;
  return { height, bitrate: Math.max(Math.min(rate, ofFile), 1) };
}

const NO_PACKAGER = 'The emulator has no packager that converts (EMULATOR_PACKAGERURL).';
const PROTECTED = 'Viewers get the media only encrypted, in DASH and HLS.';
const NO_TEMPLATE = `No such template can be made: name a height, such as ${LADDER.map(([height]) => `${height}p`).join(', ')}, or audio.`;

/** Makes the renditions of a media's content, and finishes those that were requested before it arrived. */
export function makeRenditions(parts: Platform, media: Media): void {
  media.timers.processing = undefined;
  if (!media.file) return;
  const { state } = parts;
  const all = LADDER.map(([height]) => height);
  const heights = media.mediaType === 'audio' ? [] : all.filter((height) => height <= media.height);
  const wanted = (heights.length > 0 ? heights : [media.height]).map((height) => ({
    templateId: height > 0 ? `${height}p` : media.mediaType,
    width: media.height > 0 ? Math.round((media.width * height) / media.height / 2) * 2 : 0,
    height,
  }));
  const before = state.renditions.of(media.id);
  // Automatic renditions of an earlier content get the sizes of this one.
  for (const rendition of before) if (rendition.isAutomatic) state.renditions.remove(rendition);
  for (const size of wanted) {
    const kept = before.find((other) => other.templateId === size.templateId);
    const given = { ...partOf(media), metadata: {}, ...size, isAutomatic: true };
    if (kept?.isAutomatic) state.renditions.add(Object.assign(kept, size));
    else if (!kept) state.renditions.add(newItem(MEDIA_RENDITION, parts, given));
  }
  for (const rendition of before) dropContent(parts, rendition);
  for (const rendition of state.renditions.of(media.id)) startConversion(parts, media, rendition);
}

/** Requests the conversion of a rendition. Without one, it is the uploaded file, under an address of its own. */
function startConversion(parts: Platform, media: Media, rendition: Rendition): void {
  const { state, recordings, packaging } = parts;
  const { file } = media;
  if (!state.renditions.find(rendition.id) || !file) return;
  dropContent(parts, rendition);
  const order = orderOf(rendition.templateId, media);
  const ready = { status: 'ready', errorMessage: null, unconvertedReason: null } as const;
  const isMade = (made: Pick<Rendition, 'filesize'> & Partial<Rendition>) =>
    endConversion(parts, media, rendition, { ...ready, ...made });
  const unconverted = (unconvertedReason: string) => isMade({ filesize: file.size, unconvertedReason });
  if (!order || !recordings.areMade || packaging.encrypts(media)) {
    unconverted(order ? (recordings.areMade ? PROTECTED : NO_PACKAGER) : NO_TEMPLATE);
    return;
  }
  rendition.status = 'processing';
  rendition.fetching = new AbortController();
  const { signal } = rendition.fetching;
  recordings.convert({
    file,
    order,
    signal,
    async take(converted) {
      const { width = 0, height = 0 } = (await probe(converted)) ?? {};
      if (signal.aborted) return parts.uploads.files.remove(converted);
      isMade({ filesize: converted.size, file: converted, width, height });
    },
    unconverted,
    problem(description, isFinal) {
      rendition.errorMessage = description;
      if (isFinal) endConversion(parts, media, rendition, { status: 'failed' });
    },
  });
}

/** Keeps the end of a conversion. Webhooks are notified once, when no rendition of the media is left to be made. */
function endConversion(parts: Platform, media: Media, rendition: Rendition, end: Partial<Rendition>): void {
  parts.state.renditions.change(rendition, end);
  const all = parts.state.renditions.of(media.id);
  if (media.converted || media.timers.processing || all.some((each) => each.status !== 'ready')) return;
  media.converted = true;
  parts.notify('conversions_complete', media);
}
