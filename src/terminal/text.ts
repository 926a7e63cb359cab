/** What moves a cursor, turns the direction of a text, or ends a line. */
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text from elsewhere as a terminal may have it: an escape sequence in a name would move the cursor. */
export function shown(text: string): string {
  return text.replaceAll(CONTROL, '\u{fffd}');
}

/** The same for a text of several lines, which may end as those of Windows do. */
export function shownLines(text: string): string {
  return text.split(/\r?\n/).map(shown).join('\n');
}

/** A value as JSON for a terminal, too: it is the same value, but JSON by itself escapes only some control characters. */
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

/** A cell that is longer moves what follows in its row, not in all rows. */
const WIDEST = 80;

/** Rows as aligned columns, two spaces between them; `widths` grows with what comes and may be handed on. */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): string {
  for (const row of rows) {
    row.forEach((cell, index) => {
      if (cell.length <= WIDEST) widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** `1 key file`, `12,000 key files`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

/** A text as one word of a POSIX shell, whatever stands in it: commands that are shown are pasted, often as root. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
