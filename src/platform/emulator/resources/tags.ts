import { HttpError } from '../../../http/errors';
import { field, validated } from '../json-body';
import { siteBody } from './body';
import { SITE, Tag } from './fields';
import { updateMedia } from './media-behaviour';
import { changeTagOfPlaylists } from './playlists';
import type { Action, Platform } from './resource';

export const TAG_ACTIONS = {
  remove_tag: {
    methods: ['PUT'],
    path: `${SITE}/remove_tag`,
    title: 'Remove a tag',
    status: 202,
    says: 'Takes a tag off all media of the site.',
    body: siteBody({
      tag: field(Tag.nullish(), 'The tag.'),
      name: field(Tag.nullish(), 'The same, by its other name.'),
    }),
  },
  rename_tag: {
    methods: ['PUT'],
    path: `${SITE}/rename_tag`,
    title: 'Rename a tag',
    status: 202,
    says: 'Renames a tag of all media of the site. A media with both keeps one.',
    body: siteBody({
      old_tag: field(Tag.nullish(), 'The tag as it is.'),
      new_tag: field(Tag.nullish(), 'The new name.'),
      old_name: field(Tag.nullish(), '`old_tag`, by its other name.'),
      new_name: field(Tag.nullish(), '`new_tag`, by its other name.'),
    }),
  },
} as const satisfies Readonly<Record<string, Action>>;

/** Changes a tag of all media of a site, and returns how many had it. @throws HttpError 400 */
export function changeTags(
  parts: Platform,
  action: keyof typeof TAG_ACTIONS,
  siteId: string,
  body: unknown,
): number {
  const given = validated<Readonly<Record<string, string | null | undefined>>>(
    TAG_ACTIONS[action].body,
    body,
  );
  // Each tag has two names.
  const named = (field: string, other: string) => ({ field, tag: given[field] ?? given[other] });
  const asked =
    action === 'remove_tag'
      ? [named('tag', 'name')]
      : [named('old_tag', 'old_name'), named('new_tag', 'new_name')];
  const problems = asked.flatMap(({ field, tag }) =>
    typeof tag === 'string' ? [] : [{ code: 'invalid_body', description: `${field}: is missing` }],
  );
  if (problems.length > 0) throw new HttpError(400, problems);
  const [tag = '', into] = asked.map(({ tag }) => String(tag));
  return tag === into ? 0 : changeTag(parts, siteId, tag, into);
}

function changeTag(parts: Platform, siteId: string, tag: string, into: string | undefined): number {
  const change = (tags: readonly string[]) =>
    tags.includes(tag)
      ? [...new Set(tags.flatMap((each) => (each === tag ? (into ?? []) : each)))]
      : undefined;
  let count = 0;
  for (const media of parts.state.media.of(siteId)) {
    const tags = change(media.metadata.tags);
    if (!tags) continue;
    updateMedia(parts, media, { ...media.metadata, tags });
    count += 1;
  }
  // A playlist that no longer asked for its only tag would have every media.
  if (into !== undefined) changeTagOfPlaylists(parts, siteId, change);
  return count;
}

export function countTags({ state }: Pick<Platform, 'state'>, siteId: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { metadata } of state.media.of(siteId)) {
    for (const tag of new Set(metadata.tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
