import { SETUP_CONFIG } from '../../migration/mapping/fields';
import { type JsonObject, objectIn } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import type { PathIds } from '../resources/resource';
import { changeTags } from '../resources/tags';
import { usageOf } from '../resources/usage';
import {
  commonHandlers,
  type Handler,
  metadataIn,
  notFound,
  optional,
  required,
  type Translated,
} from './translate';
import { announcedFile, uploadAnswer } from './upload-api';

type Handlers = Readonly<Record<string, Handler>>;

const mediaIds = ({ siteId }: Translated, mediaId = ''): PathIds => ({ siteId, mediaId });

export const VIDEOS = {
  ...commonHandlers({
    name: 'video',
    find: (call, key) => ({ calls: call.context.library.media, ids: mediaIds(call, key) }),
    show: ({ context }, media) => videoOf(context, media),
  }),

  async create(call) {
    const { context, siteId, parts, view } = call;
    requireSource(call);
    const file = announcedFile(call);
    const body = { ...parts.body, metadata: metadataIn(call) };
    return uploadAnswer(call, await context.library.media.create({ siteId }, body, view), 'video', file);
  },

  async update(call) {
    const { parts, view } = call;
    const { media } = call.context.library;
    const ids = mediaIds(call, required(call, 'video_key'));
    const { upload } = parts.body;
    requireSource(call);
    const file = announcedFile(call);
    const metadata = metadataIn(call, media.read(ids, view));
    // Both are checked before one of them changes anything.
    media.checkUpdate(ids, { metadata }, view);
    const begun = upload && (await media.act('reupload', ids, { body: { upload } }, view));
    media.update(ids, { metadata }, view);
    return begun ? uploadAnswer(call, begun, 'video', file) : {};
  },
} satisfies Handlers;

/** @throws HttpError when a content to fetch, or one that stays elsewhere, has no address. */
function requireSource(call: Translated): void {
  const { method } = call.parts.body.upload ?? {};
  if (method === 'fetch') required(call, 'download_url');
  if (method === 'external') required(call, 'sourceurl');
}

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

export const PLAYERS = {
  ...commonHandlers({
    name: 'player',
    find: ({ context, siteId }, playerId = '') => ({
      calls: context.library.players,
      ids: { siteId, playerId },
    }),
    metadata(call, before) {
      // v2 replaces the options as a whole, and v1 changes those that it is given.
      const options = SETUP_CONFIG.split('.');
      const given = objectIn(call.parts.body, ...options);
      return { ...metadataIn(call, before), setup_config: { ...objectIn(before, ...options), ...given } };
    },
  }),

  async create(call) {
    const { context, siteId, view } = call;
    required(call, 'name');
    const body = { metadata: metadataIn(call) };
    const player = await context.library.players.create({ siteId }, body, view);
    return { player: { key: player.id ?? '' } };
  },
} satisfies Handlers;

/** v2 has the tags in its media, so a change of a tag changes all media of the site. */
export const TAGS = {
  delete(call) {
    const name = required(call, 'name');
    if (changeTags(call.context, 'remove_tag', call.siteId, call.parts.body) > 0) return {};
    throw notFound('name', name);
  },

  update(call) {
    const name = required(call, 'name');
    const newName = required(call, 'new_name');
    const count = changeTags(call.context, 'rename_tag', call.siteId, call.parts.body);
    if (count > 0 || name === newName) return {};
    throw notFound('name', name);
  },
} satisfies Handlers;

export const USAGE = {
  show(call) {
    const { context, siteId, parts } = call;
    const account = optional(call, 'account_key');
    if (account !== undefined && account !== siteId) throw notFound('account_key', account);
    const { start_date, end_date, results } = usageOf(context, [siteId], parts.body);
    return { account: { key: siteId }, start_date, end_date, usage: results };
  },
} satisfies Handlers;
