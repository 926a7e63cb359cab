import type { EmulatorContext } from '../context';
import { secondsOf } from '../resources/fields';
import type { GivenUpload } from '../resources/resource';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/upload';
import { mediaNotification } from '../webhooks/notification';
import { dropContent, MAX_FILE_BYTES, statusUnderWay, takeContent } from './content';
import { isPublished, type Media, publicationOf } from './media';
import { CONVERSION_MS, dropRenditions, keepOriginal, makeRenditions } from './renditions';
import { makePoster } from './thumbnails';

/** By the platform's clock: how long after its file came a media can be played. Its renditions come behind that. */
const READY_MS = 1_000;

/** Begins to take the content of a media, its first one or a new one. What it has stays until the new one is there. */
export function beginContent(context: EmulatorContext, media: Media, given: GivenUpload): void {
  const isExternal = given.method === 'external';
  const describe = () => {
    media.hostingType = isExternal ? 'external' : 'hosted';
    media.sourceUrl = isExternal ? (given.source_url ?? null) : null;
    media.trimInPoint = given.trim_in_point ?? null;
    media.trimOutPoint = given.trim_out_point ?? null;
  };
  if (isExternal) {
    dropContent(context, media);
    dropRenditions(context, media);
    describe();
    Object.assign(media, NOTHING_KNOWN);
    media.mimeType = given.mime_type ?? typeOfAddress(media.sourceUrl ?? '');
    media.mediaType = mediaTypeOf(media.mimeType);
    process(context, media);
    return;
  }
  if (media.file === undefined && statusUnderWay(media) === 'processing') describe();
  takeContent(context, context.state.media, media, given, {
    maxBytes: MAX_FILE_BYTES,
    arrived(file) {
      describe();
      return arrive(context, media, file);
    },
    isBusy: () => media.timers.processing !== undefined,
  });
  context.state.media.changed(media);
}

const NOTHING_KNOWN = { duration: 0, width: 0, height: 0 };

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

/** The media type that the ending of an address stands for, or null. */
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

/** Takes what was recorded of an event as the content of a media. */
export async function takeRecording(context: EmulatorContext, media: Media, file: StoredFile): Promise<void> {
  media.file = file;
  media.errorMessage = null;
  await arrive(context, media, file);
}

async function arrive(context: EmulatorContext, media: Media, file: StoredFile): Promise<void> {
  const { state } = context;
  // Who lists the media now must see that its file is there.
  media.status = statusUnderWay(media);
  state.media.changed(media);
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
  keepOriginal(context, media, length);
  if (length > 0 && media.duration <= 0) fail(context, media, length);
  else process(context, media);
}

/** The seconds between the trim points, within a file of this length; 0 stands for a length that is not known. */
function trimmedLength({ trimInPoint, trimOutPoint }: Media, length: number): number {
  const begin = trimInPoint === null ? 0 : secondsOf(trimInPoint);
  const wanted = trimOutPoint === null ? length : secondsOf(trimOutPoint);
  const end = length > 0 ? Math.min(wanted, length) : wanted;
  return Math.max(Math.round((end - begin) * 1000) / 1000, 0);
}

function fail({ clock, state }: EmulatorContext, media: Media, length: number): void {
  media.status = 'failed';
  media.errorMessage = `upload.trim_in_point is after the end of the file, which has ${length} s. Reupload it.`;
  media.lastModified = clock.now();
  state.media.changed(media);
}

/** What the platform does with a content, on its clock. */
function process(context: EmulatorContext, media: Media): void {
  const { clock, state } = context;
  media.status = statusUnderWay(media);
  media.errorMessage = null;
  media.lastModified = clock.now();
  state.media.changed(media);
  cancelProcessing(media);
  media.timers.processing = clock.after(READY_MS, () => {
    media.status = 'ready';
    media.lastModified = clock.now();
    makePoster(context, media);
    state.media.changed(media);
    media.announced = false;
    announce(context, media);
    media.timers.processing = media.file && clock.after(CONVERSION_MS, () => convert(context, media));
  });
}

function cancelProcessing({ timers }: Media): void {
  timers.processing?.cancel();
  timers.processing = undefined;
}

function convert(context: EmulatorContext, media: Media): void {
  media.timers.processing = undefined;
  makeRenditions(context, media);
  if (media.converted) return;
  media.converted = true;
  context.notify(mediaNotification('conversions_complete', media));
}

/**
 * Tells webhooks once for each content that viewers can have a media: now, or when its publish start date has come.
 * To be called whenever that may have changed.
 */
export function announce(context: EmulatorContext, media: Media): void {
  const { clock, notify } = context;
  media.timers.publication?.cancel();
  media.timers.publication = undefined;
  if (media.announced || media.status !== 'ready') return;
  const now = clock.now();
  if (isPublished(media, now)) {
    media.announced = true;
    notify(mediaNotification('media_available', media));
    return;
  }
  const wait = publicationOf(media).getTime() - now.getTime();
  if (wait > 0) media.timers.publication = clock.after(wait, () => announce(context, media));
}

/** Ends what is still to happen to a media. */
export function endProcessing({ timers }: Media): void {
  timers.processing?.cancel();
  timers.publication?.cancel();
}
