import { type Html, html } from '../../kernel/html';

const PAGE_LENGTH = 50;

export interface Paged<T> {
  readonly items: readonly T[];
  /** Links to the pages before and after; empty when everything is on one. */
  readonly links: Html;
}

/**
 * One page of a list, the newest first.
 * @param items oldest first.
 * @param wanted the page's number as it stands in the address; anything else than a number means the first.
 */
export function pageOf<T>(items: readonly T[], wanted: unknown, path: string): Paged<T> {
  const pages = Math.max(Math.ceil(items.length / PAGE_LENGTH), 1);
  const page = Math.min(
    typeof wanted === 'string' && /^[1-9]\d{0,6}$/.test(wanted) ? Number(wanted) : 1,
    pages,
  );
  const end = items.length - (page - 1) * PAGE_LENGTH;
  const shown = items.slice(Math.max(end - PAGE_LENGTH, 0), end).reverse();
  return { items: shown, links: pages === 1 ? html`` : links(page, pages, items.length, path) };
}

function links(page: number, pages: number, total: number, path: string): Html {
  const link = (to: number, label: string) =>
    to >= 1 && to <= pages && html`<a class="button button-small" href="${path}?page=${to}">${label}</a>`;
  return html`<nav class="pager" aria-label="Pages">
    ${link(page - 1, 'Newer')}<span>Page ${page} of ${pages} · ${total} in all</span>${link(page + 1, 'Older')}
  </nav>`;
}
