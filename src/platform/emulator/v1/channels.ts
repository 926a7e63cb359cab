import type { JsonObject } from '../../migration/mapping/values';
import { changeCustom, v1Fields } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import type { PlaylistType } from '../resources/playlists';
import type { PathIds, View } from '../resources/resource';
import type { ResourceCalls } from '../resources/resource-calls';
import { V1Error } from './errors';
import {
  asJson,
  customParamsOf,
  type Handler,
  listAnswer,
  listWindow,
  notFound,
  objectIn,
  removeKeys,
  required,
  type Translated,
} from './translate';

export const CHANNELS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    const type = parts.ids.playlist_type ?? 'dynamic_playlist';
    const calls = context.library.typedPlaylists.get(type as PlaylistType);
    if (!calls) throw new V1Error('ParameterInvalid', 'type is not one of a channel.');
    const metadata = { ...metadataOf(call, {}), custom_params: parts.custom.set };
    const made = asJson(await calls.create({ siteId }, { metadata }, view));
    return { channel: { key: made.id ?? '' } };
  },

  list(call) {
    const { context, siteId, view } = call;
    const window = listWindow(context.library.playlists, { siteId }, call);
    const channels = window.items.map(({ id }) => channelOf(findChannel(context, siteId, String(id)), view));
    return listAnswer(window, 'channels', channels);
  },

  show(call) {
    return { channel: channelOf(channelIn(call), call.view) };
  },

  update(call) {
    const { parts, view } = call;
    const { calls, ids } = channelIn(call);
    const type = parts.ids.playlist_type ?? calls.resource.type;
    if (type !== calls.resource.type) {
      const message = 'type: a channel keeps its type. Leave it out, or create another channel.';
      throw new V1Error('ParameterInvalid', message);
    }
    const before = asJson(calls.read(ids, view));
    const custom_params = changeCustom(customParamsOf(before), parts.custom);
    calls.update(ids, { metadata: { ...metadataOf(call, before), custom_params } }, view);
    return {};
  },

  delete(call) {
    removeKeys(call, call.context.library.playlists, 'channel_key', 'playlistId');
    return {};
  },
};

/** A channel, which in v2 is a playlist of a type. */
export interface Channel {
  readonly calls: ResourceCalls;
  readonly ids: PathIds;
}

/** The channel that `channel_key` means. @throws V1Error */
export function channelIn(call: Translated): Channel {
  return findChannel(call.context, call.siteId, required(call, 'channel_key'));
}

function findChannel({ state, library }: EmulatorContext, siteId: string, key: string): Channel {
  const playlist = state.playlists.findOf(siteId, key);
  const calls = playlist && library.typedPlaylists.get(playlist.playlistType);
  if (calls) return { calls, ids: { siteId, playlistId: key } };
  throw notFound('channel_key', key);
}

/** The metadata that a call gives; of a filter, which v2 replaces as a whole, what it doesn't give stays. */
function metadataOf({ parts }: Translated, before: JsonObject): JsonObject {
  const { metadata = {} } = parts.body;
  if (metadata.media_filter === undefined) return metadata;
  const given = objectIn(metadata, 'media_filter', 'include', 'tags');
  const filter = objectIn(before, 'metadata', 'media_filter');
  const include = objectIn(filter, 'include');
  const tags = { values: [], ...objectIn(include, 'tags'), ...given };
  return { ...metadata, media_filter: { ...filter, include: { ...include, tags } } };
}

function channelOf({ calls, ids }: Channel, view: View): JsonObject {
  return v1Fields('channel', asJson(calls.read(ids, view)));
}
