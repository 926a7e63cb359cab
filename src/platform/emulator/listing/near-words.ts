import { distance } from 'fastest-levenshtein';

/** Of the shorter of two words, how many letters it must have for the other to differ by one typing error, or by two. */
export const LETTERS_FOR_ERROR = 4;
const LETTERS_FOR_TWO_ERRORS = 8;

/**
 * Whether a search for a word finds another one: the same, another form of it in English (`shows` for `show`), or one
 * that a typing error or two make of it. Both are folded. Words with digits are never near others: 2024 is not 2025.
 */
export function isNear(asked: string, word: string): boolean {
  if (asked === word) return true;
  if (!canBeNear(asked) || !canBeNear(word)) return false;
  return stemOf(asked) === stemOf(word) || isMistyped(asked, word);
}

/** Whether a word has forms and can be mistyped. */
export function canBeNear(word: string): boolean {
  return !/[0-9]|\p{N}/u.test(word);
}

/** How many typing errors may make one of two words of these lengths into the other. */
export function errorsAllowed(length: number, otherLength: number): 0 | 1 | 2 {
  const shorter = Math.min(length, otherLength);
  if (shorter >= LETTERS_FOR_TWO_ERRORS) return 2;
  return shorter >= LETTERS_FOR_ERROR ? 1 : 0;
}

/**
 * Whether typing errors make one word of the other. An error is a letter too many, too few or a wrong one, or two that
 * changed places. The first letter is right or has changed places: hardly anybody mistypes it, and `live` is not `five`.
 */
export function isMistyped(asked: string, word: string): boolean {
  const allowed = errorsAllowed(asked.length, word.length);
  if (allowed === 0 || Math.abs(asked.length - word.length) > allowed) return false;
  if (isOneErrorApart(asked, word)) return true;
  return allowed === 2 && asked[0] === word[0] && distance(asked, word) <= 2;
}

function isOneErrorApart(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  let start = 0;
  while (start < shorter && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const left = one.length - start - end;
  const otherLeft = other.length - start - end;
  if (left <= 1 && otherLeft <= 1) return start > 0;
  return left === 2 && otherLeft === 2 && one[start] === other[start + 1] && one[start + 1] === other[start];
}

const IRREGULAR: Readonly<Record<string, string>> = {
  children: 'child',
  feet: 'foot',
  men: 'man',
  mice: 'mouse',
  people: 'person',
  teeth: 'tooth',
  women: 'woman',
};
/** What would be taken for a form of another word. */
const NO_FORM: ReadonlySet<string> = new Set(['news']);

/** What the forms of an English word have in common; it need not be a word. */
export function stemOf(word: string): string {
  if (Object.hasOwn(IRREGULAR, word)) return stemOf(IRREGULAR[word] ?? word);
  if (!/^[a-z]{4,}$/.test(word) || NO_FORM.has(word)) return word;
  const stem = withoutTense(singularOf(word));
  if (stem.length <= 3) return stem;
  if (stem.length > 4 && stem.endsWith('e')) return stem.slice(0, -1);
  return stem.endsWith('y') ? `${stem.slice(0, -1)}i` : stem;
}

function singularOf(word: string): string {
  if (!word.endsWith('s') || /(?:ss|us|is)$/.test(word)) return word;
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  return word.slice(0, /(?:ss|x|zz|ch|sh)es$/.test(word) ? -2 : -1);
}

function withoutTense(word: string): string {
  const [, base = ''] = /^(.*[aeiouy].*)(?:ing|(?<!e)ed)$/.exec(word) ?? [];
  if (base.length < 4) return word;
  return /(?:([^aeiouylsz])\1)$/.test(base) ? base.slice(0, -1) : base;
}
