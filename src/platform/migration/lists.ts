import { FIELDS } from './mapping/fields';
import type { RouteMapping, V1Resource } from './mapping/routes';
import { ADVICE, CONTRACT } from './mapping/sentences';
import { isPlaceholder, splitList, toV2Value } from './mapping/values';

/** The default page length of v1; that of v2 is 10. */
export const V1_LIMIT = 50;

/** The name of the array in a list answer, in v1 and in v2, where they differ. */
export const LIST_NAMES: Partial<Readonly<Record<V1Resource, readonly [v1: string, v2: string]>>> = {
  video: ['videos', 'media'],
  channel: ['channels', 'playlists'],
  conversion: ['conversions', 'originals, media_renditions'],
  track: ['tracks', 'text_tracks'],
};

/** `any_of`: the v2 field has one of the words between commas; `since`, `until`: ends of a range of times. */
type ListParameter =
  | { readonly v1: string; readonly kind: 'limit' | 'offset' | 'sort' | 'search' | 'tags' | 'tags_mode' }
  | { readonly v1: string; readonly kind: 'any_of' | 'since' | 'until'; readonly v2: string };

const PAGED: readonly ListParameter[] = [
  { v1: 'result_limit', kind: 'limit' },
  { v1: 'result_offset', kind: 'offset' },
  { v1: 'order_by', kind: 'sort' },
  { v1: 'search', kind: 'search' },
];

const LIST_PARAMETERS: Partial<Readonly<Record<V1Resource, readonly ListParameter[]>>> = {
  video: [
    ...PAGED,
    { v1: 'tags', kind: 'tags' },
    { v1: 'tags_mode', kind: 'tags_mode' },
    { v1: 'statuses_filter', kind: 'any_of', v2: 'status' },
    { v1: 'mediatypes_filter', kind: 'any_of', v2: 'media_type' },
    { v1: 'start_date', kind: 'since', v2: 'publish_start_date' },
    { v1: 'end_date', kind: 'until', v2: 'publish_start_date' },
  ],
  channel: [...PAGED, { v1: 'type', kind: 'any_of', v2: 'playlist_type' }],
  player: PAGED,
  conversion: PAGED,
  track: [
    ...PAGED,
    { v1: 'statuses_filter', kind: 'any_of', v2: 'status' },
    { v1: 'kinds_filter', kind: 'any_of', v2: 'track_kind' },
  ],
};

export function listParametersOf({ resource, action }: RouteMapping): readonly ListParameter[] {
  return (action === 'list' && LIST_PARAMETERS[resource]) || [];
}

/** The v1 fields that `search` looks in, and those that `search:*` does. */
const SEARCHED: Partial<Readonly<Record<V1Resource, readonly [usual: string[], all: string[]]>>> = {
  video: [
    ['author', 'description', 'tags', 'title', 'key'],
    ['author', 'description', 'link', 'md5', 'tags', 'title', 'key'],
  ],
  channel: [
    ['description', 'title', 'key'],
    ['author', 'description', 'link', 'title', 'key'],
  ],
  player: [
    ['name', 'key'],
    ['name', 'key'],
  ],
  track: [
    ['label', 'key'],
    ['label', 'language', 'key'],
  ],
};

function searchedFields(resource: V1Resource, all: boolean): readonly string[] {
  return SEARCHED[resource]?.[all ? 1 : 0] ?? [];
}

/** The name in `sort` and `q` of v2, or undefined. `<resource>_key` is v1's other name of `key`. */
function listedName(resource: V1Resource, v1: string): string | undefined {
  if (v1.startsWith('custom.')) return `custom_params.${v1.slice('custom.'.length)}`;
  const name = v1.endsWith('_key') && v1 !== 'protectionrule_key' ? 'key' : v1;
  const place = FIELDS[resource].find((field) => field.v1 === name && field.answer !== undefined)?.answer;
  return place?.replace(/^metadata\./, '');
}

export type ListQuery = NonNullable<ReturnType<typeof readListParameters>>;

export function listParameter(mapping: RouteMapping, name: string): ListParameter | undefined {
  return listParametersOf(mapping).find(
    ({ v1, kind }) => v1 === name || (kind === 'search' && name.startsWith('search:')),
  );
}

/**
 * Reads the parameters of a list, and leaves others alone; undefined for a route that is no list.
 * @param searchesCustom whether v2 searches in all custom parameters at once, as the emulator does.
 */
