import { HttpError, type Problem } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import { updateMedia } from './media-api';
import { changeTagOfPlaylists } from './playlists';

type Given = Readonly<Record<string, unknown>>;

/**
 * Takes a tag off all media of a site. Answers how many had it.
 * @throws HttpError 400
 */
export function removeTag(context: EmulatorContext, siteId: string, given: Given): number {
  const [tag] = tagsOf(given, [['tag', 'name']]);
  return changeTag(context, siteId, tag ?? '', undefined);
}

/** Renames a tag of all media of a site. Answers how many had it. @throws HttpError 400 */
export function renameTag(context: EmulatorContext, siteId: string, given: Given): number {
  const [before, after] = tagsOf(given, [
    ['old_tag', 'old_name'],
    ['new_tag', 'new_name'],
  ]);
  return changeTag(context, siteId, before ?? '', after);
}

/** The tags that a body has, each by one of its two names. */
function tagsOf(given: Given, names: readonly (readonly [string, string])[]): readonly string[] {
  const problems: Problem[] = [];
  const tags = names.map(([name, other]) => {
    const tag = given[name] ?? given[other];
    if (typeof tag === 'string') return tag;
    problems.push({ code: 'invalid_body', description: `${name}: is missing` });
    return '';
  });
  if (problems.length > 0) throw new HttpError(400, problems);
  return tags;
}

function changeTag(context: EmulatorContext, siteId: string, tag: string, into: string | undefined): number {
  if (tag === into) return 0;
  const change = (tags: readonly string[]) =>
    tags.includes(tag)
      ? [...new Set(tags.flatMap((each) => (each === tag ? (into ?? []) : each)))]
      : undefined;
  let count = 0;
  for (const media of context.state.media.of(siteId)) {
    const tags = change(media.metadata.tags);
    if (!tags) continue;
    updateMedia(context, media, { ...media.metadata, tags });
    count += 1;
  }
  // A playlist that no longer asked for its only tag would have every media.
  if (into !== undefined) changeTagOfPlaylists(context, siteId, change);
  return count;
}

/** The tags of a site's media with how many have each, by their names. */
export function countTags({ state }: EmulatorContext, siteId: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { metadata } of state.media.of(siteId)) {
    for (const tag of new Set(metadata.tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
