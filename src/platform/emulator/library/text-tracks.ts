import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { TEXT_TRACK } from '../resources/media-table';
import type { Behaviour, MetadataOf } from '../resources/resource';
import { mediaNotification } from '../webhooks/notification';
import { type Content, dropContent, noContent, takeContent, UPLOAD_LINKS } from './content';
import type { Media } from './media';
import { mediaOf, partOf } from './renditions';

/** Captions, subtitles or chapters of a media. */
export interface TextTrack extends Content {
  readonly mediaId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof TEXT_TRACK>;
  isPublished: boolean;
  readonly fileFormat: string;
}

const MAX_TRACK_BYTES = 20 * 1024 ** 2;

/** The path at which viewers get a text track. */
export function textTrackPath({ id, fileFormat }: TextTrack): string {
  return `/tracks/${id}.${fileFormat}`;
}

/** What is special about text tracks. */
export function textTrackBehaviour(context: EmulatorContext): Behaviour<typeof TEXT_TRACK, TextTrack> {
  const { state, clock, notify } = context;
  const changed = (track: TextTrack) => {
    track.lastModified = clock.now();
    state.textTracks.changed(track);
  };
  const publish = (isPublished: boolean) => (track: TextTrack) => {
    track.isPublished = isPublished;
    changed(track);
    return undefined;
  };
  return {
    list: (ids) => state.textTracks.of(mediaOf(context, ids).id),
    find: (ids) => state.textTracks.findOf(mediaOf(context, ids).id, ids.trackId ?? ''),
    create(ids, { metadata, upload }) {
      const media = mediaOf(context, ids);
      const track: TextTrack = {
        ...noContent(),
        ...partOf(context, media),
        metadata: valuesAfter(TEXT_TRACK.metadata, metadata),
        isPublished: false,
        fileFormat: formatOf(upload),
      };
      state.textTracks.add(track);
      notify(mediaNotification('track_created', media));
      takeContent(context, state.textTracks, track, upload, {
        maxBytes: MAX_TRACK_BYTES,
        arrived() {
          track.status = 'ready';
          if (upload.auto_publish) track.isPublished = true;
          changed(track);
        },
      });
      return track;
    },
    update(track, metadata) {
      track.metadata = metadata;
      changed(track);
    },
    remove(track) {
      dropContent(context, track);
      state.textTracks.remove(track);
      notify(mediaNotification('track_deleted', { id: track.mediaId, siteId: track.siteId }));
    },
    shown: {
      status: ({ status }) => status,
      error_message: ({ errorMessage }) => errorMessage,
      track_kind: ({ metadata }) => metadata.track_kind,
      published: ({ isPublished }) => isPublished,
      delivery_url: (track, { origin }) =>
        track.status === 'ready' ? `${origin}${textTrackPath(track)}` : null,
      ...UPLOAD_LINKS,
    },
    actions: { publish: publish(true), unpublish: publish(false) },
  };
}

/** The ending of the file's address: as it was said, or as the address that it is fetched from has it, else vtt. */
function formatOf(upload: {
  file_format?: string | null | undefined;
  download_url?: string | null | undefined;
}): string {
  const [, ending] = /\.(\w{2,5})(?:[?#]|$)/.exec(upload.download_url ?? '') ?? [];
  const format = (upload.file_format ?? ending ?? 'vtt').toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  return format === '' || format === 'webvtt' ? 'vtt' : format;
}

/** Removes the tracks of a media that goes; only its own end is told. */
export function dropTextTracks(context: EmulatorContext, { id }: Media): void {
  for (const track of [...context.state.textTracks.of(id)]) {
    dropContent(context, track);
    context.state.textTracks.remove(track);
  }
}
