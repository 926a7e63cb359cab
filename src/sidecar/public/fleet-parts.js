/* Parts of the page of the fleet. All text from elsewhere is text here, never markup. */
import { REASONS, STATES } from './fleet-words.js';

const SVG = 'http://www.w3.org/2000/svg';

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...shownOf(children));
  return element;
}

/** What is undefined, false or empty is left out. */
const shownOf = (children) => children.flat(Number.POSITIVE_INFINITY).filter(Boolean);

export const part = (tag, attributes = {}, ...children) =>
  made(document.createElement(tag), attributes, children);
export const drawn = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Replaces the content of an element if it differs: otherwise what is selected or focused stays. */
export function fill(element, ...children) {
  const next = element.cloneNode(false);
  next.append(...shownOf(children));
  if (next.innerHTML !== element.innerHTML) element.replaceChildren(...next.childNodes);
}

export const badge = (variant, text) => part('span', { class: 'badge', 'data-variant': variant }, text);
export const stateBadge = (state) => badge(STATES[state]?.[0] ?? 'warning', state.replaceAll('_', ' '));
export const reasonBadge = (why, text = why) => badge(REASONS[why]?.[0] ?? 'warning', text);
export const runsBadge = (live) => (live ? badge('success', 'runs') : badge('danger', 'gone'));
export const named = (...children) => part('span', { class: 'name' }, ...children);
export const muted = (text) => part('span', { class: 'muted' }, text);
export const sub = (...children) => part('span', { class: 'sub' }, ...children);
export const message = (variant, ...lines) =>
  part(
    'div',
    { class: 'message', 'data-variant': variant },
    lines.map((line) => line && part('p', {}, line)),
  );

/** A sentence whose commands and names of variables are between backticks. Names may break after an underscore. */
export const withCode = (text) =>
  text
    .split('`')
    .map((piece, at) =>
      at % 2 === 1
        ? part('code', {}, ...piece.split(/(?<=_)/).flatMap((word) => [word, part('wbr')]))
        : piece,
    );

/**
 * Shows a list as the rows of a table. A column is its title, and what makes a cell of an item; the first one names the
 * row. Only cells whose content has changed are replaced.
 */
export function showRows(table, columns, items, keyOf) {
  if (!table.tHead) {
    // On phones rows are blocks, and would be no rows to a screen reader.
    table.setAttribute('role', 'table');
    const heads = columns.map(([title]) => part('th', { scope: 'col', role: 'columnheader' }, title));
    table.append(
      part('thead', { role: 'rowgroup' }, part('tr', { role: 'row' }, heads)),
      part('tbody', { role: 'rowgroup' }),
    );
  }
  const [body] = table.tBodies;
  const present = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = items.map((item) => {
    const row = present.get(keyOf(item)) ?? newRow(keyOf(item), columns);
    for (const [at, [, show]] of columns.entries()) fill(row.cells[at].firstChild, show(item));
    return row;
  });
  const isSame = wanted.length === body.rows.length && wanted.every((row, at) => body.rows[at] === row);
  if (!isSame) {
    const focused = document.activeElement;
    const held = body.contains(focused);
    body.replaceChildren(...wanted);
    if (held && body.contains(focused)) focused.focus({ preventScroll: true });
  }
  table.hidden = items.length === 0;
}

const newRow = (key, columns) =>
  part(
    'tr',
    { role: 'row', 'data-key': key },
    columns.map(([title], at) =>
      at === 0
        ? part('th', { scope: 'row', role: 'rowheader' }, part('div'))
        : part('td', { role: 'cell', 'data-label': title }, part('div')),
    ),
  );

/** A function that cuts a list to a length until the button is pressed. */
export function createLimit(button, most) {
  let all = false;
  let again = () => undefined;
  button.addEventListener('click', () => {
    all = true;
    again();
  });
  return (items, what, redraw) => {
    again = redraw;
    const isCut = !all && items.length > most;
    button.hidden = !isCut;
    button.textContent = `Show all ${items.length.toLocaleString('en')} ${what}`;
    return isCut ? items.slice(0, most) : items;
  };
}
