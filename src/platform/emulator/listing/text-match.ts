import { isNear } from './near-words';
import type { Pattern } from './query';
import { foldCase, foldLetters, holdsPattern, wordsOf } from './words';

/** A word that a text has to have, or has to have a word that begins with it, and so on. Folded. */
export interface WordMatch {
  readonly word: string;
  readonly as: 'same' | 'near' | 'begins' | 'ends' | 'contains';
}

/** What is asked of the texts of a field. */
export interface TextMatch {
  /** Whether a text is what is asked for. */
  readonly holds: (text: string) => boolean;
  /** Each of them is matched by a word of every text that is asked for. */
  readonly words: readonly WordMatch[];
  /**
   * What makes sure of a text with such words: nothing more, that the words follow each other, or `holds` alone.
   */
  readonly decidedBy: 'words' | 'order of words' | 'text';
}

/** Whether a word of a text, folded, is what is asked for. */
export function isMatched({ word, as }: WordMatch, candidate: string): boolean {
  switch (as) {
    case 'same':
      return candidate === word;
    case 'near':
      return isNear(word, candidate);
    case 'begins':
      return candidate.startsWith(word);
    case 'ends':
      return candidate.endsWith(word);
    case 'contains':
      return candidate.includes(word);
  }
}

/** How the words of a field are compared. */
interface Comparison {
  /** For fields that are searched by near words: accents don't count. */
  readonly isNear: boolean;
  /** Whether other forms of a word and typing errors count as the word. */
  readonly isLenient: boolean;
}

/** The fold of a field's texts: the words of `TextMatch` are words of texts folded so. */
export function foldOf({ isNear }: { readonly isNear: boolean }): (text: string) => string {
  return isNear ? foldLetters : foldCase;
}

/** What `field: pattern` asks of a text. */
export function textMatch(
  { pattern, isQuoted }: { readonly pattern: Pattern; readonly isQuoted: boolean },
  comparison: Comparison,
): TextMatch {
  const fold = foldOf(comparison);
  const pieces = pattern.map(fold);
  const words = wordsOfPattern(pieces);
  if (comparison.isNear && pieces.length === 1 && words.length > 0)
    return nearMatch(words, isQuoted, comparison.isLenient);
  // Whatever the text is, if there is one.
  if (pieces.length > 1 && pieces.every((piece) => piece === ''))
    return { holds: () => true, words: [], decidedBy: 'words' };
  const isOneWord = words.length === 1 && pieces.every((piece) => piece === '' || piece === words[0]?.word);
  return {
    holds: (text) => holdsPattern(fold(text), pieces),
    words,
    decidedBy: isOneWord ? 'words' : 'text',
  };
}

/** What punctuation and spaces stand between the words doesn't count. */
function nearMatch(asked: readonly WordMatch[], isQuoted: boolean, isLenient: boolean): TextMatch {
  const words = isLenient ? asked.map(({ word }): WordMatch => ({ word, as: 'near' })) : asked;
  const inOrder = isQuoted && words.length > 1;
  return {
    holds: (text) => {
      const has = wordsOf(foldLetters(text));
      if (!inOrder) return words.every((word) => has.some((candidate) => isMatched(word, candidate)));
      return hasInOrder(has, words);
    },
    words,
    decidedBy: inOrder ? 'order of words' : 'words',
  };
}

/** Whether words that match these follow each other. */
function hasInOrder(words: readonly string[], wanted: readonly WordMatch[]): boolean {
  return words.some((_word, start) =>
    wanted.every((word, place) => {
      const candidate = words[start + place];
      return candidate !== undefined && isMatched(word, candidate);
    }),
  );
}

/** The words of a pattern; one that a `*` follows or precedes is a part of a word. */
function wordsOfPattern(pieces: Pattern): WordMatch[] {
  return pieces.flatMap((piece, index) => {
    const words = wordsOf(piece);
    return words.map((word, place): WordMatch => {
      const isOpenBefore = index > 0 && place === 0 && piece.startsWith(word);
      const isOpenAfter = index < pieces.length - 1 && place === words.length - 1 && piece.endsWith(word);
      if (isOpenBefore) return { word, as: isOpenAfter ? 'contains' : 'ends' };
      return { word, as: isOpenAfter ? 'begins' : 'same' };
    });
  });
}
