import { distance } from 'fastest-levenshtein';

/** The known name that a misspelt one most likely means: two letters may be wrong, or one of every `lettersPerError`, but not all. */
export function nearestName(name: string, known: Iterable<string>, lettersPerError = 4): string | undefined {
  const lower = name.toLowerCase().slice(0, 100);
  let best: string | undefined;
  let least = Math.max(2, Math.floor(lower.length / lettersPerError)) + 1;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    const edits = distance(lower, other);
    if (edits < least && [...lower].some((letter) => other.includes(letter))) {
      best = candidate;
      least = edits;
    }
  }
  return best;
}

export interface UnknownName {
  /** The name as it may be shown; undefined for one that could be key material in the wrong place. */
  readonly shown: string | undefined;
  readonly near: string | undefined;
}

/** The report of an unknown name. It is not shown when it could be a key: keys are full of digits and capitals. */
export function unknownName(name: string, known: Iterable<string>): UnknownName {
  const near = nearestName(name, known);
  const isPlain = /^[\x20-\x7e]{1,100}$/.test(name);
  const isWords = !/[A-Z+/=]/.test(name) && !/\d.*\d.*\d.*\d/.test(name);
  const isShown = isPlain && (near !== undefined || isWords || name.length <= 15);
  return { shown: isShown ? name : undefined, near };
}
