import { type JsonObject, objectIn } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import { capital } from '../resources/fields';
import type { PathIds } from '../resources/resource';
import { posterOf } from '../resources/thumbnails';
import { v1Error } from './errors';
import {
  commonHandlers,
  everything,
  type Found,
  type Handler,
  keysIn,
  listedWindow,
  notFound,
  optional,
  required,
  type Translated,
} from './translate';
import { announcedFile, uploadAnswer } from './upload-api';

/** v1 knows a track by its key alone, and their list by the video. @throws HttpError */
function trackIds(call: Translated, trackId?: string): PathIds {
  const { context, siteId } = call;
  if (trackId === undefined) return { siteId, mediaId: required(call, 'video_key') };
  const track = context.state.textTracks.find(trackId);
  if (track?.siteId === siteId) return { siteId, mediaId: track.mediaId, trackId };
  throw notFound('track_key', trackId);
}

export const TRACKS = {
  ...commonHandlers({
    name: 'track',
    find: (call, key) => ({ calls: call.context.library.textTracks, ids: trackIds(call, key) }),
    metadata(call) {
      if (optional(call, 'update_file') === undefined) return call.parts.body.metadata ?? {};
      throw v1Error('NotSupported', 'update_file: delete the track, and create another for a new file.');
    },
  }),

  async create(call) {
    const { context, parts, view } = call;
    const ids = trackIds(call);
    const file = announcedFile(call);
    // In v1 viewers had a track as soon as its file was there.
    const body = { ...parts.body, upload: { method: 'direct', ...parts.body.upload, auto_publish: true } };
    const track = await context.library.textTracks.create(ids, body, view);
    return uploadAnswer(call, track, 'track', file);
  },
} satisfies Readonly<Record<string, Handler>>;

/** v1 knows one thumbnail of a video: the one that v2 calls its poster. */
export const THUMBNAILS: Readonly<Record<string, Handler>> = {
  show(call) {
    const { context, siteId, view } = call;
    const key = required(call, 'video_key');
    const media = context.state.media.findOf(siteId, key);
    if (!media) throw notFound('video_key', key);
    const poster = posterOf(context, media);
    if (!poster) return { thumbnail: { key, status: 'NotBuilt' } };
    const ids = { siteId, thumbnailId: poster.id };
    const thumbnail = context.library.thumbnails.read(ids, view);
    return { thumbnail: { ...v1Fields('thumbnail', thumbnail), status: 'Ready' } };
  },

  async update(call) {
    const { context, siteId, view } = call;
    const key = required(call, 'video_key');
    if (!context.state.media.findOf(siteId, key)) throw notFound('video_key', key);
    const file = announcedFile(call);
    const { thumbnails } = context.library;
    const upload = sourceOf(call, key);
    const media = (is_poster: boolean) => ({ relationships: { media: [{ id: key, is_poster }] } });
    // Until its file is there, viewers keep the poster that they have.
    const isThere = upload.method === undefined;
    const made = await thumbnails.create({ siteId }, { upload, ...media(isThere) }, view);
    const ids = { siteId, thumbnailId: String(made.id) };
    const arrived = () => void thumbnails.update(ids, media(true), view);
    return uploadAnswer(call, made, 'thumbnail', { ...file, arrived }, key);
  },
};

function sourceOf({ parts }: Translated, source_media_id: string): JsonObject {
  const { video_position, thumbstrip_index } = parts.body.upload ?? {};
  if (video_position !== undefined && thumbstrip_index !== undefined) {
    throw v1Error('ParameterInvalid', 'position and thumbnail_index cannot be set together.');
  }
  if (video_position === undefined && thumbstrip_index === undefined) return { method: 'direct' };
  return {
    source_media_id,
    video_position: video_position ?? null,
    thumbstrip_index: thumbstrip_index ?? null,
  };
}

/** v1 has the originals of a video and its renditions in one list. */
export const CONVERSIONS: Readonly<Record<string, Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    const ids = { siteId, mediaId: required(call, 'video_key') };
    required(call, 'template_key');
    const made = await context.library.renditions.create(ids, parts.body, view);
    return { conversion: { key: made.id ?? '' } };
  },

  list(call) {
    const { context, siteId, view } = call;
    const ids = { siteId, mediaId: required(call, 'video_key') };
    const { originals, renditions } = context.library;
    const conversions = [
      ...everything(originals, ids, view).map((original) => originalOf(call, original, ids)),
      ...everything(renditions, ids, view).map(renditionOf),
    ];
    const { limit, offset } = listedWindow(call);
    const shown = conversions.slice(offset, offset + limit);
    return { limit, offset, total: conversions.length, conversions: shown };
  },

  show(call) {
    const { calls, ids } = findConversion(call, required(call, 'conversion_key'));
    const found = calls.read(ids, call.view);
    const isOriginal = calls === call.context.library.originals;
    return { conversion: isOriginal ? originalOf(call, found, ids) : renditionOf(found) };
  },

  delete(call) {
    const found = keysIn(call, 'conversion_key').map((key) => findConversion(call, key));
    const { originals } = call.context.library;
    // Originals first: when one is refused, nothing else is deleted.
    const inOrder = [...found].sort((a, b) => Number(b.calls === originals) - Number(a.calls === originals));
    for (const { calls, ids } of inOrder) calls.remove(ids);
    return {};
  },
};

/** v1 knows a conversion by its key alone. @throws HttpError NotFound */
function findConversion({ context: { state, library }, siteId }: Translated, key: string): Found {
  const kinds = [
    [library.renditions, state.renditions, 'renditionId'],
    [library.originals, state.originals, 'originalId'],
  ] as const;
  for (const [calls, store, idName] of kinds) {
    const found = store.find(key);
    if (found?.siteId === siteId) return { calls, ids: { siteId, mediaId: found.mediaId, [idName]: key } };
  }
  throw notFound('conversion_key', key);
}

function renditionOf(rendition: JsonObject): JsonObject {
  const { id = '' } = objectIn(rendition, 'relationships', 'media_rendition_template');
  return {
    ...v1Fields('conversion', rendition),
    // v1 writes the status of conversions, and of nothing else, with a capital.
    status: capital(String(rendition.status)),
    template: { key: id, name: id, required: false, format: { key: 'mp4', name: 'MP4' } },
  };
}

const ORIGINAL = { key: 'original', name: 'Original' };

function originalOf({ context }: Translated, original: JsonObject, { mediaId = '' }: PathIds): JsonObject {
  const { size = 0, duration = 0 } = original;
  const [track] = Object.values(objectIn(original, 'includes', 'video_track'));
  const { width = 0, height = 0 } = Object(track);
  return {
    ...v1Fields('conversion', original),
    status: capital(String(original.status)),
    mediatype: context.state.media.find(mediaId)?.mediaType ?? 'video',
    duration: Number(duration).toFixed(2),
    filesize: String(size),
    width,
    height,
    template: { ...ORIGINAL, required: true, format: ORIGINAL },
  };
}
