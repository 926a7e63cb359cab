import type { JsonObject } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import type { PathIds } from '../resources/resource';
import { V1Error } from './errors';
import {
  asJson,
  type Handler,
  keysIn,
  listAnswer,
  listWindow,
  notFound,
  optional,
  removeAll,
  required,
  type Translated,
} from './translate';
import { announcedFile, uploadAnswer } from './upload-link';

export const TRACKS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    const ids = { siteId, mediaId: required(call, 'video_key') };
    const file = announcedFile(call);
    // In v1 viewers had a track as soon as its file was there.
    const body = { ...parts.body, upload: { method: 'direct', ...parts.body.upload, auto_publish: true } };
    const track = asJson(await context.library.textTracks.create(ids, body, view));
    const key = track.id ?? '';
    const answer = { media: { type: 'track', key }, track: { key } };
    return { ...answer, ...uploadAnswer(call, track, 'track', { ...file, answer }) };
  },

  list(call) {
    const { context, siteId } = call;
    const ids = { siteId, mediaId: required(call, 'video_key') };
    const window = listWindow(context.library.textTracks, ids, call);
    return listAnswer(window, 'tracks', window.items.map(trackOf));
  },

  show(call) {
    const ids = find(call, required(call, 'track_key'));
    return { track: trackOf(asJson(call.context.library.textTracks.read(ids, call.view))) };
  },

  update(call) {
    const { context, parts, view } = call;
    const ids = find(call, required(call, 'track_key'));
    if (optional(call, 'update_file') !== undefined) {
      throw new V1Error('NotSupported', 'update_file: delete the track, and create another for a new file.');
    }
    context.library.textTracks.update(ids, { metadata: parts.body.metadata ?? {} }, view);
    return {};
  },

  delete(call) {
    const all = keysIn(call, 'track_key').map((key) => find(call, key));
    removeAll(call.context.library.textTracks, all, call.view);
    return {};
  },
};

/** v1 knows a track by its key alone. @throws V1Error NotFound */
function find({ context, siteId }: Translated, trackId: string): PathIds {
  const track = context.state.textTracks.find(trackId);
  if (track?.siteId === siteId) return { siteId, mediaId: track.mediaId, trackId };
  throw notFound('track_key', trackId);
}

function trackOf(track: JsonObject): JsonObject {
  return v1Fields('track', track);
}
