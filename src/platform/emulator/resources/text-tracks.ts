import * as z from 'zod';
import { text } from '../json-body';
import {
  CONTENT_FIELDS,
  CONTENT_KEPT,
  CONTENT_VALUES,
  type Content,
  dropAll,
  takeContent,
  uploadBy,
} from './content';
import { Choice, Flag, Id, row, Text, WholeNumber } from './fields';
import { mediaOf, ONE_MEDIA, partOf } from './media';
import {
  type Behaviour,
  type BodyOf,
  named,
  newItem,
  type Platform,
  putAction,
  type Resource,
  type Stored,
} from './resource';

const TRACK_KINDS = ['captions', 'subtitles', 'chapters', 'thumbnails', 'descriptions'] as const;

const ONE = `${ONE_MEDIA}/text_tracks/:trackId`;

export const TEXT_TRACK = {
  ...named('text_track', ONE_MEDIA, 'trackId'),
  says: 'Captions, subtitles or chapters of a media. Viewers get it when it is published.',
  metadata: {
    label: row(text(200), 'The name in the menu of the player.', { filter: 'words' }),
    srclang: row(text(50), 'The code of the language, such as en.', { filter: 'text' }),
    position: row(WholeNumber(1000), 'The place in the menu.', { default: 0, filter: 'number' }),
    track_kind: row(Choice(TRACK_KINDS), 'The kind of track.', {
      default: 'captions',
      fixed: true,
      unseen: true,
    }),
  },
  upload: {
    ...uploadBy('direct', 'fetch'),
    file_format: row(text(50), 'The format of the file, such as vtt or srt.'),
    auto_publish: row(Flag, 'Whether to publish it as soon as it is ready.', { default: false }),
  },
  shown: {
    ...CONTENT_FIELDS,
    track_kind: row(Choice(TRACK_KINDS), 'The kind of track.', { filter: 'text' }),
    published: row(z.boolean(), 'Whether viewers get it.'),
    delivery_url: row(z.string().nullable(), 'Where the file is, once it is ready.'),
  },
  kept: { ...CONTENT_KEPT, mediaId: Id, isPublished: Flag.default(false), fileFormat: Text },
  actions: {
    publish: putAction(`${ONE}/publish`, 'Publish a text track', 'Lets viewers have it.'),
    unpublish: putAction(`${ONE}/unpublish`, 'Unpublish a text track', 'Takes it from viewers.'),
  },
} as const satisfies Resource;

export type TextTrack = Content & Stored<typeof TEXT_TRACK>;

const MAX_TRACK_BYTES = 20 * 1024 ** 2;

export function textTrackPath({ id, fileFormat }: TextTrack): string {
  return `/tracks/${id}.${fileFormat}`;
}

export function textTrackBehaviour(parts: Platform): Behaviour<typeof TEXT_TRACK, TextTrack> {
  const { state, notify } = parts;
  const publish = (isPublished: boolean) => (track: TextTrack) =>
    void state.textTracks.change(track, { isPublished });
  return {
    store: state.textTracks,
    parent: (ids) => mediaOf(parts, ids),
    create(ids, { metadata, upload }) {
      const media = mediaOf(parts, ids);
      const given = { ...partOf(media), metadata, fileFormat: formatOf(upload) };
      const track = state.textTracks.add(newItem(TEXT_TRACK, parts, given));
      notify('track_created', media);
      takeContent(parts, state.textTracks, track, upload, {
        maxBytes: MAX_TRACK_BYTES,
        arrived() {
          const published = upload.auto_publish && { isPublished: true };
          state.textTracks.change(track, { status: 'ready', ...published });
        },
      });
      return track;
    },
    remove(track) {
      dropAll(parts, state.textTracks, [track]);
      notify('track_deleted', { id: track.mediaId, siteId: track.siteId });
    },
    shown: {
      ...CONTENT_VALUES,
      track_kind: ({ metadata }) => metadata.track_kind,
      published: ({ isPublished }) => isPublished,
      delivery_url: (track, { origin }) =>
        track.status === 'ready' ? `${origin}${textTrackPath(track)}` : null,
    },
    actions: { publish: publish(true), unpublish: publish(false) },
  };
}

/** The ending of the file's address: the given format, or that of the address to fetch it from, else vtt. */
function formatOf(upload: BodyOf<typeof TEXT_TRACK>['upload']): string {
  const [, ending] = /\.(\w{2,5})(?:[?#]|$)/.exec(upload.download_url ?? '') ?? [];
  const format = (upload.file_format ?? ending ?? 'vtt').toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  return format === '' || format === 'webvtt' ? 'vtt' : format;
}
