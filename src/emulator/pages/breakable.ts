import { type Content, html } from '../../http/html';

/** A piece longer than this may be broken within: on a phone it would be wider than its column. */
const LONGEST_PIECE = 20;

/**
 * An address with the places where a line may end: after slashes and before the query's parts. A piece between them is
 * broken only when it is long, after a sign if there is one.
 */
export function breakable(address: string): Content {
  const pieces = address.split(/(?<=\/)(?!\/)|(?=[?&])/).flatMap(shortened);
  return pieces.map((piece, place) => (place === 0 ? piece : html`<wbr>${piece}`));
}

function shortened(piece: string): string[] {
  if (piece.length <= LONGEST_PIECE) return [piece];
  return piece.split(/(?<=[-_.=:])/).flatMap((part) => part.match(/.{1,20}/gsu) ?? []);
}
