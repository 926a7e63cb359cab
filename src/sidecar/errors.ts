import { ERRORS } from '../api/errors';
import { errorsOf, HTTP_ERRORS } from '../http/errors';
import type { ErrorEntry } from '../http/faults';

/** Every error that the sidecar answers, by its code. */
export const ALL_ERRORS = { ...HTTP_ERRORS, ...ERRORS };
export type ErrorCode = keyof typeof ALL_ERRORS;

/** The sentence of an error that is always the same; empty for others. */
export function sentenceOf(code: ErrorCode): string {
  const { says = '' }: ErrorEntry = ALL_ERRORS[code];
  return says;
}

/** Makes an error of the key-file API by its name. */
export const apiError = errorsOf(ALL_ERRORS);
