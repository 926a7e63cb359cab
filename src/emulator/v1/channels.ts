import type { JsonObject } from '../../migration/mapping/values';
import { changeCustom, v1Fields } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import type { PlaylistType } from '../resources/playlist-table';
import type { PathIds, View } from '../resources/resource';
import type { ResourceCalls } from '../resources/resource-calls';
import { V1Error } from './errors';
import {
  asJson,
  customParamsOf,
  type Handler,
  keysIn,
  listAnswer,
  listWindow,
  notFound,
  objectIn,
  optional,
  removeAll,
  required,
  type Translated,
  wholeNumber,
} from './translate';

export const CHANNELS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    const type = parts.ids.playlist_type ?? 'dynamic_playlist';
    const calls = context.library.typedPlaylists.get(type as PlaylistType);
    if (!calls) throw new V1Error('ParameterInvalid', 'type is not one of a channel.');
    const metadata = { ...metadataOf(call, calls, {}), custom_params: parts.custom.set };
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
    const before = asJson(calls.read(ids, view));
    const custom_params = changeCustom(customParamsOf(before), parts.custom);
    calls.update(ids, { metadata: { ...metadataOf(call, calls, before), custom_params } }, view);
    return {};
  },

  delete(call) {
    const { context, siteId, view } = call;
    const all = keysIn(call, 'channel_key').map((playlistId) => ({ siteId, playlistId }));
    removeAll(context.library.playlists, all, view);
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

const SORT_FIELDS: Readonly<Record<string, string>> = {
  date: 'publish_start_date',
  title: 'title',
  duration: 'duration',
  views: 'views',
};
const DIRECTIONS: Readonly<Record<string, string>> = { asc: 'asc', desc: 'dsc' };

/**
 * The metadata that a call gives: a filter is changed where the call changes it, and `sort_order` and `videos_max` are
 * what v2 calls `sort` and `media_limit`.
 */
function metadataOf(call: Translated, calls: ResourceCalls, before: JsonObject): JsonObject {
  const { media_filter, ...metadata } = call.parts.body.metadata ?? {};
  const limit = wholeNumber(call, 'videos_max');
  const order = optional(call, 'sort_order');
  const [field = '', direction = ''] = order?.split('-') ?? [];
  const sort = `${SORT_FIELDS[field]}:${DIRECTIONS[direction]}`;
  const own = {
    ...(limit !== undefined && { media_limit: limit }),
    ...(order !== undefined && { sort }),
  };
  const names = Object.keys(calls.resource.metadata);
  for (const [name, parameter] of [
    ['media_limit', 'videos_max'],
    ['sort', 'sort_order'],
  ] as const) {
    if (name in own && !names.includes(name)) {
      throw new V1Error('NotSupported', `${parameter} is not a parameter of a channel of this type.`);
    }
  }
  if (order !== undefined && sort.includes('undefined')) {
    throw new V1Error(
      'ParameterInvalid',
      'sort_order must be date, title, duration or views, with -asc or -desc.',
    );
  }
  if (media_filter === undefined) return { ...metadata, ...own };
  const given = objectIn({ media_filter }, 'media_filter', 'include');
  const filter = objectIn(before, 'metadata', 'media_filter');
  const include = objectIn(filter, 'include');
  const tags = { values: [], ...objectIn(include, 'tags'), ...objectIn(given, 'tags') };
  return { ...metadata, ...own, media_filter: { ...filter, include: { ...include, tags } } };
}

function channelOf({ calls, ids }: Channel, view: View): JsonObject {
  const playlist = asJson(calls.read(ids, view));
  const { sort, media_limit } = objectIn(playlist, 'metadata');
  return {
    ...v1Fields('channel', playlist),
    ...(typeof sort === 'string' && { sort_order: sortOrderOf(sort) }),
    ...(media_limit !== undefined && { videos_max: media_limit }),
  };
}

function sortOrderOf(sort: string): string {
  const [field = '', direction = ''] = sort.split(':');
  const name = Object.keys(SORT_FIELDS).find((each) => SORT_FIELDS[each] === field) ?? 'date';
  return `${name}-${direction === 'asc' ? 'asc' : 'desc'}`;
}
