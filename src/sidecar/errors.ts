import { ERRORS } from '../api/errors';
import { errorsOf, HTTP_ERRORS } from '../http/errors';

export const ALL_ERRORS = { ...HTTP_ERRORS, ...ERRORS };
export type ErrorCode = keyof typeof ALL_ERRORS;

export const apiError = errorsOf(ALL_ERRORS);
