import { MEMBERS, membersBody } from '../../migration/mapping/fields';
import { type JsonObject, objectIn } from '../../migration/mapping/values';
import { v1Fields } from '../../migration/parameters';
import { watchablesOf } from '../delivery/watchable';
import type { PlaylistType } from '../resources/playlists';
import { v1Error } from './errors';
import {
  commonHandlers,
  type Found,
  type Handler,
  metadataIn,
  notFound,
  optional,
  required,
  type Translated,
  wholeNumber,
  windowOf,
} from './translate';
import { videoOf } from './videos';

export const CHANNELS: Readonly<Record<string, Handler>> = {
  ...commonHandlers({
    name: 'channel',
    find: findChannel,
    // The list of all types has only their common fields.
    show(call, { id }) {
      const { calls, ids } = findChannel(call, String(id));
      return v1Fields('channel', calls.read(ids, call.view));
    },
    metadata(call, before) {
      const { playlist_type: type = before.type } = call.parts.ids;
      if (type === before.type) return channelMetadata(call, before);
      const message = 'type: a channel keeps its type. Leave it out, or create another channel.';
      throw v1Error('ParameterInvalid', message);
    },
  }),

  async create(call) {
    const { context, siteId, parts, view } = call;
    const type = parts.ids.playlist_type ?? 'dynamic_playlist';
    const calls = context.library.typedPlaylists.get(type as PlaylistType);
    if (!calls) throw v1Error('ParameterInvalid', 'type is not one of a channel.');
    const made = await calls.create({ siteId }, { metadata: channelMetadata(call) }, view);
    return { channel: { key: made.id ?? '' } };
  },
};

function channelIn(call: Translated): Found {
  return findChannel(call, required(call, 'channel_key'));
}

/** A channel, which in v2 is a playlist of a type. */
function findChannel({ context: { state, library }, siteId }: Translated, key?: string): Found {
  if (key === undefined) return { calls: library.playlists, ids: { siteId } };
  const playlist = state.playlists.findOf(siteId, key);
  const calls = playlist && library.typedPlaylists.get(playlist.playlistType);
  if (calls) return { calls, ids: { siteId, playlistId: key } };
  throw notFound('channel_key', key);
}

/** The metadata of a call. It keeps the other values of a filter, which v2 replaces as a whole. */
function channelMetadata(call: Translated, before: JsonObject = {}): JsonObject {
  const metadata = metadataIn(call, before);
  if (metadata.media_filter === undefined) return metadata;
  const given = objectIn(metadata, 'media_filter', 'include', 'tags');
  const filter = objectIn(before, 'metadata', 'media_filter');
  const include = objectIn(filter, 'include');
  const tags = { values: [], ...objectIn(include, 'tags'), ...given };
  return { ...metadata, media_filter: { ...filter, include: { ...include, tags } } };
}

/** v1 changes single members of a manual channel; v2 has their list as a whole. Positions count from 0. */
export const CHANNEL_VIDEOS: Readonly<Record<string, Handler>> = {
  create(call) {
    const { context, siteId } = call;
    const channel = channelIn(call);
    const key = required(call, 'video_key');
    if (!context.state.media.findOf(siteId, key)) throw notFound('video_key', key);
    const members = membersOf(channel, call);
    const position = wholeNumber(call, 'position') ?? members.length;
    if (position > members.length) throw outside('position', members.length);
    setMembers(channel, call, members.toSpliced(position, 0, key));
    return {};
  },

  delete(call) {
    const channel = channelIn(call);
    const members = membersOf(channel, call);
    setMembers(channel, call, members.toSpliced(placeOf(call, members), 1));
    return {};
  },

  list(call) {
    const members = videosOf(channelIn(call), call);
    const window = windowOf(wholeNumber(call, 'result_limit'), wholeNumber(call, 'result_offset'));
    const shown = members.slice(window.offset, window.offset + window.limit);
    const videos = shown.map((key) => memberOf(call, key));
    return { ...window, total: members.length, videos };
  },

  show(call) {
    const members = videosOf(channelIn(call), call);
    return { video: memberOf(call, members[placeOf(call, members)] ?? '') };
  },

  update(call) {
    const channel = channelIn(call);
    const members = membersOf(channel, call);
    const from = placeAt(call, 'position_from', members);
    const to = placeAt(call, 'position_to', members);
    const key = members[from] ?? '';
    setMembers(channel, call, members.toSpliced(from, 1).toSpliced(to, 0, key));
    return {};
  },
};

/** The keys of the existing members, in their order. @throws HttpError when the channel has none of its own. */
function membersOf({ calls, ids }: Found, { context, siteId, view }: Translated): readonly string[] {
  if (calls.resource.type !== 'manual_playlist') {
    throw v1Error('NotSupported', 'channel_key: only a manual channel has videos of its own.');
  }
  const { values } = objectIn(calls.read(ids, view), ...MEMBERS.split('.'));
  const keys = Array.isArray(values) ? values.map(String) : [];
  return keys.filter((key) => context.state.media.findOf(siteId, key));
}

/** The keys of the present videos of a channel; those for viewers unless it is manual. */
function videosOf(channel: Found, call: Translated): readonly string[] {
  const { context } = call;
  const playlist = context.state.playlists.find(channel.ids.playlistId ?? '');
  if (!playlist || playlist.playlistType === 'manual_playlist') return membersOf(channel, call);
  const found = watchablesOf(context, playlist);
  return found.flatMap((watchable) => (watchable.live ? [] : watchable.media.id));
}

function setMembers({ calls, ids }: Found, { view }: Translated, values: readonly string[]): void {
  calls.update(ids, membersBody(values), view);
}

/** The place of the member with this `video_key` or `position`. @throws HttpError unless one is given, and exists. */
function placeOf(call: Translated, members: readonly string[]): number {
  const key = optional(call, 'video_key');
  if (key === undefined) return placeAt(call, 'position', members);
  if (optional(call, 'position') !== undefined) {
    throw v1Error('ParameterInvalid', 'video_key and position cannot be set together.');
  }
  const place = members.indexOf(key);
  if (place < 0) throw notFound('video_key', key);
  return place;
}

function placeAt(call: Translated, name: string, members: readonly string[]): number {
  required(call, name);
  const place = wholeNumber(call, name) ?? 0;
  if (place >= members.length) throw outside(name, members.length - 1);
  return place;
}

function outside(name: string, last: number) {
  const message = last < 0 ? `${name}: this channel has no videos.` : `${name} must be at most ${last}.`;
  return v1Error('ParameterInvalid', message);
}

function memberOf({ context, siteId, view }: Translated, mediaId: string): JsonObject {
  return videoOf(context, context.library.media.read({ siteId, mediaId }, view));
}
