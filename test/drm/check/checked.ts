import { checkInput } from '../../../src/api/check';
import { compareInputs } from '../../../src/drm/check/compare';
import type { Finding } from '../../../src/drm/finding';

/** Inputs by their names. */
export type Inputs = Readonly<Record<string, string | Buffer>>;

export function checkAll(inputs: Inputs, reveal = false) {
  return Object.entries(inputs).map(([name, value]) => checkInput(value, { name, reveal }));
}

export function compare(inputs: Inputs, reveal = false) {
  return compareInputs(checkAll(inputs, reveal), { reveal });
}

/** The sentences, with how bad each is. */
export function said(inputs: Inputs): string[] {
  return compare(inputs).faults.map((fault) => `${brief([fault])}: ${fault.description}`);
}

export function codes(inputs: Inputs): string[] {
  return brief(compare(inputs).faults);
}

/** Findings in short: `E` for an error or `W` for a warning, its code and, where it has one, its field. */
export function brief(faults: readonly Finding[]): string[] {
  return faults.map(({ severity, code, field = '' }) =>
    `${severity === 'error' ? 'E' : 'W'} ${code} ${field}`.trimEnd(),
  );
}
