/**
 * The codes of v1's errors that v2 has codes for; whatever else fails in v2 is `CallFailed` in v1. Of the v2 codes the
 * contract shows `server_error` alone.
 */
const ERROR_CODES: readonly (readonly [v1: string, ...v2: readonly string[]])[] = [
  ['InternalError', 'server_error'],
  ['NotFound', 'not_found'],
  ['NoMethod', 'method_not_allowed'],
  ['ParameterInvalid', 'invalid_body', 'unknown_field', 'invalid_parameter', 'invalid_query'],
  ['ParameterEncodingError', 'invalid_path'],
  ['CallInvalid', 'bad_request', 'malformed_json'],
  ['PermissionDenied', 'site_forbidden', 'permission_insufficient', 'other_site_refused'],
  ['SignatureInvalid', 'unauthorized', 'credential_missing', 'credential_refused'],
  ['FileSizeInvalid', 'body_too_large'],
  ['FileUploadFailed', 'upload_expired', 'upload_finished'],
  ['PreconditionFailed', 'conflict'],
  ['RateLimitExceeded', 'rate_limit_exceeded'],
];

/** The code of v1 for an error of v2. */
export function v1ErrorCode(v2: string): string {
  return ERROR_CODES.find(([, ...codes]) => codes.includes(v2))?.[0] ?? 'CallFailed';
}
