import type { JsonObject } from '../../migration/mapping/values';
import { changeCustom, v1Fields } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import type { PathIds } from '../resources/resource';
import {
  asJson,
  customParamsOf,
  type Handler,
  listAnswer,
  listWindow,
  removeKeys,
  required,
  type Translated,
} from './translate';
import { announcedFile, uploadAnswer, type Wanted } from './upload-link';

export const VIDEOS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    requireSource(call);
    const file = announcedFile(call);
    const metadata = { ...parts.body.metadata, custom_params: parts.custom.set };
    const body = { ...parts.body, metadata };
    return uploading(call, asJson(await context.library.media.create({ siteId }, body, view)), file);
  },

  list(call) {
    const { context, siteId } = call;
    const window = listWindow(context.library.media, { siteId }, call);
    const videos = window.items.map((media) => videoOf(context, media));
    return listAnswer(window, 'videos', videos);
  },

  show(call) {
    const { context, view } = call;
    return { video: videoOf(context, asJson(context.library.media.read(mediaIds(call), view))) };
  },

  async update(call) {
    const { parts, view } = call;
    const { media } = call.context.library;
    const ids = mediaIds(call);
    const { upload, ...rest } = parts.body;
    if (upload) requireSource(call);
    const file = announcedFile(call);
    const before = customParamsOf(asJson(media.read(ids, view)));
    const metadata = { ...rest.metadata, custom_params: changeCustom(before, parts.custom) };
    // Both are checked before one of them changes anything.
    media.checkUpdate(ids, { metadata }, view);
    const begun = upload && (await media.act('reupload', ids, { body: { upload } }, view));
    media.update(ids, { metadata }, view);
    return begun ? uploading(call, asJson(begun), file) : {};
  },

  delete(call) {
    removeKeys(call, call.context.library.media, 'video_key', 'mediaId');
    return {};
  },
};

function mediaIds(call: Translated): PathIds {
  return { siteId: call.siteId, mediaId: required(call, 'video_key') };
}

/** @throws V1Error when a content is to be fetched, or stays elsewhere, and nothing says where. */
function requireSource(call: Translated): void {
  const { method } = call.parts.body.upload ?? {};
  if (method === 'fetch') required(call, 'download_url');
  if (method === 'external') required(call, 'sourceurl');
}

/** What released clients read: one of them `video`, others `media`. */
function uploading(call: Translated, media: JsonObject, file: Pick<Wanted, 'md5' | 'size'>): JsonObject {
  const key = media.id ?? '';
  const answer = { media: { type: 'video', key }, video: { key } };
  return { ...answer, ...uploadAnswer(call, media, 'video', { ...file, answer }) };
}

/** A media as v1 shows it, with what v2 has not. */
export function videoOf({ state }: EmulatorContext, media: JsonObject): JsonObject {
  const fields = v1Fields('video', media);
  const kept = state.media.find(String(media.id));
  if (!kept) return fields;
  const { upload, file, created, duration, views } = kept;
  return {
    ...fields,
    // Without a date of its own it is published from its creation.
    date: fields.date ?? Math.floor(created.getTime() / 1000),
    duration: duration.toFixed(2),
    md5: file?.md5 ?? null,
    size: String(file?.size ?? 0),
    upload_session_id: upload?.method === 'multipart' ? upload.id : null,
    views,
  };
}
