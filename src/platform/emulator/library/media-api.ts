import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import { MEDIA } from '../resources/media-table';
import type { Behaviour, GivenUpload } from '../resources/resource';
import { mediaNotification } from '../webhooks/notification';
import { dropContent, UPLOAD_LINKS } from './content';
import { type Media, type MediaMetadata, newMedia } from './media';
import { takeFromPlaylists } from './playlists';
import { announce, beginContent, endProcessing } from './processing';
import { dropRenditions } from './renditions';
import { dropTextTracks } from './text-tracks';
import { dropThumbnails } from './thumbnails';

/** What is special about media. */
export function mediaBehaviour(context: EmulatorContext): Behaviour<typeof MEDIA, Media> {
  const { state, notify } = context;
  return {
    list: ({ siteId = '' }) => state.media.of(siteId),
    find: ({ siteId = '', mediaId = '' }) => state.media.findOf(siteId, mediaId),
    create: ({ siteId = '' }, { metadata, upload }) =>
      createMedia(context, siteId, valuesAfter(MEDIA.metadata, metadata), upload),
    update: (media, metadata) => updateMedia(context, media, metadata),
    remove: (media) => deleteMedia(context, media),
    shown: {
      status: ({ status }) => status,
      media_type: ({ mediaType }) => mediaType,
      hosting_type: ({ hostingType }) => hostingType,
      mime_type: ({ mimeType }) => mimeType,
      error_message: ({ errorMessage }) => errorMessage,
      duration: ({ duration }) => duration,
      trim_in_point: ({ trimInPoint }) => trimInPoint,
      trim_out_point: ({ trimOutPoint }) => trimOutPoint,
      external_id: ({ metadata }) => metadata.external_id,
      source_url: ({ sourceUrl }) => sourceUrl,
      ...UPLOAD_LINKS,
    },
    actions: {
      reupload(media, { upload }) {
        beginContent(context, media, upload);
        notify(mediaNotification('media_reuploaded', media));
        return 'item';
      },
    },
  };
}

function createMedia(
  context: EmulatorContext,
  siteId: string,
  metadata: MediaMetadata,
  upload: GivenUpload,
): Media {
  const { state, clock, newResourceId, notify } = context;
  const created = clock.now();
  const from = { publish_start_date: metadata.publish_start_date ?? wireTime(created) };
  const media = newMedia({ id: newResourceId(), siteId, created, metadata: { ...metadata, ...from } });
  state.media.add(media);
  state.usage.count(siteId, created, 'media');
  notify(mediaNotification('media_created', media));
  beginContent(context, media, upload);
  return media;
}

/** Puts other metadata in the place of a media's own. */
export function updateMedia(context: EmulatorContext, media: Media, metadata: MediaMetadata): void {
  media.metadata = metadata;
  media.lastModified = context.clock.now();
  context.state.media.changed(media);
  context.notify(mediaNotification('media_updated', media));
  announce(context, media);
}

function deleteMedia(context: EmulatorContext, media: Media): void {
  endProcessing(media);
  dropContent(context, media);
  dropRenditions(context, media);
  dropTextTracks(context, media);
  dropThumbnails(context, media);
  takeFromPlaylists(context, media);
  context.state.media.remove(media);
  context.notify(mediaNotification('media_deleted', media));
}
