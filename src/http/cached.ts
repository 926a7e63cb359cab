/**
 * Runs once for all simultaneous callers, and keeps the result until `ms` after its start. A failure goes to all who
 * share the run, and is not kept. `now` returns monotonic milliseconds.
 */
export function cached<Value>(
  ms: number,
  now: () => number,
  run: () => Promise<Value>,
): () => Promise<Value> {
  let last: { readonly began: number; readonly value: Promise<Value>; underWay: boolean } | undefined;
  return () => {
    if (last && (last.underWay || now() - last.began < ms)) return last.value;
    const made = { began: now(), value: run(), underWay: true };
    last = made;
    made.value.then(
      () => {
        made.underWay = false;
      },
      () => {
        last = undefined;
      },
    );
    return made.value;
  };
}

/** Runs once, and again only after a failure. */
export function memoized<Value>(run: () => Promise<Value>): () => Promise<Value> {
  return cached(Infinity, () => 0, run);
}
