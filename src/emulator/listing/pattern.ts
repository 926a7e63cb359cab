import type { Pattern } from './query';

/**
 * Whether a text holds the pattern as whole words, in any letter case: `live` is in "Live show", not in "Alive"; `liv*`
 * is in both "live" and "liver". It takes time in proportion to the text for each piece, whatever the pattern.
 */
export function holdsPattern(text: string, pattern: Pattern): boolean {
  const folded = text.toLowerCase();
  const pieces = pattern.map((piece) => piece.toLowerCase());
  if (pieces.every((piece) => piece === '')) return pieces.length > 1 || folded === '';
  const last = pieces.length - 1;
  let from = 0;
  for (const [index, piece] of pieces.entries()) {
    if (piece === '') continue;
    const end = findPiece(folded, piece, from, { opens: index === 0, closes: index === last });
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
    const opens = !whole.opens || !(isWordPart(text, at - 1) && isWordPart(text, at));
    const closes = !whole.closes || !(isWordPart(text, end - 1) && isWordPart(text, end));
    if (opens && closes) return end;
  }
  return undefined;
}

function isWordPart(text: string, at: number): boolean {
  return /[\p{L}\p{N}]/u.test(text[at] ?? '');
}
