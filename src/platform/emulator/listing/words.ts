import type { Pattern } from './query';

/** A text in one letter case, with each letter and its accents as one character: `É` and `E´` are both `é`. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  return isAscii(lower) ? lower : lower.normalize('NFC');
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

/**
 * A text in one letter case and without accents: `Über` is `uber`. Whatever `foldCase` makes equal stays equal, and
 * words stay apart where they are apart.
 */
export function foldLetters(text: string): string {
  const lower = text.toLowerCase();
  if (isAscii(lower)) return lower;
  // Vowel signs of other scripts are no accents: only the marks of Latin, Greek and Cyrillic letters go.
  const bare = lower.normalize('NFD').replaceAll(/[\u0300-\u036f]/g, '');
  return bare.replaceAll(SPECIAL_LETTERS, (letter) => LETTERS[letter] ?? letter);
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}

/** The words of a folded text, in their order. */
export function wordsOf(folded: string): readonly string[] {
  return folded.match(isAscii(folded) ? /[a-z0-9]+/g : /[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/**
 * Whether a text holds the pattern as whole words: `live` is in "live show", not in "alive"; `liv*` is in both "live"
 * and "liver". Both are folded alike. It takes time in proportion to the text for each piece, whatever the pattern.
 */
export function holdsPattern(text: string, pattern: Pattern): boolean {
  if (pattern.every((piece) => piece === '')) return pattern.length > 1 || text === '';
  const last = pattern.length - 1;
  let from = 0;
  for (const [index, piece] of pattern.entries()) {
    if (piece === '') continue;
    const end = findPiece(text, piece, from, { opens: index === 0, closes: index === last });
    if (end === undefined) return false;
    from = end;
  }
  return true;
}

/** Where the first fitting occurrence ends: the earliest is always the one that leaves most for the rest. */
function findPiece(
  text: string,
  piece: string,
  from: number,
  whole: { opens: boolean; closes: boolean },
): number | undefined {
  for (let at = text.indexOf(piece, from); at !== -1; at = text.indexOf(piece, at + 1)) {
    const end = at + piece.length;
    const opens = !whole.opens || !isInsideWord(text, at);
    const closes = !whole.closes || !isInsideWord(text, end);
    if (opens && closes) return end;
  }
  return undefined;
}

/** Whether the place between two characters is inside a word. */
function isInsideWord(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const isPair = isLowSurrogate(text, at);
  if (isPair) return true;
  return isWordPart(text, isLowSurrogate(text, at - 1) ? at - 2 : at - 1) && isWordPart(text, at);
}

function isLowSurrogate(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  const before = text.charCodeAt(at - 1);
  return code >= 0xdc00 && code <= 0xdfff && before >= 0xd800 && before <= 0xdbff;
}

function isWordPart(text: string, at: number): boolean {
  const code = text.codePointAt(at) ?? 0;
  if (code < 0x80) return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
  return /[\p{L}\p{N}\p{M}]/u.test(String.fromCodePoint(code));
}
