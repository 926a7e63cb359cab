/** Rows for `test.each` of inputs by their titles, `what it is: its faults`: the title, the input and the list of faults. */
export function rowsOf<Input>(table: Readonly<Record<string, Input>>): [string, Input, string[]][] {
  return Object.entries(table).map(([title, input]) => {
    const at = title.lastIndexOf(': ');
    return [title, input, at < 0 ? [] : title.slice(at + 2).split(', ')];
  });
}
