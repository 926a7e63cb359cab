import { shown } from './output';

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
