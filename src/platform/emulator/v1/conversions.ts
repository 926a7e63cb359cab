import type { JsonObject } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import type { PathIds } from '../resources/resource';
import type { ResourceCalls } from '../resources/resource-calls';
import {
  asJson,
  everything,
  type Handler,
  keysIn,
  listAnswer,
  listedWindow,
  notFound,
  objectIn,
  required,
  type Translated,
} from './translate';

/** v1 has the originals of a video and its renditions in one list. */
export const CONVERSIONS: Readonly<Record<'create' | 'delete' | 'list' | 'show', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    const ids = { siteId, mediaId: required(call, 'video_key') };
    required(call, 'template_key');
    const made = asJson(await context.library.renditions.create(ids, parts.body, view));
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
    return listAnswer({ limit, offset, total: conversions.length }, 'conversions', shown);
  },

  show(call) {
    const { calls, ids } = find(call, required(call, 'conversion_key'));
    const found = asJson(calls.read(ids, call.view));
    const isOriginal = calls === call.context.library.originals;
    return { conversion: isOriginal ? originalOf(call, found, ids) : renditionOf(found) };
  },

  delete(call) {
    const found = keysIn(call, 'conversion_key').map((key) => find(call, key));
    const { originals } = call.context.library;
    // An original can be refused; then nothing else has gone.
    const inOrder = [...found].sort((a, b) => Number(b.calls === originals) - Number(a.calls === originals));
    for (const { calls, ids } of inOrder) calls.remove(ids);
    return {};
  },
};

/** v1 knows a conversion by its key alone. @throws V1Error NotFound */
function find({ context, siteId }: Translated, key: string): { calls: ResourceCalls; ids: PathIds } {
  const { state, library } = context;
  const rendition = state.renditions.find(key);
  if (rendition?.siteId === siteId) {
    return { calls: library.renditions, ids: { siteId, mediaId: rendition.mediaId, renditionId: key } };
  }
  const original = state.originals.find(key);
  if (original?.siteId === siteId) {
    return { calls: library.originals, ids: { siteId, mediaId: original.mediaId, originalId: key } };
  }
  throw notFound('conversion_key', key);
}

function renditionOf(rendition: JsonObject): JsonObject {
  const { id = '' } = objectIn(rendition, 'relationships', 'media_rendition_template');
  return {
    ...v1Fields('conversion', rendition),
    status: statusOf(rendition),
    template: { key: id, name: id, required: false, format: { key: 'mp4', name: 'MP4' } },
  };
}

function originalOf({ context }: Translated, original: JsonObject, { mediaId = '' }: PathIds): JsonObject {
  const { size = 0, duration = 0 } = original;
  const [track] = Object.values(objectIn(original, 'includes', 'video_track'));
  const { width = 0, height = 0 } = asJson(Object(track));
  return {
    ...v1Fields('conversion', original),
    status: statusOf(original),
    mediatype: context.state.media.find(mediaId)?.mediaType ?? 'video',
    duration: Number(duration).toFixed(2),
    filesize: String(size),
    width,
    height,
    template: {
      key: 'original',
      name: 'Original',
      required: true,
      format: { key: 'original', name: 'Original' },
    },
  };
}

/** v1 writes the status of conversions, and of nothing else, with a capital. */
function statusOf({ status }: JsonObject): string {
  const text = String(status);
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
