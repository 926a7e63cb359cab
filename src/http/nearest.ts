import { distance } from 'fastest-levenshtein';

/** The known name that a misspelt one most likely means, or undefined when none is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const lower = name.toLowerCase().slice(0, 100);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(lower.length / 3)) + 1;
  for (const candidate of known) {
    const edits = distance(lower, candidate.toLowerCase());
    if (edits < least) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}
