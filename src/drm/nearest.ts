import { distance } from 'fastest-levenshtein';

/**
 * The known name that a misspelt one most likely means, or undefined when none is near: two letters may be wrong, and in a
 * long name one of every `lettersPerError`.
 */
export function nearestName(name: string, known: Iterable<string>, lettersPerError = 4): string | undefined {
  const lower = name.toLowerCase().slice(0, 100);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(lower.length / lettersPerError)) + 1;
  for (const candidate of known) {
    const edits = distance(lower, candidate.toLowerCase());
    if (edits < least) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

/**
 * A name out of a request or a file as it may be shown: without control characters, not too long, and not at all when it could be key
 * material that slipped to where a name belongs. Names are words; keys are full of digits and capitals.
 */
export function shownName(name: string, near: string | undefined): string | undefined {
  if (!/^[\x20-\x7e]{1,100}$/.test(name)) return undefined;
  const isWords = !/[A-Z+/=]/.test(name) && !/\d.*\d.*\d.*\d/.test(name);
  return near !== undefined || isWords || name.length <= 15 ? name : undefined;
}
