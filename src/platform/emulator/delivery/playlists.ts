import type { Express } from 'express';
import * as z from 'zod';
import { routeAt } from '../../../http/app';
import { originOf } from '../addresses';
import { field, queryText } from '../json-body';
import { DYNAMIC_PLAYLIST, type Playlist } from '../resources/playlists';
import { answer, type DeliveryParts, readQuery } from './answers';
import { entryOf, type Feed, Formatted, sendFeed } from './documents';
import { watchablesOf } from './watchable';

const NO_PLAYLIST = 'There is no playlist with this id.';

const MAX_PAGE = 500;

const positive = queryText.regex(/^[1-9]\d{0,8}$/, 'must be a whole number of at least 1').transform(Number);
const whole = { type: 'integer', pattern: undefined, minimum: 1 } as const;
const words = (description: string) => queryText.default('').meta({ description, default: undefined });

/** Parameters of the playlist's document. Players send others of their own, which change nothing. */
export const PlaylistQuery = Formatted.extend({
  page_limit: positive
    .transform((limit) => Math.min(limit, MAX_PAGE))
    .default(MAX_PAGE)
    .meta({
      ...whole,
      description: 'How many items a page has at most.',
      maximum: MAX_PAGE,
      default: MAX_PAGE,
    }),
  page_offset: positive
    .default(1)
    .meta({ ...whole, description: 'Which item is the first, from 1.', default: 1 }),
  tags: field(
    queryText.transform((tags) => tags.split(',').filter((tag) => tag !== '')).default([]),
    'Only media with these tags, separated by commas.',
  ),
  tags_mode: field(
    z.enum(['any', 'all'], 'must be any or all').default('all'),
    'Whether one of the tags is enough.',
  ),
  sort: field(
    DYNAMIC_PLAYLIST.metadata.sort.schema.optional(),
    'In place of the order of a dynamic playlist.',
  ),
  backfill: field(
    z
      .enum(['true', 'false'], 'must be true or false')
      .transform((given) => given === 'true')
      .optional(),
    'Whether a playlist of searches or articles that finds nothing shows trending media.',
  ),
  related_media_id: field(
    queryText.optional(),
    'The media that those of a recommendations playlist are like.',
  ),
  search: words('The text that a search playlist looks for.'),
  page_title: words('The title of the page, for an article matching playlist.'),
  page_description: words('The description of the page.'),
  page_keywords: words('The keywords of the page.'),
});

type Parameters = z.output<typeof PlaylistQuery>;

export function mountPlaylists(app: Express, context: DeliveryParts): void {
  const { state, clock } = context;
  routeAt(app, '/v2/playlists/:playlistId').get(async (request, response) => {
    const playlist = state.playlists.find(request.params.playlistId);
    if (!playlist) return answer(response, NO_PLAYLIST, undefined);
    const given = readQuery(response, PlaylistQuery);
    if (!given) return;
    const address = `${originOf(request)}${request.originalUrl}`;
    await sendFeed(response, await playlistFeed(context, playlist, given, new URL(address)), given.format);
    if (request.method === 'GET') state.usage.count(playlist.siteId, clock.now(), 'deliveries');
  });
}

async function playlistFeed(
  context: DeliveryParts,
  playlist: Playlist,
  given: Parameters,
  address: URL,
): Promise<Feed> {
  const { id, playlistType, metadata } = playlist;
  const all = watchablesOf(context, playlist, given);
  const { page_limit: limit, page_offset: offset } = given;
  const page = all.slice(offset - 1, offset - 1 + limit);
  const shown = { origin: address.origin, feedId: id };
  return {
    title: metadata.title,
    description: metadata.description ?? '',
    kind:
      playlistType === 'recommendations_playlist'
        ? 'FEED'
        : playlistType.replace('_playlist', '').toUpperCase(),
    feedid: id,
    links: linksOf(address, { limit, offset, total: all.length }),
    customParams: metadata.custom_params,
    entries: await Promise.all(page.map((watchable) => entryOf(context, watchable, shown))),
    feedInstanceId: context.newId('feed'),
  };
}

/** The addresses of the first and the last page, and of the neighbours of this one where there are any. */
function linksOf(
  address: URL,
  { limit, offset, total }: { readonly limit: number; readonly offset: number; readonly total: number },
): Readonly<Record<string, string>> {
  const page = (start: number) => {
    const link = new URL(address);
    link.searchParams.delete('page_offset');
    link.searchParams.set('page_limit', String(limit));
    link.searchParams.append('page_offset', String(start));
    return link.href;
  };
  const last = Math.max(Math.ceil(total / limit) - 1, 0) * limit + 1;
  return {
    first: page(1),
    last: page(last),
    ...(offset + limit <= total && { next: page(offset + limit) }),
    ...(offset > 1 && { previous: page(Math.max(1, Math.min(offset - limit, last))) }),
  };
}
