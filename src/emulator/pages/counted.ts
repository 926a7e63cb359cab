/** What one thing of a kind is called, and what several are. */
export interface Noun {
  readonly one: string;
  readonly many: string;
}

/** How many there are, in words: `1 webhook`, `2 webhooks`. */
export function counted(count: number, noun: Noun): string {
  return `${count} ${nounFor(count, noun)}`;
}

export function nounFor(count: number, { one, many }: Noun): string {
  return count === 1 ? one : many;
}
