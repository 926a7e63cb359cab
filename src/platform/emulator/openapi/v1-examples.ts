import * as z from 'zod';
import type { RouteMapping, V1Resource } from '../../migration/mapping/routes';

const video = { video_key: '$MEDIA_ID' };
const channel = { channel_key: '$PLAYLIST_ID' };
const player = { player_key: '$PLAYER_ID' };
const conversion = { conversion_key: '$RENDITION_ID' };
const track = { track_key: '$TRACK_ID' };

/** The parameters of an example of each route, without those of the protocol. */
export const V1_EXAMPLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/v1/accounts/tags/delete': { name: 'news' },
  '/v1/accounts/tags/update': { name: 'news', new_name: 'current affairs' },
  '/v1/channels/create': { type: 'manual', title: 'Best of the week' },
  '/v1/channels/delete': channel,
  '/v1/channels/list': { result_limit: '10', order_by: 'title:asc' },
  '/v1/channels/show': channel,
  '/v1/channels/update': { ...channel, title: 'Best of the month' },
  '/v1/channels/videos/create': { ...channel, ...video, position: '0' },
  '/v1/channels/videos/delete': { ...channel, position: '0' },
  '/v1/channels/videos/list': channel,
  '/v1/channels/videos/show': { ...channel, position: '0' },
  '/v1/channels/videos/update': { ...channel, position_from: '0', position_to: '0' },
  '/v1/players/create': { name: 'News page', responsive: 'true' },
  '/v1/players/delete': player,
  '/v1/players/list': { search: 'news' },
  '/v1/players/show': player,
  '/v1/players/update': { ...player, autostart: 'viewable' },
  '/v1/videos/create': { title: 'Town hall', tags: 'news', 'custom.show': 'evening' },
  '/v1/videos/delete': video,
  '/v1/videos/list': { search: 'town hall', order_by: 'date:desc', result_limit: '10' },
  '/v1/videos/show': video,
  '/v1/videos/update': { ...video, title: 'Town hall, the whole evening', 'custom.-show': '' },
  '/v1/videos/conversions/create': { ...video, template_key: '480p' },
  '/v1/videos/conversions/delete': conversion,
  '/v1/videos/conversions/list': video,
  '/v1/videos/conversions/show': conversion,
  '/v1/videos/thumbnails/show': video,
  '/v1/videos/thumbnails/update': { ...video, position: '12.5' },
  '/v1/videos/tracks/create': { ...video, kind: 'captions', label: 'English' },
  '/v1/videos/tracks/delete': track,
  '/v1/videos/tracks/list': video,
  '/v1/videos/tracks/show': track,
  '/v1/videos/tracks/update': { ...track, label: 'English (UK)' },
};

/** The names of the resources in answers. */
const NAMES: Readonly<Record<V1Resource, string>> = {
  tag: 'tag',
  usage: 'account',
  channel: 'channel',
  channel_video: 'video',
  player: 'player',
  status: 'status',
  video: 'video',
  conversion: 'conversion',
  video_tag: 'tag',
  thumbnail: 'thumbnail',
  track: 'track',
};

const Keyed = z.looseObject({ key: z.string().meta({ description: 'Its key.' }) });

/** Where a file goes, when the call has asked for one. */
const UPLOAD = {
  media: Keyed.optional().meta({ description: 'What was made, and which kind of content it is.' }),
  video: Keyed.optional().meta({ description: 'The media.' }),
  link: z.looseObject({}).optional().meta({ description: 'Where the file goes.' }),
  session_id: z.string().optional().meta({ description: 'What the chunks of a large file are sent with.' }),
};

/** What the answer of a route has beside `status` and `rate_limit`. */
export function answerFields({ resource, action }: RouteMapping): Readonly<Record<string, z.ZodType>> {
  const name = NAMES[resource];
  if (resource === 'usage') {
    return {
      account: Keyed.meta({ description: 'The site.' }),
      start_date: z.string().meta({ description: 'The first day.' }),
      end_date: z.string().meta({ description: 'The last day.' }),
      usage: z.array(z.looseObject({})).meta({ description: 'What was used, day by day.' }),
    };
  }
  if (action === 'list') {
    return {
      limit: z.int().meta({ description: 'How many are listed at most.' }),
      offset: z.int().meta({ description: 'How many before the first were passed over.' }),
      total: z.int().meta({ description: 'How many there are.' }),
      [`${name}s`]: z.array(Keyed).meta({ description: 'Those that were asked for.' }),
    };
  }
  if (action === 'show') return { [name]: Keyed.meta({ description: 'What was asked for.' }) };
  if (['video', 'track', 'thumbnail'].includes(resource) && action !== 'delete') {
    return {
      ...UPLOAD,
      ...(resource === 'track' && { track: Keyed.optional().meta({ description: 'The text track.' }) }),
    };
  }
  if (action === 'create' && resource !== 'channel_video') {
    return { [name]: Keyed.meta({ description: 'What was made.' }) };
  }
  return {};
}
