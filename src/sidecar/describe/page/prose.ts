import { type Html, html } from '../../../http/html';

/** Paragraphs, divided by empty lines, with `code` between backticks: what our descriptions use of Markdown. */
export function prose(text: string): Html {
  return html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;
}

/** One line of it. */
export function inline(text: string): Html {
  const pieces = text.split('`');
  return html`${pieces.map((piece, place) => (place % 2 === 1 ? html`<code>${piece}</code>` : piece))}`;
}
