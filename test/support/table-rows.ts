/** The rows of a table, one a line, each as its cells, between which are arrows. */
export function tableRows(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .map((row) => row.split(' → '));
}
