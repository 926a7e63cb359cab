import { type Content, type Html, html } from '../../../http/html';
import type { Choice } from './elements';

const PAGE_LENGTH = 50;
const MAX_WORDS_LENGTH = 200;

export type PageQuery = Readonly<Record<string, unknown>>;

/** One choice that narrows a list. */
interface ListFilter<T> {
  /** Of the parameter in the address. */
  readonly name: string;
  readonly label: string;
  /** What is chosen when nothing is. */
  readonly unset: string;
  readonly choices: readonly Choice[];
  readonly of: (item: T) => string;
}

/** How a list is searched. */
export interface Searchable<T> {
  readonly path: string;
  readonly noun: Noun;
  /** What can be searched for, behind the word Search. */
  readonly hint: string;
  /** Where the words are looked for. No secret is among them: what is searched for stands in the address. */
  readonly texts: (item: T) => readonly string[];
  readonly filters: readonly ListFilter<T>[];
  /** Without anything in it. */
  readonly empty: Content;
  /** How many are on a page, when it is not the whole page that the list has for itself. */
  readonly pageLength?: number;
}

/** A part of a list as an address asks for it. */
interface Found<T> {
  /** One page of what matches, the newest first. */
  readonly items: readonly T[];
  /** What to fill in; empty over a list that has nothing to search. */
  readonly form: Content;
  /** How many match. */
  readonly summary: Content;
  /** What to say in place of the items when there are none. */
  readonly none: Content;
  /** Links to the pages before and after; empty when everything is on one. */
  readonly links: Content;
  /** What the address asks for, without its `?`; empty when it asks for everything. */
  readonly query: string;
}

/**
 * Searches a list.
 * @param items oldest first.
 * @param query of the address; what can't be read in it is as good as not there.
 */
export function search<T>(items: readonly T[], query: PageQuery, how: Searchable<T>): Found<T> {
  const { path, noun, texts, filters, pageLength = PAGE_LENGTH } = how;
  const words = textOf(query.q).trim().slice(0, MAX_WORDS_LENGTH);
  const chosen = new Map(
    filters.map(({ name, choices }) => [name, choices.find(({ value }) => value === query[name])?.value]),
  );
  const asked = searchedBy(words, chosen);
  const wanted = words.toLowerCase().split(/\s+/);
  const matching = items.filter((item) => {
    if (!filters.every(({ name, of }) => (chosen.get(name) ?? of(item)) === of(item))) return false;
    if (words === '') return true;
    const text = texts(item).join('\n').toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  const pages = Math.max(Math.ceil(matching.length / pageLength), 1);
  const number = /^[1-9]\d{0,6}$/.exec(textOf(query.page))?.[0] ?? 1;
  const page = Math.min(Number(number), pages);
  const end = matching.length - (page - 1) * pageLength;
  const all = html`<a href="${path}">Show all</a>`;
  const isNarrowed = asked !== '';
  return {
    items: matching.slice(Math.max(end - pageLength, 0), end).reverse(),
    form: (items.length > 0 || isNarrowed) && searchForm(how, words, chosen),
    summary:
      matching.length > 0 &&
      html`<p class="found">${
        isNarrowed
          ? html`<span>${matching.length} of ${counted(items.length, noun)}</span> ${all}`
          : counted(items.length, noun)
      }</p>`,
    none: items.length === 0 ? how.empty : html`<p>${noMatch(items.length, noun)} ${all}</p>`,
    links: pages > 1 && pageLinks(page, pages, (to) => addressOf(path, asked, to)),
    query: asked,
  };
}

function noMatch(count: number, noun: Noun): string {
  return count === 1 ? `The one ${noun.one} doesn’t match.` : `None of the ${counted(count, noun)} matches.`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function searchedBy(words: string, chosen: ReadonlyMap<string, string | undefined>): string {
  const asked = new URLSearchParams(words === '' ? {} : { q: words });
  for (const [name, value] of chosen) if (value !== undefined) asked.set(name, value);
  return asked.toString();
}

function addressOf(path: string, asked: string, page: number): string {
  return `${path}?${asked === '' ? '' : `${asked}&`}page=${page}`;
}

function searchForm<T>(
  { path, noun, hint, filters }: Searchable<T>,
  words: string,
  chosen: ReadonlyMap<string, string | undefined>,
): Html {
  const fields = filters.map(({ name, label, unset, choices }) => {
    const options = [{ value: '', label: unset }, ...choices].map(
      (choice) =>
        html`<option value="${choice.value}"${choice.value === (chosen.get(name) ?? '') && html` selected`}>${choice.label}</option>`,
    );
    return html`<label class="unseen" for="search-${name}">${label}</label><select id="search-${name}" name="${name}">${options}</select>`;
  });
  return html`<form class="search" role="search" aria-label="Search ${noun.many}" action="${path}" data-search>
    <label class="unseen" for="search-q">Search ${noun.many}</label>
    <input id="search-q" name="q" type="search" value="${words}" placeholder="Search ${hint}" maxlength="${MAX_WORDS_LENGTH}" autocomplete="off" spellcheck="false">
    ${fields}
    <button class="button">Search</button>
  </form>`;
}

/** Links to the pages of a list on each side of this one. */
export function pageLinks(
  page: number,
  pages: number,
  address: (page: number) => string,
  [before, after]: readonly [string, string] = ['Newer', 'Older'],
): Html {
  const link = (to: number, label: string) =>
    to >= 1 && to <= pages && html`<a class="button button-small" href="${address(to)}">${label}</a>`;
  return html`<nav class="pager" aria-label="Pages">
    ${link(page - 1, before)}<span>Page ${page} of ${pages}</span>${link(page + 1, after)}
  </nav>`;
}

/** What one thing of a kind is called, and what several are. */
interface Noun {
  readonly one: string;
  readonly many: string;
}

/** How many there are, in words: `1 webhook`, `2 webhooks`. */
function counted(count: number, noun: Noun): string {
  return `${count} ${nounFor(count, noun)}`;
}

export function nounFor(count: number, { one, many }: Noun): string {
  return count === 1 ? one : many;
}
