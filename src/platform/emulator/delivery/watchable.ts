import { foldCase, foldLetters, wordsOf } from '../listing/filter';
import { compare } from '../listing/list';
import { isOver, isViewable, type LiveEvent } from '../live/live-event';
import type { Channel } from '../resources/channels';
import { isPublished, type Media, publicationOf } from '../resources/media';
import type { DYNAMIC_PLAYLIST, Playlist, PlaylistMetadata } from '../resources/playlists';
import type { MetadataOf } from '../resources/resource';
import type { EmulatorState } from '../state';
import type { DeliveryParts } from './answers';

/** An event that is on, or a media on demand, that viewers may watch. */
export type Watchable = {
  readonly id: string;
  readonly siteId: string;
  /** An event has those of its channel. */
  readonly metadata: Pick<Media['metadata'], 'title' | 'tags' | 'custom_params'>;
} & (
  | { readonly live: true; readonly event: LiveEvent; readonly channel: Channel }
  | { readonly live: false; readonly media: Media }
);

/** Undefined for an unknown id and for media that viewers may not see alike, so that those stay hidden. */
export function watchableOf(state: EmulatorState, now: Date, id: string): Watchable | undefined {
  const event = state.events.find(id);
  const channel = state.channels.find(event?.channelId ?? '');
  if (event && channel && !isOver(event.state)) {
    const { siteId, metadata } = channel;
    return isViewable(event.state) ? { live: true, event, channel, id, siteId, metadata } : undefined;
  }
  const media = publishedMedia(state, now, id);
  return media && onDemand(media);
}

function onDemand(media: Media): Watchable {
  const { id, siteId, metadata } = media;
  return { live: false, media, id, siteId, metadata };
}

export function publishedMedia(state: EmulatorState, now: Date, id: string | undefined): Media | undefined {
  const media = state.media.find(id ?? '');
  return media && isPublished(media, now) ? media : undefined;
}

type Dynamic = MetadataOf<typeof DYNAMIC_PLAYLIST>;
type Criteria = NonNullable<Dynamic['media_filter']['include']>;
type Tags = NonNullable<Criteria['tags']>;
type Sort = Dynamic['sort'];

type PlaylistParts = Pick<DeliveryParts, 'state' | 'clock'>;

/** The parameters of a viewer's request for a playlist. Without tags, it has media with any. */
interface Asked {
  readonly search?: string;
  readonly page_title?: string;
  readonly page_description?: string;
  readonly page_keywords?: string;
  readonly related_media_id?: string | undefined;
  readonly tags?: Tags['values'];
  readonly tags_mode?: Tags['match'];
  readonly sort?: Sort | undefined;
  readonly backfill?: boolean | undefined;
}

/** All of a playlist that viewers may watch now, in its order. */
export function watchablesOf(
  context: PlaylistParts,
  playlist: Playlist,
  asked: Asked = {},
): readonly Watchable[] {
  const { state, clock } = context;
  const now = clock.now();
  const { tags: values = [], tags_mode: match = 'all' } = asked;
  const hasTags = (tags: readonly string[]) => fitsTags({ match, values }, tags);
  if (playlist.playlistType === 'manual_playlist') {
    const { media_filter: filter } = playlist.metadata as PlaylistMetadata<'manual_playlist'>;
    return [...new Set(filter.include?.values)].flatMap((id) => {
      const watchable = watchableOf(state, now, id);
      return watchable && watchable.siteId === playlist.siteId && hasTags(watchable.metadata.tags)
        ? [watchable]
        : [];
    });
  }
  const { media_filter: filter, media_limit: most } =
    playlist.metadata as PlaylistMetadata<'trending_playlist'>;
  const isIncluded = membershipOf(filter);
  const members = state.media
    .of(playlist.siteId)
    .filter((media) => isIncluded(media) && hasTags(media.metadata.tags) && isPublished(media, now));
  const select = (rule: Rule) => inOrder(members, rule).slice(0, most);
  const found = select(ruleOf(context, playlist, asked));
  const isBackfilled = asked.backfill ?? playlist.playlistType === 'article_matching_playlist';
  const canBackfill = ['article_matching_playlist', 'search_playlist'].includes(playlist.playlistType);
  const shown = found.length === 0 && canBackfill && isBackfilled ? select({ keyOf: byViews }) : found;
  return shown.map(onDemand);
}

/** The sort key of a media; undefined leaves it out. @param place of the media by its creation, from 0. */
type KeyOf = (media: Media, place: number) => number | string | undefined;

/** The order of a playlist: the largest key comes first, unless it ascends. Equal keys: the latest publication first. */
interface Rule {
  readonly keyOf: KeyOf;
  readonly ascends?: boolean;
}

const byViews: KeyOf = ({ views }) => views;

const SORT_KEYS: Readonly<Record<string, KeyOf>> = {
  created: (_media, place) => place,
  title: ({ metadata }) => metadata.title.toLowerCase(),
  publish_start_date: (media) => publicationOf(media).getTime(),
  duration: ({ duration }) => duration,
};

