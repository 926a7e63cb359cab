import { type Content, type Html, html } from '../../../http/html';
import { type Choice, type Column, counted, live, type Noun, table } from './elements';
import { labelOf } from './forms';

const PAGE_LENGTH = 50;
const MAX_WORDS_LENGTH = 200;

export type PageQuery = Readonly<Record<string, unknown>>;

/** A choice that narrows a list. */
export interface ListFilter<T> {
  /** Of the parameter in the address. */
  readonly name: string;
  readonly label: string;
  /** The choice of nothing. */
  readonly unset: string;
  readonly choices: readonly Choice[];
  readonly of: (item: T) => string;
}

/** A choice by a name, such as `last_try`, from which its words follow. */
export function filterBy<T>(
  name: string,
  choices: readonly Choice[],
  of: (item: T) => string,
  label = labelOf(name),
): ListFilter<T> {
  return { name, label, unset: `Any ${name.replaceAll('_', ' ')}`, choices, of };
}

/** How a list looks, and how it is searched. */
export interface List<T> {
  readonly path: string;
  readonly noun: Noun;
  readonly caption: string;
  /** @param query of the list, without its `?`. */
  readonly columns: (query: string) => readonly Column<T>[];
  /** What can be searched for. */
  readonly hint: string;
  /** The texts that are searched. No secret is among them: the words stand in the address. */
  readonly texts: (item: T) => readonly string[];
  readonly filters?: readonly ListFilter<T>[];
  /** For a list without items. */
  readonly empty: Content;
  readonly pageLength?: number;
}

interface Asked {
  readonly words: string;
  readonly chosen: ReadonlyMap<string, string>;
  /** The words and the choices as a query, without its `?`. */
  readonly query: string;
}

/** What a query asks of a list; parameters that can't be read are ignored. */
export function askedOf<T>(query: PageQuery, { filters = [] }: Pick<List<T>, 'filters'>): Asked {
  const words = textOf(query.q).trim().slice(0, MAX_WORDS_LENGTH);
  const chosen = new Map<string, string>();
  for (const { name, choices } of filters) {
    const choice = choices.find(({ value }) => value === query[name]);
    if (choice) chosen.set(name, choice.value);
  }
  const asked = new URLSearchParams({ ...(words !== '' && { q: words }), ...Object.fromEntries(chosen) });
  return { words, chosen, query: asked.toString() };
}

/**
 * A list with its search, the newest item first, in pages.
 * @param items oldest first.
 * @param id of the part that the script keeps up to date.
 */
export function listOf<T>(id: string, items: readonly T[], query: PageQuery, list: List<T>): Html {
  const { path, noun, texts, filters = [], pageLength = PAGE_LENGTH } = list;
  const asked = askedOf(query, list);
  const wanted = asked.words.toLowerCase().split(/\s+/);
  const matching = items.filter((item) => {
    if (!filters.every(({ name, of }) => (asked.chosen.get(name) ?? of(item)) === of(item))) return false;
    const text = texts(item).join('\n').toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const pages = Math.max(Math.ceil(matching.length / pageLength), 1);
  const page = pageIn(query.page, pages);
  const end = matching.length - (page - 1) * pageLength;
  const shown = matching.slice(Math.max(end - pageLength, 0), end).reverse();
  const count = counted(items.length, noun);
  const all = html`<a href="${path}">Show all</a>`;
  const noMatch = items.length === 1 ? `The one ${noun.one} doesn’t match.` : `None of the ${count} matches.`;
  const summary = asked.query === '' ? count : html`<span>${matching.length} of ${count}</span> ${all}`;
  const none = items.length === 0 ? list.empty : html`<p>${noMatch} ${all}</p>`;
  const addressOf = (to: number) => `${path}?${asked.query && `${asked.query}&`}page=${to}`;
  return html`${(items.length > 0 || asked.query !== '') && searchForm(list, asked)}${live(
    id,
    html`${matching.length > 0 && html`<p class="found">${summary}</p>`}${table(list.caption, list.columns(asked.query), shown, none)}${pageLinks(page, pages, addressOf)}`,
  )}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The page that a parameter asks for, within what there is. */
export function pageIn(value: unknown, pages: number): number {
  return Math.min(Number(/^[1-9]\d{0,6}$/.exec(textOf(value))?.[0] ?? 1), pages);
}

function searchForm<T>({ path, noun, hint, filters = [] }: List<T>, { words, chosen }: Asked): Html {
  const fields = filters.map(({ name, label, unset, choices }) => {
    const options = [{ value: '', label: unset }, ...choices];
    return html`<label class="unseen" for="search-${name}">${label}</label><select id="search-${name}" name="${name}">${optionsOf(options, chosen.get(name) ?? '')}</select>`;
  });
  return html`<form class="search" role="search" aria-label="Search ${noun.many}" action="${path}" data-search>
    <label class="unseen" for="search-q">Search ${noun.many}</label>
    <input id="search-q" name="q" type="search" value="${words}" placeholder="Search ${hint}" maxlength="${MAX_WORDS_LENGTH}" autocomplete="off" spellcheck="false">
    ${fields}
    <button>Search</button>
  </form>`;
}

export function optionsOf(choices: readonly Choice[], chosen: string): Html[] {
  return choices.map(
    ({ value, label }) =>
      html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`,
  );
}

/** Links to the pages before and after this one; nothing when there is one page. */
export function pageLinks(
  page: number,
  pages: number,
  address: (page: number) => string,
  [before, after]: readonly [string, string] = ['Newer', 'Older'],
): Content {
  if (pages === 1) return undefined;
  const link = (to: number, label: string) =>
    to >= 1 && to <= pages && html`<a class="button outline small" href="${address(to)}">${label}</a>`;
  return html`<nav class="pager" aria-label="Pages">
    ${link(page - 1, before)}<span>Page ${page} of ${pages}</span>${link(page + 1, after)}
  </nav>`;
}
