import { wireTime } from '../clock';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/uploads';
import {
  CONTENT_VALUES,
  dropAll,
  dropContent,
  MAX_FILE_BYTES,
  resumeContent,
  statusUnderWay,
  takeContent,
} from './content';
import { secondsOf } from './fields';
import { isPublished, type MEDIA, type Media, type MediaMetadata, newMedia, publicationOf } from './media';
import { keepOriginal } from './originals';
import { takeFromPlaylists } from './playlists';
import { CONVERSION_MS, makeRenditions } from './renditions';
import type { Behaviour, GivenUpload, Platform } from './resource';
import { makePoster, thumbnailsOf } from './thumbnails';

export function mediaBehaviour(parts: Platform): Behaviour<typeof MEDIA, Media> {
  const { state, notify } = parts;
  return {
    store: state.media,
    create: ({ siteId = '' }, { metadata, upload }) => createMedia(parts, siteId, metadata, upload),
    update: (media, metadata) => updateMedia(parts, media, metadata),
    remove: (media) => deleteMedia(parts, media),
    shown: {
      ...CONTENT_VALUES,
      external_id: ({ metadata }) => metadata.external_id,
    },
    actions: {
      reupload(media, { upload }) {
        beginContent(parts, media, upload);
        notify('media_reuploaded', media);
        return 'item';
      },
    },
  };
}

function createMedia(parts: Platform, siteId: string, metadata: MediaMetadata, upload: GivenUpload): Media {
  const { state, clock, newResourceId, notify } = parts;
  const made = { id: newResourceId(), siteId, created: clock.now() };
  const from = { publish_start_date: metadata.publish_start_date ?? wireTime(made.created) };
  const media = state.media.add(newMedia({ ...made, metadata: { ...metadata, ...from } }));
  state.usage.count(siteId, made.created, 'media_created');
  notify('media_created', media);
  beginContent(parts, media, upload);
  return media;
}

export function updateMedia(parts: Platform, media: Media, metadata: MediaMetadata): void {
  parts.state.media.change(media, { metadata });
  parts.notify('media_updated', media);
  announce(parts, media);
}

function deleteMedia(parts: Platform, media: Media): void {
  cancelProcessing(media);
  media.timers.publication?.cancel();
  dropFiles(parts, media);
  // Only the deletion of the media itself is notified, not that of its parts.
  const { textTracks, thumbnails } = parts.state;
  dropAll(parts, textTracks, textTracks.of(media.id));
  dropAll(parts, thumbnails, thumbnailsOf(parts.state, media));
  takeFromPlaylists(parts, media);
  parts.state.media.remove(media);
  parts.notify('media_deleted', media);
}

function dropFiles(parts: Platform, media: Media): void {
  const { originals, renditions } = parts.state;
  dropContent(parts, media);
  dropAll(parts, originals, originals.of(media.id));
  dropAll(parts, renditions, renditions.of(media.id));
}

/** From the arrival of its file until a media can be played, by the platform's clock. Its renditions come later. */
const READY_MS = 1_000;

/** Starts to take the content of a media. The present content stays until the new one is there. */
function beginContent(parts: Platform, media: Media, given: GivenUpload): void {
  const isExternal = given.method === 'external';
  const describe = () => {
    media.hostingType = isExternal ? 'external' : 'hosted';
    media.sourceUrl = isExternal ? (given.source_url ?? null) : null;
    media.trimInPoint = given.trim_in_point ?? null;
    media.trimOutPoint = given.trim_out_point ?? null;
  };
  if (isExternal) {
    dropFiles(parts, media);
    describe();
    Object.assign(media, { duration: 0, width: 0, height: 0 });
    media.mimeType = given.mime_type ?? typeOfAddress(media.sourceUrl ?? '');
    media.mediaType = mediaTypeOf(media.mimeType);
    process(parts, media);
    return;
  }
  if (media.file === undefined && statusUnderWay(media) === 'processing') describe();
  takeContent(parts, parts.state.media, media, given, {
    maxBytes: MAX_FILE_BYTES,
    arrived(file) {
      describe();
      return arrive(parts, media, file);
    },
  });
}

