import { checkInput } from '../../../src/api/check';
import { compareInputs } from '../../../src/drm/check/compare';

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
  return compare(inputs).faults.map(
    ({ severity, code, description }) => `${severity} ${code}: ${description}`,
  );
}

export function codes(inputs: Inputs): string[] {
  return compare(inputs).faults.map(({ severity, code }) => `${severity} ${code}`);
}
