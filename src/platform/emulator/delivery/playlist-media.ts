import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { isPublished, type Media, publicationOf } from '../library/media';
import type { Playlist, PlaylistMetadata } from '../library/playlists';
import { type Fields, readFilter } from '../listing/filter';
import type { ItemList } from '../listing/item-store';
import { readSorting } from '../listing/sorting';
import { foldCase, foldLetters, holdsPattern, wordsOf } from '../listing/words';
import type { DYNAMIC_PLAYLIST } from '../resources/playlist-table';
import type { MetadataOf } from '../resources/resource';
import { publishedMedia, siteOf, type Watchable, watchableOf } from './watchable';

type Dynamic = MetadataOf<typeof DYNAMIC_PLAYLIST>;
type Criteria = NonNullable<Dynamic['media_filter']['include']>;
type Tags = NonNullable<Criteria['tags']>;
type Sort = Dynamic['sort'];

/** What the request of a viewer says beside the playlist. */
export interface Asked {
  readonly search: string;
  /** The text of the page that the playlist is shown on. */
  readonly article: string;
  readonly relatedId: string | undefined;
  /** The media that are left of the playlist; without values all. */
  readonly tags: Tags;
  /** In place of a dynamic playlist's own. */
  readonly sort: Sort | undefined;
  /** Whether a playlist that finds nothing shows what is trending. */
  readonly backfill: boolean | undefined;
}

/** All of a playlist that viewers may watch now, in its order. Each type has one rule. */
export function watchablesOf(
  context: EmulatorContext,
  playlist: Pick<Playlist, 'id' | 'siteId' | 'playlistType' | 'metadata'>,
  asked: Asked,
): readonly Watchable[] {
  const { state, clock } = context;
  const now = clock.now();
  const hasTags = fitsTags(asked.tags);
  if (playlist.playlistType === 'manual_playlist') {
    const { media_filter: filter } = playlist.metadata as PlaylistMetadata<'manual_playlist'>;
    return [...new Set(filter.include?.values)].flatMap((id) => {
      const watchable = watchableOf(state, now, id);
      return watchable && siteOf(watchable) === playlist.siteId && hasTags(tagsOf(watchable))
        ? [watchable]
        : [];
    });
  }
  const { media_filter: filter, media_limit: most } =
    playlist.metadata as PlaylistMetadata<'trending_playlist'>;
  const list = state.media.list(playlist.siteId);
  const isIncluded = membershipOf(filter);
  const belongs = (media: Media) => isIncluded(media) && hasTags(media.metadata.tags);
  const select = (rule: Rule) => {
    if (typeof rule === 'string')
      return firstInOrder(list, rule, most, (media) => belongs(media) && isPublished(media, now));
    const rankOf = (media: Media) => (belongs(media) ? rule(media) : undefined);
    return firstByRank(list.items, rankOf, most, now);
  };
  const found = select(ruleOf(context, playlist, asked));
  const isBackfilled = asked.backfill ?? playlist.playlistType === 'article_matching_playlist';
  const canBackfill = ['article_matching_playlist', 'search_playlist'].includes(playlist.playlistType);
  const shown = found.length === 0 && canBackfill && isBackfilled ? select(byViews) : found;
  return shown.map((media) => ({ live: false, media }));
}

/** The order of a playlist: one that is kept, or by a rank of which the largest comes first. */
type Rule = Exclude<Sort, 'views:dsc'> | RankOf;
/** Undefined leaves a media out. Of equal rank, what was published last comes first. */
type RankOf = (media: Media) => number | undefined;

const byViews: RankOf = ({ views }) => views;

function ruleOf(
  { state, clock }: EmulatorContext,
  { siteId, playlistType, metadata }: Pick<Playlist, 'siteId' | 'playlistType' | 'metadata'>,
  asked: Asked,
): Rule {
  switch (playlistType) {
    case 'dynamic_playlist': {
      const sort = asked.sort ?? (metadata as PlaylistMetadata<'dynamic_playlist'>).sort;
      // Of views, no order is kept: they change with every request.
      return sort === 'views:dsc' ? byViews : sort;
    }
    case 'search_playlist':
      return searchRule(
        state.media.list(siteId),
        asked.search || ((metadata as PlaylistMetadata<'search_playlist'>).query ?? ''),
      );
    case 'article_matching_playlist':
      return articleRule(asked.article);
    case 'recommendations_playlist':
      return relatedRule(publishedMedia(state, clock.now(), asked.relatedId));
    default:
      return byViews;
  }
}

