/* Pieces of the page of the fleet. All text of others is text here, never markup. */
import { REASONS, STATES } from './fleet-words.js';

const SVG = 'http://www.w3.org/2000/svg';

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  element.append(
    ...children.flat().filter((child) => child !== undefined && child !== false && child !== ''),
  );
  return element;
}

export const part = (tag, attributes = {}, ...children) =>
  made(document.createElement(tag), attributes, children);
export const drawn = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

const shown = new WeakMap();

/** Makes the content of an element anew if what it shows has changed; what is selected or focused stays otherwise. */
export function fill(element, facts, make) {
  const signature = JSON.stringify(facts) ?? '';
  if (shown.get(element) === signature) return;
  shown.set(element, signature);
  element.replaceChildren(...[make(facts)].flat().filter((child) => child !== undefined && child !== false));
}

const VARIANTS = { good: 'success', wait: 'warning', bad: 'danger' };
export const pill = (tone, text) => part('span', { class: 'badge', 'data-variant': VARIANTS[tone] }, text);
export const statePill = (state) => pill(STATES[state]?.[0] ?? 'wait', state.replaceAll('_', ' '));
export const reasonPill = (why, text = why) => pill(REASONS[why]?.[0] ?? 'wait', text);
/** A sentence whose commands and names of variables stand between backticks. Names may break after an underscore. */
export const spoken = (text) =>
  text
    .split('`')
    .map((piece, at) =>
      at % 2 === 1
        ? part('code', {}, ...piece.split(/(?<=_)/).flatMap((word) => [word, part('wbr')]))
        : piece,
    );
export const sub = (text) => part('span', { class: 'sub' }, text);

/**
 * Shows a list as the rows of a table. A column has a `title`, the `facts` of an item that it shows, and what it makes of
 * them (`show`); the first one names the row. Only cells whose facts have changed are made anew.
 */
export function showRows(table, columns, items, keyOf) {
  if (!table.tHead) {
    const heads = columns.map(({ title, wide }) =>
      part('th', { scope: 'col', role: 'columnheader', class: wide && 'strips' }, title),
    );
    // On phones rows are blocks, and would be no rows to a screen reader.
    table.setAttribute('role', 'table');
    table.append(
      part('thead', { role: 'rowgroup' }, part('tr', { role: 'row' }, heads)),
      part('tbody', { role: 'rowgroup' }),
    );
  }
  const [body] = table.tBodies;
  const present = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = items.map((item) => {
    const key = keyOf(item);
    const row = present.get(key) ?? newRow(key, columns);
    for (const [at, { facts, show }] of columns.entries()) fill(row.cells[at].firstChild, facts(item), show);
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

function newRow(key, columns) {
  const row = part('tr', { role: 'row', 'data-key': key });
  for (const [at, { title }] of columns.entries()) {
    const kind = at === 0 ? { tag: 'th', scope: 'row', role: 'rowheader' } : { tag: 'td', role: 'cell' };
    const { tag, ...attributes } = kind;
    row.append(part(tag, { ...attributes, 'data-label': title }, part('div')));
  }
  return row;
}

/** Shows a button that is asked for the rest of a list, and answers how many of it to show. */
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
