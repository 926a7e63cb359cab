import * as z from 'zod';
import { text } from '../json-body';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/uploads';
import { valuesAfter } from './body';
import {
  CONTENT_FIELDS,
  CONTENT_KEPT,
  CONTENT_VALUES,
  type Content,
  dropAll,
  MAX_FILE_BYTES,
  statusUnderWay,
  takeContent,
  uploadBy,
} from './content';
import { Amount, Flag, Id, row, Text } from './fields';
import { type Media, mediaOf, ONE_MEDIA, partOf } from './media';
import { type Behaviour, named, newItem, type Platform, type Resource, type Stored } from './resource';
import { conflict } from './resource-calls';

export const ORIGINAL = {
  ...named('original', ONE_MEDIA, 'originalId'),
  says: 'A file as it was uploaded for a media. The primary one is converted.',
  metadata: {
    name: row(text(200), 'The name.', { default: 'Original', filter: 'words' }),
    language: row(text(100), 'The spoken language, such as English.', { filter: 'text' }),
    language_code: row(text(50), 'Its code, such as en.', { filter: 'text' }),
    type: row(text(50), 'Its purpose.', { default: 'alternate', filter: 'text' }),
  },
  upload: uploadBy('direct', 'multipart', 'fetch'),
  shown: {
    ...CONTENT_FIELDS,
    container_format: row(z.string().nullable(), 'The format of the file, such as mp4.'),
    duration: row(z.number(), 'Seconds; 0 while it is not known.'),
    size: row(z.int(), 'Bytes.', { filter: 'number' }),
    md5: row(z.string().nullable(), 'The MD5 of the file, in hexadecimal.'),
    includes: row(z.looseObject({}), 'Its tracks, by their kind.'),
  },
  kept: {
    ...CONTENT_KEPT,
    mediaId: Id,
    isPrimary: Flag.default(false),
    containerFormat: Text.nullable().default(null),
    /** Seconds. */
    duration: Amount.default(0),
    /** Pixels. */
    width: Amount.default(0),
    height: Amount.default(0),
  },
  refusals: {
    delete: [[409, 'conflict', 'It is the primary original: the content of the media.']],
  },
} as const satisfies Resource;

/** A file of a media as it was uploaded. The primary one is the media's own content. */
export type Original = Content & Stored<typeof ORIGINAL>;

export function originalBehaviour(parts: Platform): Behaviour<typeof ORIGINAL, Original> {
  const { state } = parts;
  return {
    store: state.originals,
    parent: (ids) => mediaOf(parts, ids),
    create(ids, { metadata, upload }) {
      const made = newItem(ORIGINAL, parts, { ...partOf(mediaOf(parts, ids)), metadata });
      const original = state.originals.add(made);
      takeContent(parts, state.originals, original, upload, {
        maxBytes: MAX_FILE_BYTES,
        arrived: (file) => describe(parts, original, file),
      });
      return original;
    },
    remove(original) {
      if (original.isPrimary)
        throw conflict('The primary original is the content of the media. Delete the media, or reupload it.');
      dropAll(parts, state.originals, [original]);
    },
    shown: {
      ...CONTENT_VALUES,
      size: ({ file }) => file?.size ?? 0,
      md5: ({ file }) => file?.md5 ?? null,
      includes: ({ id, width, height }) => (width > 0 ? { video_track: { [id]: { width, height } } } : {}),
    },
  };
}

async function describe({ state, clock }: Platform, original: Original, file: StoredFile) {
  original.status = statusUnderWay(original);
  const facts = await probe(file);
  if (state.originals.find(original.id) !== original || original.file !== file) return;
  original.containerFormat = formatOf(facts?.mimeType ?? file.declaredType ?? null);
  original.duration = facts?.duration ?? 0;
  original.width = facts?.width ?? 0;
  original.height = facts?.height ?? 0;
  original.status = 'ready';
  original.lastModified = clock.now();
}

function formatOf(mimeType: string | null): string | null {
  return mimeType?.split(/[/;]/)[1] ?? null;
}

/** Keeps the file of a media as its primary original, in place of the former one. @param duration of the whole file. */
export function keepOriginal(parts: Platform, media: Media, duration: number): void {
  const { originals } = parts.state;
  const { width, height, file } = media;
  const facts = {
    containerFormat: formatOf(media.mimeType),
    duration,
    width,
    height,
    file,
    status: 'ready' as const,
  };
  const before = originals.of(media.id).find(({ isPrimary }) => isPrimary);
  if (before) originals.change(before, facts);
  else
    originals.add(
      newItem(ORIGINAL, parts, {
        ...partOf(media),
        metadata: valuesAfter(ORIGINAL.metadata, { type: 'primary' }),
        isPrimary: true,
        ...facts,
      }),
    );
}
