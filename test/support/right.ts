/** A result that must be right; the test fails with what is wrong with it. */
export function right<Result extends { readonly ok: boolean }>(result: Result) {
  if (!result.ok) throw new Error(JSON.stringify(result));
  return result as Extract<Result, { readonly ok: true }>;
}