function ruleOf({ state, clock }: PlaylistParts, { playlistType, metadata }: Playlist, asked: Asked): Rule {
  const { search, page_title, page_keywords, page_description } = asked;
  switch (playlistType) {
    case 'dynamic_playlist': {
      const { sort } = metadata as PlaylistMetadata<'dynamic_playlist'>;
      const [name = '', direction] = (asked.sort ?? sort).split(':');
      return { keyOf: SORT_KEYS[name] ?? byViews, ascends: direction === 'asc' };
    }
    case 'search_playlist':
      return {
        keyOf: searchKey(search || ((metadata as PlaylistMetadata<'search_playlist'>).query ?? '')),
      };
    case 'article_matching_playlist':
      return { keyOf: articleKey([search, page_title, page_keywords, page_description].join(' ')) };
    case 'recommendations_playlist':
      return { keyOf: relatedKey(publishedMedia(state, clock.now(), asked.related_media_id)) };
    default:
      return { keyOf: byViews };
  }
}

const MAX_SEARCHED_WORDS = 20;
const MAX_SEARCHED_LENGTH = 300;

/** Every word is in the title, the tags or the description. The more are in the title, the earlier a media comes. */
function searchKey(text: string): KeyOf {
  let length = 0;
  const words = [...new Set(wordsOf(foldLetters(text)))].slice(0, MAX_SEARCHED_WORDS).filter((word) => {
    length += word.length;
    return length <= MAX_SEARCHED_LENGTH;
  });
  if (words.length === 0) return () => undefined;
  return ({ metadata: { title, tags, description } }) => {
    const inTitle = new Set(wordsOf(foldLetters(title)));
    const others = new Set(wordsOf(foldLetters(`${tags.join(' ')} ${description ?? ''}`)));
    if (!words.every((word) => inTitle.has(word) || others.has(word))) return undefined;
    return words.filter((word) => inTitle.has(word)).length;
  };
}

/** The commonest English words, which do not describe a page. Words of less than three letters don't count either. */
const COMMON = new Set(
  `about after all also and any are because been but can could did for from get had has have her him his how into its
  just like more not now off one only other our out over own said she should some such than that the their them then
  there these they this those too two under was were what when where which while who will with would you your`.split(
    /\s+/,
  ),
);

/** Ranks by the number of different words of a page in the title or the tags. */
function articleKey(text: string): KeyOf {
  const asked = new Set(wordsOf(foldCase(text)).filter((word) => word.length > 2 && !COMMON.has(word)));
  return ({ metadata: { title, tags } }) => {
    const words = wordsOf(foldCase(`${title} ${tags.join(' ')}`));
    const matched = words.filter((word, place) => asked.has(word) && words.indexOf(word) === place);
    return matched.length || undefined;
  };
}

/** Ranks by the tags shared with the related media, which is left out; without one, the newest first. */
function relatedKey(related: Media | undefined): KeyOf {
  const tags = new Set(related?.metadata.tags);
  return (media) => {
    if (media === related) return undefined;
    return media.metadata.tags.reduce((shared, tag) => shared + (tags.has(tag) ? 1 : 0), 0);
  };
}

function membershipOf({ include, exclude }: Dynamic['media_filter']): (media: Media) => boolean {
  const included = testsOf(include);
  const excluded = testsOf(exclude);
  return (media) => included.every((fits) => fits(media)) && !excluded.some((fits) => fits(media));
}

function testsOf(criteria: Criteria | null | undefined): ((media: Media) => boolean)[] {
  const { tags, custom_params: params } = criteria ?? {};
  const tests: ((media: Media) => boolean)[] = [];
  if (tags && tags.values.length > 0) tests.push(({ metadata }) => fitsTags(tags, metadata.tags));
  const wanted = Object.entries(params?.values ?? {});
  if (wanted.length > 0)
    tests.push(({ metadata: { custom_params: own } }) =>
      hasAnyOrAll(params?.match, wanted, ([name, value]) => own[name] === value),
    );
  return tests;
}

function fitsTags({ match, values }: Tags, tags: readonly string[]): boolean {
  return values.length === 0 || hasAnyOrAll(match, values, (value) => tags.includes(value));
}

function hasAnyOrAll<Value>(match: Tags['match'], values: readonly Value[], has: (value: Value) => boolean) {
  return match === 'all' ? values.every(has) : values.some(has);
}

/** @param items oldest first. */
function inOrder(items: readonly Media[], { keyOf, ascends }: Rule): readonly Media[] {
  return items
    .flatMap((media, place) => {
      const key = keyOf(media, place);
      return key === undefined ? [] : { media, key, published: publicationOf(media).getTime() };
    })
    .reverse()
    .sort((a, b) => (ascends ? compare(a.key, b.key) : compare(b.key, a.key)) || b.published - a.published)
    .map(({ media }) => media);
}
