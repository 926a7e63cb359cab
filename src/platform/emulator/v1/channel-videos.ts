import { MEMBERS } from '../../migration/mapping/fields';
import type { JsonObject } from '../../migration/mapping/values';
import { watchablesOf } from '../delivery/playlist-media';
import { type Channel, channelIn } from './channels';
import { V1Error } from './errors';
import {
  asJson,
  type Handler,
  listAnswer,
  notFound,
  objectIn,
  optional,
  required,
  type Translated,
  wholeNumber,
  windowOf,
} from './translate';
import { videoOf } from './videos';

/** v1 changes single members of a manual channel; v2 has their list as a whole. Positions count from 0. */
export const CHANNEL_VIDEOS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
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
    const { limit, offset } = windowOf({
      limit: wholeNumber(call, 'result_limit'),
      offset: wholeNumber(call, 'result_offset'),
    });
    const videos = members.slice(offset, offset + limit).map((key) => memberOf(call, key));
    return listAnswer({ limit, offset, total: members.length }, 'videos', videos);
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

/** The keys of the members that are there, in their order. @throws V1Error when the channel has none of its own. */
function membersOf({ calls, ids }: Channel, { context, siteId, view }: Translated): readonly string[] {
  if (calls.resource.type !== 'manual_playlist') {
    throw new V1Error('NotSupported', 'channel_key: only a manual channel has videos of its own.');
  }
  const { values } = objectIn(asJson(calls.read(ids, view)), ...MEMBERS.split('.'));
  const keys = Array.isArray(values) ? values.map(String) : [];
  return keys.filter((key) => context.state.media.findOf(siteId, key));
}

const NOTHING_ASKED = {
  search: '',
  article: '',
  relatedId: undefined,
  tags: { values: [] },
  sort: undefined,
  backfill: undefined,
};

/** The keys of the videos that a channel of any type has now; all but manual ones have what viewers get. */
function videosOf(channel: Channel, call: Translated): readonly string[] {
  const { context } = call;
  const playlist = context.state.playlists.find(channel.ids.playlistId ?? '');
  if (!playlist || playlist.playlistType === 'manual_playlist') return membersOf(channel, call);
  const found = watchablesOf(context, playlist, NOTHING_ASKED);
  return found.flatMap((watchable) => (watchable.live ? [] : watchable.media.id));
}

function setMembers({ calls, ids }: Channel, { view }: Translated, values: readonly string[]): void {
  const body = MEMBERS.split('.').reduceRight<JsonObject>((inner, name) => ({ [name]: inner }), {
    match: 'any',
    values,
  });
  calls.update(ids, body, view);
}

/** Which member `video_key` or `position` means. @throws V1Error unless one of them is given, and is one. */
function placeOf(call: Translated, members: readonly string[]): number {
  const key = optional(call, 'video_key');
  if (key === undefined) return placeAt(call, 'position', members);
  if (optional(call, 'position') !== undefined) {
    throw new V1Error('ParameterInvalid', 'video_key and position cannot be set together.');
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

function outside(name: string, last: number): V1Error {
  const message = last < 0 ? `${name}: this channel has no videos.` : `${name} must be at most ${last}.`;
  return new V1Error('ParameterInvalid', message);
}

function memberOf({ context, siteId, view }: Translated, mediaId: string): JsonObject {
  return videoOf(context, asJson(context.library.media.read({ siteId, mediaId }, view)));
}
