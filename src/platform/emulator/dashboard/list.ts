import { type Content, type Html, html } from '../../../http/html';
import { type Choice, type Column, counted, live, type Noun, optionsOf, table } from './elements';

const PAGE_LENGTH = 50;
const MAX_WORDS_LENGTH = 200;

export type PageQuery = Readonly<Record<string, unknown>>;

/** A choice that narrows a list, by a name such as `last_try`, from which its words follow. */
interface ListFilter<T> {
  readonly name: string;
  readonly choices: readonly Choice[];
  readonly of: (item: T) => string;
}

export interface List<T> {
  readonly path: string;
  readonly noun: Noun;
  readonly caption: string;
  readonly columns: (query: string) => readonly Column<T>[];
  readonly hint: string;
  /** The texts that are searched. No secret is among them, as the words are in the address. */
  readonly texts: (item: T) => readonly string[];
  readonly filters?: readonly ListFilter<T>[];
  readonly empty: Content;
  readonly pageLength?: number;
}

/** The words (`q`) and the choices of a query. Parameters that can't be read are ignored. */
function askedOf<T>(query: PageQuery, { filters = [] }: Pick<List<T>, 'filters'>): URLSearchParams {
  const words = textOf(query.q).trim().slice(0, MAX_WORDS_LENGTH);
  const asked = new URLSearchParams(words === '' ? {} : { q: words });
  for (const { name, choices } of filters) {
    const choice = choices.find(({ value }) => value === query[name]);
    if (choice) asked.set(name, choice.value);
  }
  return asked;
}

/** The words, the choices and the page of a query, to which a change leads back. */
export function shownBy<T>(query: PageQuery, list: Pick<List<T>, 'filters'>): URLSearchParams {
  const asked = askedOf(query, list);
  const page = pageIn(query.page, Infinity);
  if (page > 1) asked.set('page', String(page));
  return asked;
}

/** In pages, the newest first. @param items oldest first. @param id of the part that the script updates. */
export function listOf<T>(id: string, items: readonly T[], query: PageQuery, list: List<T>): Html {
  const { path, noun, texts, filters = [], pageLength = PAGE_LENGTH } = list;
  const asked = askedOf(query, list);
  const words = asked.get('q')?.toLowerCase().split(/\s+/) ?? [];
  const matching = items.filter((item) => {
    if (!filters.every(({ name, of }) => (asked.get(name) ?? of(item)) === of(item))) return false;
    const text = texts(item).join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const pages = Math.max(Math.ceil(matching.length / pageLength), 1);
  const page = pageIn(query.page, pages);
  const end = matching.length - (page - 1) * pageLength;
  const shown = matching.slice(Math.max(end - pageLength, 0), end).reverse();
  const count = counted(items.length, noun.one, noun.many);
  const all = html`<a href="${path}">Show all</a>`;
  const noMatch = items.length === 1 ? `The one ${noun.one} doesn't match.` : `None of the ${count} matches.`;
  const summary = asked.size === 0 ? count : html`<span>${matching.length} of ${count}</span> ${all}`;
  const none = items.length === 0 ? list.empty : html`<p>${noMatch} ${all}</p>`;
  const found = html`${matching.length > 0 && html`<p class="found">${summary}</p>`}${table(list.caption, list.columns(shownBy(query, list).toString()), shown, none)}`;
  const links = pageLinks(page, pages, (to) => `${path}?${asked.size > 0 ? `${asked}&` : ''}page=${to}`);
  return html`${(items.length > 0 || asked.size > 0) && searchForm(list, asked)}${live(id, html`${found}${links}`)}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function pageIn(value: unknown, pages: number): number {
  return Math.min(Number(/^[1-9]\d{0,6}$/.exec(textOf(value))?.[0] ?? 1), pages);
}

function searchForm<T>({ path, noun, hint, filters = [] }: List<T>, asked: URLSearchParams): Html {
  const fields = filters.map(({ name, choices }) => {
    const words = name.replaceAll('_', ' ');
    const options = [{ value: '', label: `Any ${words}` }, ...choices];
    return html`<label class="unseen" for="search-${name}">Filter by ${words}</label><select id="search-${name}" name="${name}">${optionsOf(options, asked.get(name) ?? '')}</select>`;
  });
  return html`<form class="search" role="search" aria-label="Search ${noun.many}" action="${path}" autocomplete="off">
    <label class="unseen" for="search-q">Search ${noun.many}</label>
    <input id="search-q" name="q" type="search" value="${asked.get('q') ?? ''}" placeholder="Search ${hint}" maxlength="${MAX_WORDS_LENGTH}" spellcheck="false">
    ${fields}
    <button>Search</button>
  </form>`;
}

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
