import type { Checked } from '../bytes';
import type { Problem } from '../finding';

/** Thrown within this house, for `attempt` and `checked` to catch. Descriptions go on after the name of the document. */
class DocumentFault extends Error {
  constructor(readonly faults: readonly [Problem, ...Problem[]]) {
    super(faults[0].code);
  }
}

export function refuse(code: string, description: string, ...more: readonly Problem[]): never {
  throw new DocumentFault([{ code, description }, ...more]);
}

export function refuseChoice(description: string): never {
  return refuse('cpix_choice', description);
}

export function unusable(description: string): never {
  return refuse('cpix_not_usable', description);
}

/** The fault continues `sentence`. @throws faults */
export function usable<Value>(read: Checked<Value>, sentence: string): Value {
  return read.ok ? read.value : unusable(`${sentence} ${read.problem.description}`);
}

export type Attempt<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly faults: readonly [Problem, ...Problem[]] };

export function attempt<Value>(work: () => Value): Attempt<Value> {
  try {
    return { ok: true, value: work() };
  } catch (thrown) {
    if (thrown instanceof DocumentFault) return { ok: false, faults: thrown.faults };
    throw thrown;
  }
}

export function checked<Value>(work: () => Value): Checked<Value> {
  const made = attempt(work);
  return made.ok ? made : { ok: false, problem: made.faults[0] };
}