/** What playlists are sorted by. */
const SORTED: Fields<Media> = {
  named: {
    created: { kind: 'time', of: ({ created }) => created },
    title: { kind: 'text', of: ({ metadata }) => metadata.title },
    publish_start_date: { kind: 'time', of: publicationOf },
    duration: { kind: 'number', of: ({ duration }) => duration },
  },
};
/** Of what is equal, what was published last comes first, then what was made last. */
function withTies(sort: string): string {
  if (sort.startsWith('created:')) return sort;
  return sort.startsWith('publish_start_date:')
    ? `${sort},created:dsc`
    : `${sort},publish_start_date:dsc,created:dsc`;
}

/** How many are looked at first; then always twice as many. */
const FIRST_LOOK = 200;

/** The first media of an order that belong. It costs as many as are looked at, however many there are. */
function firstInOrder(
  list: ItemList<Media>,
  sort: string,
  most: number,
  belongs: (media: Media) => boolean,
): Media[] {
  const read = readSorting(withTies(sort), SORTED);
  if (!read.ok) throw new Error(`${sort} is not read as an order.`);
  const wanted = { fields: SORTED, q: '', condition: undefined, sorting: read.sorting };
  const first: Media[] = [];
  for (let start = 0, length = FIRST_LOOK; start < list.items.length; start += length, length *= 2) {
    for (const media of list.index.find({ ...wanted, start, length }).items) {
      if (!belongs(media)) continue;
      first.push(media);
      if (first.length === most) return first;
    }
  }
  return first;
}

/** Near words are found where lists find them. */
const SEARCHED: Fields<Media> = {
  named: {
    title: { kind: 'text', of: ({ metadata }) => metadata.title, near: true },
    tags: { kind: 'text', of: ({ metadata }) => metadata.tags },
    description: { kind: 'text', of: ({ metadata }) => metadata.description ?? undefined, near: true },
  },
};
const MAX_SEARCHED_WORDS = 20;
/** A word stands three times in a query, whose length has a limit. */
const MAX_SEARCHED_LENGTH = 300;

/**
 * Every word, or one near it, is in the title, the tags or the description. The more are in the title, the earlier a
 * media comes, and the words themselves count more than those near them.
 */
function searchRule(list: ItemList<Media>, text: string): RankOf {
  let length = 0;
  const words = distinctWords(text)
    .slice(0, MAX_SEARCHED_WORDS)
    .filter((word) => {
      length += word.length;
      return length <= MAX_SEARCHED_LENGTH;
    });
  if (words.length === 0) return () => undefined;
  const anywhere = words.map((word) => `(title: ${word} OR tags: ${word} OR description: ${word})`);
  const ranks = new Map(itemsFound(list, anywhere.join(' AND ')).map((media) => [media, 0]));
  for (const word of words) {
    for (const media of itemsFound(list, `title: ${word}`)) {
      const rank = ranks.get(media);
      if (rank !== undefined) ranks.set(media, rank + (hasWord(media, word) ? 2 : 1));
    }
  }
  return (media) => ranks.get(media);
}

function hasWord({ metadata }: Media, word: string): boolean {
  return holdsPattern(foldLetters(metadata.title), [foldLetters(word)]);
}

const MAX_ARTICLE_WORDS = 1000;
/** The commonest words of English, which say nothing of a page. Words of less than three letters don't count either. */
const COMMON = new Set(
  `about after all also and any are because been but can could did for from get had has have her him his how into its
  just like more not now off one only other our out over own said she should some such than that the their them then
  there these they this those too two under was were what when where which while who will with would you your`.split(
    /\s+/,
  ),
);

/** By how many different words of a page are in the title or the tags. A word means itself alone: of many, some are near. */
function articleRule(text: string): RankOf {
  const asked = new Set(
    distinctWords(text)
      .filter((word) => word.length > 2 && !COMMON.has(word))
      .slice(0, MAX_ARTICLE_WORDS),
  );
  return ({ metadata: { title, tags } }) => {
    const words = wordsOf(foldCase(`${title} ${tags.join(' ')}`));
    const matched = words.filter((word, place) => asked.has(word) && words.indexOf(word) === place);
    return matched.length || undefined;
  };
}

