import type { Output } from './output';
import { shown } from './text';

/** How many of a kind are named unless all are asked for. */
const MAX_NAMED = 20;

/** Those of a kind that are named. */
export function firstOf<Item>(items: readonly Item[], all = false): readonly Item[] {
  return all ? items : items.slice(0, MAX_NAMED);
}

/** Shows how many of a kind were not named. */
export function showRest(out: Pick<Output, 'write'>, items: readonly unknown[], all = false): void {
  const more = items.length - firstOf(items, all).length;
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

/** What makes a spreadsheet take a cell for a formula, also as the full-width letters that some take for these. */
const FORMULA = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

/** A delimiter of any spreadsheet's: what follows it would be a cell of its own, in which a formula could stand. */
const NEEDS_QUOTES = /[",;\t\r\n']|^\s|\s$/;

/**
 * A row of a CSV file (RFC 4180), with its line break. A cell that a spreadsheet would take for a formula gets a `'`
 * before it, which spreadsheets don't show; control characters are shown as �, line feeds stay.
 */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(cell: string): string {
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  const text = safe.split('\n').map(shown).join('\n');
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
