/* All text from elsewhere is text here, never markup. */

const VARIANTS = { level: 'success', joining: 'warning' };
export const stateVariant = (state) => VARIANTS[state] ?? 'danger';
export const reasonVariant = (why) => (['failed', 'unreadable'].includes(why) ? 'danger' : 'warning');

/** As in the findings of the sidecar. */
export const isWrongClock = ({ clock_ahead_ms: ms }) => ms !== null && Math.abs(ms) > 2000;
export const isLate = ({ behind_seconds: seconds }) => seconds > 10;

/** 0: no trouble. */
export function troubleOf(packager) {
  const { live, state, lacks } = packager;
  if (!live) return 4;
  if (stateVariant(state) === 'danger' || lacks.some(({ why }) => reasonVariant(why) === 'danger')) return 3;
  if (isLate(packager)) return 2;
  return isWrongClock(packager) || state !== 'level' || lacks.some(({ why }) => why !== 'behind') ? 1 : 0;
}

const WHOLE = new Intl.NumberFormat('en');
export const number = (value) => WHOLE.format(value);
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

export function duration(ms) {
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 9.95) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return count(Math.floor(seconds / 86_400), 'day');
}

export function bytes(size) {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  const value = size / 1024 ** power;
  return `${power === 0 || value >= 99.5 ? Math.round(value) : Number(value.toFixed(1))} ${units[power]}`;
}

/** In UTC, as in the findings. */
export const moment = (time) => `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
export const clock = (time) => moment(time).slice(11);

const SOME = 5;
export function some(names) {
  const named = names.slice(0, SOME);
  const others = names.length - named.length;
  if (others > 0) return `${named.join(', ')} and ${number(others)} more`;
  return named.length > 1 ? `${named.slice(0, -1).join(', ')} and ${named.at(-1)}` : named.join('');
}

export const compareNames = new Intl.Collator('en', { numeric: true }).compare;

const SVG = 'http://www.w3.org/2000/svg';

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...shownOf(children));
  return element;
}

const shownOf = (children) => children.flat(Number.POSITIVE_INFINITY).filter(Boolean);

export const part = (tag, attributes = {}, ...children) =>
  made(document.createElement(tag), attributes, children);
export const drawn = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

/** Only if it differs: otherwise what is selected or focused stays. */
export function fill(element, ...children) {
  const next = element.cloneNode(false);
  next.append(...shownOf(children));
  if (next.innerHTML !== element.innerHTML) element.replaceChildren(...next.childNodes);
}

export const badge = (variant, text) => part('span', { class: 'badge', 'data-variant': variant }, text);
export const stateBadge = (state) => badge(stateVariant(state), state.replaceAll('_', ' '));
export const reasonBadge = (why, text = why) => badge(reasonVariant(why), text);
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

/** Variables, options and pages of the docs as code. Names may break after an underscore. */
export const withCode = (text) =>
  text
    .split(/(PACKAGERDRMAPI_\w+|--[\w=-]+|docs\/[\w.-]+)/)
    .map((piece, at) =>
      at % 2 === 1
        ? part('code', {}, ...piece.split(/(?<=_)/).flatMap((word) => [word, part('wbr')]))
        : piece,
    );

/** `columns` makes cells by title; the first one names the row. Only changed cells are replaced. */
export function showRows(table, columns, items, keyOf) {
  const [titles, shows] = [Object.keys(columns), Object.values(columns)];
  if (!table.tHead) {
    // On phones rows are blocks, and would be no rows to a screen reader.
    table.setAttribute('role', 'table');
    const heads = titles.map((title) => part('th', { scope: 'col', role: 'columnheader' }, title));
    table.append(
      part('thead', { role: 'rowgroup' }, part('tr', { role: 'row' }, heads)),
      part('tbody', { role: 'rowgroup' }),
    );
  }
  const [body] = table.tBodies;
  const present = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const wanted = items.map((item) => {
    const row = present.get(keyOf(item)) ?? newRow(keyOf(item), titles);
    for (const [at, show] of shows.entries()) fill(row.cells[at].firstChild, show(item));
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

const newRow = (key, titles) =>
  part(
    'tr',
    { role: 'row', 'data-key': key },
    titles.map((title, at) =>
      at === 0
        ? part('th', { scope: 'row', role: 'rowheader' }, part('div'))
        : part('td', { role: 'cell', 'data-label': title }, part('div')),
    ),
  );

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
