/** The parts of a list without the white space around them; empty ones are left out. */
export function partsOf(list: string, divider: string | RegExp = ','): string[] {
  return list
    .split(divider)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
