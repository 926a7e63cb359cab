/** The place of an id: where it is said to be, or else where it is now, as others change the order as well. */
function placeOf(ids: readonly string[], id: string, place: number): number {
  return ids[place] === id ? place : ids.indexOf(id);
}

/** Moves one by so many places, not beyond the ends. */
export function moved(ids: readonly string[], id: string, place: number, by: number): string[] {
  const from = placeOf(ids, id, place);
  if (from === -1) return [...ids];
  const others = ids.toSpliced(from, 1);
  return others.toSpliced(Math.min(Math.max(from + by, 0), others.length), 0, id);
}

export function without(ids: readonly string[], id: string, place: number): string[] {
  const from = placeOf(ids, id, place);
  return from === -1 ? [...ids] : ids.toSpliced(from, 1);
}

/**
 * Puts some of the ids into another order, on the places that they have together. What is not there any more, or came
 * meanwhile, changes nothing.
 */
export function reordered(ids: readonly string[], wanted: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const id of wanted) left.set(id, (left.get(id) ?? 0) + 1);
  const places: number[] = [];
  const here = new Map<string, number>();
  ids.forEach((id, place) => {
    const count = left.get(id) ?? 0;
    if (count === 0) return;
    left.set(id, count - 1);
    here.set(id, (here.get(id) ?? 0) + 1);
    places.push(place);
  });
  const order = wanted.filter((id) => {
    const count = here.get(id) ?? 0;
    here.set(id, count - 1);
    return count > 0;
  });
  const changed = [...ids];
  places.forEach((place, index) => {
    changed[place] = order[index] ?? ids[place] ?? '';
  });
  return changed;
}