const TYPES: Readonly<Record<string, string>> = {
  m3u8: 'application/vnd.apple.mpegurl',
  mpd: 'application/dash+xml',
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  aac: 'audio/aac',
};

function typeOfAddress(address: string): string | null {
  const [, ending = ''] = /\.(\w{2,4})(?:[?#]|$)/.exec(address) ?? [];
  return TYPES[ending.toLowerCase()] ?? null;
}

/** The media type that is declared, when it is one of a video or an audio file: clients declare others as well. */
function declaredTypeOf({ declaredType = '' }: StoredFile): string | null {
  return /^(?:video|audio)\//.test(declaredType) ? declaredType : null;
}

function mediaTypeOf(mimeType: string | null): 'video' | 'audio' {
  return mimeType?.startsWith('audio/') ? 'audio' : 'video';
}

export async function takeRecording(parts: Platform, media: Media, file: StoredFile): Promise<void> {
  media.file = file;
  await arrive(parts, media, file);
}

async function arrive(parts: Platform, media: Media, file: StoredFile): Promise<void> {
  const { state } = parts;
  cancelProcessing(media);
  const facts = await probe(file);
  // It may have been deleted, or given another file, meanwhile.
  if (state.media.find(media.id) !== media || media.file !== file) return;
  media.mimeType = facts?.mimeType ?? declaredTypeOf(file);
  media.mediaType = facts?.mediaType ?? mediaTypeOf(media.mimeType);
  media.width = facts?.width ?? 0;
  media.height = facts?.height ?? 0;
  const length = facts?.duration ?? 0;
  // A clip begins at the key frame before it, and ends where it was asked to.
  if (!media.clip) media.duration = trimmedLength(media, length);
  keepOriginal(parts, media, length);
  if (length > 0 && media.duration <= 0) {
    const errorMessage = `upload.trim_in_point is after the end of the file, which has ${length} s. Reupload it.`;
    parts.state.media.change(media, { status: 'failed', errorMessage });
  } else process(parts, media);
}

/** The seconds between the trim points, within a file of this length; 0 is an unknown length. */
function trimmedLength({ trimInPoint, trimOutPoint }: Media, length: number): number {
  const begin = trimInPoint === null ? 0 : secondsOf(trimInPoint);
  const wanted = trimOutPoint === null ? length : secondsOf(trimOutPoint);
  const end = length > 0 ? Math.min(wanted, length) : wanted;
  return Math.max(Math.round((end - begin) * 1000) / 1000, 0);
}

function process(parts: Platform, media: Media): void {
  const { clock } = parts;
  parts.state.media.change(media, { status: statusUnderWay(media), errorMessage: null });
  cancelProcessing(media);
  media.timers.processing = clock.after(READY_MS, () => {
    parts.state.media.change(media, { status: 'ready', announced: false });
    makePoster(parts, media);
    announce(parts, media);
    media.timers.processing = media.file && clock.after(CONVERSION_MS, () => makeRenditions(parts, media));
  });
}

/** Schedules the next steps of a restored media again. @param isToConvert whether there is a rendition to be made. */
export function resumeMedia(parts: Platform, media: Media, isToConvert: boolean): void {
  const isUnderWay = media.status === 'processing' || media.status === 'updating';
  if (isUnderWay && (media.file || media.hostingType === 'external')) {
    process(parts, media);
    return;
  }
  resumeContent(media);
  announce(parts, media);
  if (media.status === 'ready' && media.file && isToConvert)
    media.timers.processing = parts.clock.after(CONVERSION_MS, () => makeRenditions(parts, media));
}

function cancelProcessing({ timers }: Media): void {
  timers.processing?.cancel();
  timers.processing = undefined;
}

/**
 * Notifies webhooks, once for each content, that viewers can have a media: now, or at its publish start date.
 * To be called whenever that may have changed.
 */
function announce(parts: Platform, media: Media): void {
  const { clock, notify } = parts;
  media.timers.publication?.cancel();
  if (media.announced || media.status !== 'ready') return;
  const now = clock.now();
  if (isPublished(media, now)) {
    media.announced = true;
    notify('media_available', media);
    return;
  }
  const wait = publicationOf(media).getTime() - now.getTime();
  if (wait > 0) media.timers.publication = clock.after(wait, () => announce(parts, media));
}
