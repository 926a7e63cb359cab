import type { Output, Style } from './output';

/** Characters that move a cursor, turn the direction of a text, or end a line. */
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text from elsewhere as a terminal may have it: an escape sequence in a name would move the cursor. */
export function shown(text: string): string {
  return text.replaceAll(CONTROL, '\u{fffd}');
}

export function shownLines(text: string): string {
  return text.split(/\r?\n/).map(shown).join('\n');
}

/** As JSON for a terminal: the same value, but JSON by itself escapes only some control characters. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  return text.replaceAll(CONTROL, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  return text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** A longer cell moves the rest of its row, not of all rows. */
const WIDEST = 80;

/** Rows as aligned columns, two spaces between them, each with its line feed. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => {
      // The last one of a row takes no column: it may be a remark.
      if (cell.length <= WIDEST && index < row.length - 1)
        widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  const lines = rows.map((row) => row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

export interface Row {
  readonly cells: readonly string[];
  readonly style?: Style | undefined;
}

/** Rows as aligned columns, without line feeds; the first one is the head. */
export function table(style: Output['style'], rows: readonly Row[]): string[] {
  const lines = columns(rows.map(({ cells }) => cells)).split('\n');
  return rows.map((row, index) => {
    const own = index === 0 ? 'bold' : row.style;
    return own ? style(own, lines[index] ?? '') : (lines[index] ?? '');
  });
}

/** `1 key file`, `12,000 key files`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

/** A text as one word of a POSIX shell: users paste the commands that are shown, often as root. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const MAX_NAMED = 20;

export function firstOf<Item>(items: readonly Item[], all = false): readonly Item[] {
  return all ? items : items.slice(0, MAX_NAMED);
}

/** Shows those of a kind below a title: the first ones, or all. Nothing when there is none. */
export function showSome<Item>(
  out: Pick<Output, 'write' | 'style'>,
  title: string,
  items: readonly Item[],
  all: boolean | undefined,
  show: (item: Item) => void,
): void {
  if (items.length === 0) return;
  out.write(`${out.style('bold', title)}\n`);
  const named = firstOf(items, all);
  named.forEach(show);
  const more = items.length - named.length;
  if (more > 0) out.write(`    and ${more.toLocaleString('en-US')} more; --all names them\n`);
}

/** `a, b and 3 more`: the first names of several, safe for a terminal. */
export function someNames(names: readonly string[], most = MAX_NAMED): string {
  const more = names.length - most;
  const first = names.slice(0, most).map(shown).join(', ');
  return more > 0 ? `${first} and ${more.toLocaleString('en-US')} more` : first;
}

/** A time in ISO 8601 for a person, to the second: `2025-01-31 14:02:11`. */
export function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/(?:\.\d+)?Z$/, '');
}

/** The start of a formula in a spreadsheet, also in the full-width letters that some accept. */
const FORMULA = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

/** A delimiter of any spreadsheet: the text after it would be a separate cell, and could be a formula. */
const NEEDS_QUOTES = /[",;\t\r\n']|^\s|\s$/;

/** RFC 4180, with its line break. A cell like a formula gets a `'` first, which spreadsheets don't show. */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(cell: string): string {
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  const text = safe.split('\n').map(shown).join('\n');
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
