import type { JsonObject } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import { posterOf } from '../resources/thumbnails';
import { V1Error } from './errors';
import { asJson, type Handler, notFound, required, type Translated } from './translate';
import { announcedFile, uploadAnswer } from './upload-link';

/** v1 knows one thumbnail of a video: the one that v2 calls its poster. */
export const THUMBNAILS: Readonly<Record<'show' | 'update', Handler>> = {
  show(call) {
    const { context, siteId, view } = call;
    const key = required(call, 'video_key');
    const media = context.state.media.findOf(siteId, key);
    if (!media) throw notFound('video_key', key);
    const poster = posterOf(context, media);
    if (!poster) return { thumbnail: { key, status: 'NotBuilt' } };
    const ids = { siteId, thumbnailId: poster.id };
    const thumbnail = asJson(context.library.thumbnails.read(ids, view));
    return { thumbnail: { ...v1Fields('thumbnail', thumbnail), status: statusOf(thumbnail) } };
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
    const made = asJson(await thumbnails.create({ siteId }, { upload, ...media(isThere) }, view));
    const ids = { siteId, thumbnailId: String(made.id) };
    const arrived = () => void thumbnails.update(ids, media(true), view);
    const answer = { media: { type: 'video', key }, video: { key } };
    return { ...answer, ...uploadAnswer(call, made, 'thumbnail', { ...file, answer, arrived }) };
  },
};

/** The picture of a moment, one of the strip, or one that is to be uploaded. */
function sourceOf({ parts }: Translated, source_media_id: string): JsonObject {
  const { video_position, thumbstrip_index } = parts.body.upload ?? {};
  if (video_position !== undefined && thumbstrip_index !== undefined) {
    throw new V1Error('ParameterInvalid', 'position and thumbnail_index cannot be set together.');
  }
  if (video_position !== undefined) {
    return { source_type: 'video_position', source_media_id, video_position };
  }
  if (thumbstrip_index !== undefined) {
    return { source_type: 'thumbstrip_index', source_media_id, thumbstrip_index };
  }
  return { method: 'direct' };
}

const STATUS: Readonly<Record<string, string>> = {
  created: 'NotBuilt',
  processing: 'Processing',
  updating: 'Processing',
  ready: 'Ready',
  failed: 'Failed',
};

function statusOf({ status }: JsonObject): string {
  return STATUS[String(status)] ?? String(status);
}
