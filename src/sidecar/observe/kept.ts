/**
 * Answers what `make` made, and keeps it for `ms`: whoever asks meanwhile, or while it is being made, gets the same. A
 * failure is not kept.
 */
export function kept<Value>(ms: number, now: () => number, make: () => Promise<Value>): () => Promise<Value> {
  let last: { readonly at: number; readonly value: Promise<Value> } | undefined;
  return () => {
    if (last && now() - last.at < ms) return last.value;
    const value = make();
    const made = { at: now(), value };
    last = made;
    value.catch(() => {
      if (last === made) last = undefined;
    });
    return value;
  };
}