export function readListParameters(
  mapping: RouteMapping,
  parameters: Readonly<Record<string, string>>,
  searchesCustom: boolean,
) {
  if (listParametersOf(mapping).length === 0) return undefined;
  const { resource } = mapping;
  const notes: { field: string; sentence: string; byHand: boolean }[] = [];
  const faults: { field: string; fault: string }[] = [];
  const clauses: string[] = [];
  const ranges = new Map<string, { since: string; until: string }>();
  let [limit, offset, sort]: (string | undefined)[] = [];

  const note = (field: string, sentence: string, byHand = false) => notes.push({ field, sentence, byHand });
  const anyOf = (several: readonly string[]) =>
    clauses.push(...(several.length > 1 ? [`(${several.join(' OR ')})`] : several));
  const wholeNumber = (field: string, text: string) => {
    if (isPlaceholder(text)) return text;
    if (/^\d{1,15}$/.test(text)) return String(Number(text));
    faults.push({ field, fault: 'must be a whole number, 0 or more' });
    return undefined;
  };

  const readSort = (field: string, text: string) => {
    const sorts: string[] = [];
    for (const part of isPlaceholder(text) ? [] : splitList(text)) {
      const [v1 = '', direction = 'asc'] = part.split(':');
      const name = listedName(resource, v1);
      const [, order] = /^(asc|dsc)$/.exec(direction.toLowerCase().replace('desc', 'dsc')) ?? [];
      if (name === undefined) note(field, `\`${v1.slice(0, 100)}\`: ${ADVICE.noSort}`, true);
      else if (order === undefined) faults.push({ field, fault: 'must be as date:asc or date:desc' });
      else sorts.push(`${name}:${order}`);
    }
    if (sorts.length === 0 && !isPlaceholder(text)) return;
    sort = isPlaceholder(text) ? text : sorts.join(',');
    note(field, ADVICE.sort, isPlaceholder(text));
  };

  const readSearch = (field: string, text: string) => {
    const named = splitList(field.slice('search:'.length));
    const fields = named.flatMap((name) => (name === '*' ? searchedFields(resource, true) : name));
    const found: string[] = [];
    for (const v1 of named.length > 0 ? fields : searchedFields(resource, false)) {
      const isAllCustom = v1 === 'custom.*';
      const name = isAllCustom && !searchesCustom ? undefined : listedName(resource, v1);
      if (name !== undefined) found.push(`${name}: "*${escaped(text)}*"`);
      else if (isAllCustom) note(field, ADVICE.customSearch, true);
      else if (named.includes(v1)) note(field, `\`${v1.slice(0, 100)}\`: ${ADVICE.noSort}`, true);
    }
    anyOf(found);
    if (found.length > 0) note(field, ADVICE.search);
  };

  const readTags = (field: string, text: string) => {
    const tags = splitList(text).map((tag) => `tags: ${quoted(tag)}`);
    const mode = parameters.tags_mode || 'all';
    if (mode === 'any') anyOf(tags);
    else clauses.push(...tags);
    if (!['all', 'any'].includes(mode)) faults.push({ field: 'tags_mode', fault: 'must be all or any' });
    note(field, CONTRACT.filter);
  };

  const readBound = (end: 'since' | 'until', v2: string, field: string, text: string) => {
    const date = toV2Value('date', text);
    if (!date.ok) {
      faults.push({ field, fault: date.fault });
      return;
    }
    ranges.set(v2, { since: '*', until: '*', ...ranges.get(v2), [end]: String(date.value) });
    note(field, ADVICE.dateRange, isPlaceholder(text));
  };

  for (const [name, text] of Object.entries(parameters)) {
    const parameter = listParameter(mapping, name);
    // v1 took an empty filter for none.
    if (!parameter || text.trim() === '') continue;
    const { kind } = parameter;
    if (kind === 'limit') limit = wholeNumber(name, text);
    else if (kind === 'offset') offset = wholeNumber(name, text);
    else if (kind === 'sort') readSort(name, text);
    else if (kind === 'search') readSearch(name, text);
    else if (kind === 'tags') readTags(name, text);
    else if (kind === 'since' || kind === 'until') readBound(kind, parameter.v2, name, text);
    else if (kind === 'any_of') {
      anyOf(splitList(text).map((word) => `${parameter.v2}: ${quoted(word)}`));
      note(name, CONTRACT.filter);
    }
  }
  for (const [field, { since, until }] of ranges) clauses.push(`${field}: [${since} TO ${until}]`);
  if (limit === undefined) note('result_limit', ADVICE.pageLength);
  const query: Readonly<Record<string, string>> = {
    ...pageOf(limit ?? String(V1_LIMIT), offset ?? '0', note),
    ...(sort !== undefined && { sort }),
    ...(clauses.length > 0 && { q: clauses.join(' AND ') }),
  };
  const known = (text: string | undefined, otherwise: number) =>
    text !== undefined && isPlaceholder(text) ? undefined : Number(text ?? otherwise);
  // The window that v1 asked for, where it is known. A `page` that starts elsewhere has a note.
  return { query, limit: known(limit, V1_LIMIT), offset: known(offset, 0), notes, faults };
}

function pageOf(
  limit: string,
  offset: string,
  note: (field: string, sentence: string, byHand: boolean) => void,
): Record<string, string> {
  if (limit === '0') {
    note('result_limit', ADVICE.limit, true);
    return {};
  }
  if (isPlaceholder(limit) || isPlaceholder(offset)) {
    const needsPage = offset !== '0';
    if (needsPage) note('result_offset', ADVICE.pageOfRest, true);
    return { ...(needsPage && { page: '{page}' }), page_length: limit };
  }
  const page = Math.floor(Number(offset) / Number(limit)) + 1;
  if (Number(offset) % Number(limit) !== 0) note('result_offset', ADVICE.offset, true);
  return { ...(page > 1 && { page: String(page) }), page_length: limit };
}

const escaped = (text: string) => text.replaceAll(/[\\"*]/g, '\\$&');

/** A value of `q`: one word as it is, anything else in quotes. */
const quoted = (text: string) => (/^\w+$/.test(text) ? text : `"${escaped(text)}"`);
