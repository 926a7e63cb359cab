/** A text to look for: the pieces between its `*`s. One piece means no `*`. */
export type Pattern = readonly string[];

/** A text in one letter case, with each letter and its accents as one character: `É` and `E´` are both `é`. */
export function foldCase(text: string): string {
  return text.toLowerCase().normalize('NFC');
}

/** Letters that no decomposition of Unicode resolves, as they are written without their own key. */
const LETTERS: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ı: 'i',
  ς: 'σ',
};
const SPECIAL_LETTERS = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g');

/** A text in one letter case and without accents: `Über` is `uber`. */
export function foldLetters(text: string): string {
  // Vowel signs of other scripts are no accents: only the marks of Latin, Greek and Cyrillic letters go.
  const bare = text
    .toLowerCase()
    .normalize('NFD')
    .replaceAll(/[\u0300-\u036f]/g, '');
  return bare.replaceAll(SPECIAL_LETTERS, (letter) => LETTERS[letter] ?? letter);
}

export function wordsOf(folded: string): readonly string[] {
  return folded.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/**
 * Whether a text has the pattern as whole words: `live` is in "live show", not in "alive"; `liv*` is in both "live"
 * and "liver". Both are folded alike. The time is proportional to the text for each piece, whatever the pattern.
 */
export function hasPattern(text: string, pattern: Pattern): boolean {
  if (pattern.every((piece) => piece === '')) return pattern.length > 1 || text === '';
  let from = 0;
  for (const [index, piece] of pattern.entries()) {
    // The earliest occurrence is the one that leaves most for the rest.
    const whole = { start: index === 0, end: index === pattern.length - 1 };
    const end = piece === '' ? from : endOfPiece(text, piece, from, whole);
    if (end === undefined) return false;
    from = end;
  }
  return true;
}

/** Where the first occurrence ends that starts, or ends, where a word does. */
function endOfPiece(text: string, piece: string, from: number, whole: { start: boolean; end: boolean }) {
  for (let at = text.indexOf(piece, from); at !== -1; at = text.indexOf(piece, at + 1)) {
    const end = at + piece.length;
    if (!(whole.start && isWithinWord(text, at)) && !(whole.end && isWithinWord(text, end))) return end;
  }
  return undefined;
}

const WITHIN_WORD = /(?<=[\p{L}\p{N}\p{M}])[\p{L}\p{N}\p{M}]/uy;

/** Whether the place between two characters is within a word. */
function isWithinWord(text: string, at: number): boolean {
  WITHIN_WORD.lastIndex = at;
  return WITHIN_WORD.test(text);
}
