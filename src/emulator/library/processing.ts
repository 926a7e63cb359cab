import type { EmulatorContext } from '../context';
import { probe } from '../uploads/probe';
import type { StoredFile } from '../uploads/upload';
import { mediaNotification } from '../webhooks/notification';
import { dropContent, type GivenUpload, methodOf, takeContent } from './content';
import { isPublished, type Media, publicationOf } from './media';
import { keepOriginal, makeRenditions } from './renditions';
import { makePoster } from './thumbnails';

/** The most that a file may have: 5 GB. */
const MAX_FILE_BYTES = 5 * 1024 ** 3;

/** By the platform's clock: how long after its file came a media can be played, and all its renditions are there. */
const READY_MS = 1_000;
const CONVERTED_MS = 3_000;

/**
 * Begins to take the content of a media, its first one or a new one.
 * @throws HttpError 400 when the fields do not fit together; then nothing has changed.
 */
export function beginContent(context: EmulatorContext, media: Media, given: GivenUpload): void {
  const method = methodOf(given);
  media.trimInPoint = given.trim_in_point ?? null;
  media.trimOutPoint = given.trim_out_point ?? null;
  media.timers.processing?.cancel();
  if (method === 'external') {
    dropContent(context, media);
    media.hostingType = 'external';
    media.sourceUrl = given.source_url ?? null;
    media.mimeType = given.mime_type ?? typeOfAddress(media.sourceUrl ?? '');
    process(context, media);
    return;
  }
  media.hostingType = 'hosted';
  media.sourceUrl = null;
  takeContent(context, media, given, {
    maxBytes: MAX_FILE_BYTES,
    arrived: (file) => void arrive(context, media, file),
    failed: () => context.state.media.changed(media),
  });
  context.state.media.changed(media);
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

/** The media type that the ending of an address stands for, or null. */
function typeOfAddress(address: string): string | null {
  const [, ending = ''] = /\.(\w{2,4})(?:[?#]|$)/.exec(address) ?? [];
  return TYPES[ending.toLowerCase()] ?? null;
}

async function arrive(context: EmulatorContext, media: Media, file: StoredFile): Promise<void> {
  // Who lists the media now must see that its file is there.
  media.status = statusUnderWay(media);
  media.mimeType = file.declaredType ?? null;
  context.state.media.changed(media);
  const facts = await probe(file);
  // It may have been deleted, or given another file, meanwhile.
  if (context.state.media.find(media.id) !== media || media.file !== file) return;
  media.mimeType = facts?.mimeType ?? media.mimeType;
  media.mediaType = facts?.mediaType ?? (media.mimeType?.startsWith('audio/') ? 'audio' : 'video');
  media.duration = facts?.duration ?? 0;
  media.width = facts?.width ?? 0;
  media.height = facts?.height ?? 0;
  process(context, media);
}

/** What viewers can have already, they keep. */
function statusUnderWay({ status }: Media): 'updating' | 'processing' {
  return status === 'ready' || status === 'updating' ? 'updating' : 'processing';
}

/** What the platform does with a content, on its clock. */
function process(context: EmulatorContext, media: Media): void {
  const { clock, state } = context;
  media.status = statusUnderWay(media);
  media.errorMessage = null;
  media.lastModified = clock.now();
  state.media.changed(media);
  if (media.file) keepOriginal(context, media);
  media.timers.processing = clock.after(READY_MS, () => {
    media.status = 'ready';
    media.lastModified = clock.now();
    makePoster(context, media);
    state.media.changed(media);
    media.announced = false;
    announce(context, media);
    media.timers.processing = clock.after(CONVERTED_MS - READY_MS, () => convert(context, media));
  });
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
  if (media.announced || media.hidden || media.status !== 'ready') return;
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
