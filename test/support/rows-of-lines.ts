/** Rows for `test.each` of a table that has one a line, `input → fault → fault`, behind a line break. */
export function rowsOfLines(table: string): string[][] {
  const lines = table.trimEnd().slice(1).split('\n');
  return lines.map((line) => line.split(' → '));
}