const MAX_WORD_LENGTH = 100;

function distinctWords(text: string): readonly string[] {
  return [...new Set(wordsOf(foldCase(text)).map((word) => word.slice(0, MAX_WORD_LENGTH)))];
}

function itemsFound({ index, items }: ItemList<Media>, q: string): readonly Media[] {
  const filter = readFilter(q, SEARCHED);
  if (!filter.ok || !filter.condition) throw new Error(`${q} is not read as a filter.`);
  const all = { start: 0, length: items.length, sorting: 'oldest' } as const;
  return index.find({ fields: SEARCHED, q, condition: filter.condition, ...all }).items;
}

/** By how many tags a media shares with the related one, which is not among them; without one, the newest. */
function relatedRule(related: Media | undefined): RankOf {
  const tags = new Set(related?.metadata.tags);
  return (media) => {
    if (media === related) return undefined;
    return media.metadata.tags.reduce((shared, tag) => shared + (tags.has(tag) ? 1 : 0), 0);
  };
}

/** Whether a media belongs to a playlist: it has what is included, and nothing of what is excluded. */
function membershipOf({ include, exclude }: Dynamic['media_filter']): (media: Media) => boolean {
  const included = testsOf(include);
  const excluded = testsOf(exclude);
  return (media) => included.every((fits) => fits(media)) && !excluded.some((fits) => fits(media));
}

/** The parts of a filter that ask for something. */
function testsOf(criteria: Criteria | null | undefined): ((media: Media) => boolean)[] {
  const { tags, custom_params: params } = criteria ?? {};
  const tests: ((media: Media) => boolean)[] = [];
  if (tags && tags.values.length > 0) {
    const hasTags = fitsTags(tags);
    tests.push(({ metadata }) => hasTags(metadata.tags));
  }
  const wanted = Object.entries(params?.values ?? {});
  if (wanted.length > 0) {
    const isAll = params?.match === 'all';
    tests.push(({ metadata: { custom_params: own } }) => {
      const has = ([name, value]: [string, string]) => own[name] === value;
      return isAll ? wanted.every(has) : wanted.some(has);
    });
  }
  return tests;
}

/** Without values, all tags fit. */
function fitsTags({ match, values }: Tags): (tags: readonly string[]) => boolean {
  if (values.length === 0) return () => true;
  if (match === 'all') return (tags) => values.every((value) => tags.includes(value));
  return (tags) => values.some((value) => tags.includes(value));
}

function tagsOf(watchable: Watchable): readonly string[] {
  return (watchable.live ? watchable.channel : watchable.media).metadata.tags;
}

interface Ranked {
  readonly media: Media;
  readonly rank: number;
  /** As text that sorts by time. */
  readonly published: string;
}

/**
 * The published media with the largest ranks. Only few are kept at a time, and only those that are among the first so
 * far are asked whether they are published, so it takes one pass without sorting.
 * @param items oldest first.
 */
function firstByRank(items: readonly Media[], rankOf: RankOf, most: number, now: Date): Media[] {
  const isBefore = (a: Ranked, b: Ranked) =>
    a.rank === b.rank ? a.published > b.published : a.rank > b.rank;
  const first: Ranked[] = [];
  // From the end, where of equal ranks the first are likely to be, so that few move.
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const media = items[index];
    const rank = media && rankOf(media);
    if (!media || rank === undefined) continue;
    const last = first.length === most ? first.at(-1) : undefined;
    if (last && rank < last.rank) continue;
    const published = media.metadata.publish_start_date ?? wireTime(media.created);
    const candidate = { media, rank, published };
    if ((last && !isBefore(candidate, last)) || !isPublished(media, now)) continue;
    first.splice(
      placeIn(first, (other) => isBefore(candidate, other)),
      0,
      candidate,
    );
    if (first.length > most) first.pop();
  }
  return first.map(({ media }) => media);
}

/** The first place whose item is after what is to be inserted. */
function placeIn<T>(sorted: readonly T[], isAfter: (item: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = sorted[middle];
    if (item !== undefined && isAfter(item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
