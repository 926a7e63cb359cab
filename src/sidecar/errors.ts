import { ERRORS } from '../api/errors';
import { errorsOf, HTTP_ERRORS } from '../http/errors';
import type { ErrorEntry } from '../http/faults';

export const ALL_ERRORS = { ...HTTP_ERRORS, ...ERRORS };
export type ErrorCode = keyof typeof ALL_ERRORS;

/** Empty for an error whose sentence varies. */
export function sentenceOf(code: ErrorCode): string {
  const { says = '' }: ErrorEntry = ALL_ERRORS[code];
  return says;
}

export const apiError = errorsOf(ALL_ERRORS);
