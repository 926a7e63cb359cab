import { errorsOf, type HttpError, toHttpError } from '../../../http/errors';
import type { SchemaFault } from '../../../http/faults';
import { FIELDS, SETUP_CONFIG } from '../../migration/mapping/fields';
import type { V1Resource } from '../../migration/mapping/routes';

/** The errors of v1 that the emulator answers, with their HTTP status. Titles are those of the released clients' tests. */
export const V1_ERRORS = {
  NotFound: { status: 404, title: 'Not Found' },
  NoMethod: { status: 400, title: 'No Method Specified' },
  NotSupported: { status: 405, title: 'Method or parameter not supported' },
  CallFailed: { status: 500, title: 'Call Failed' },
  CallUnavailable: { status: 503, title: 'Call Unavailable' },
  CallInvalid: { status: 400, title: 'Call Invalid' },
  ParameterMissing: { status: 400, title: 'Missing Parameter' },
  ParameterEmpty: { status: 400, title: 'Empty Parameter' },
  ParameterEncodingError: { status: 400, title: 'Parameter Encoding Error' },
  ParameterInvalid: { status: 400, title: 'Invalid Parameter' },
  PreconditionFailed: { status: 412, title: 'Precondition Failed' },
  PermissionDenied: { status: 403, title: 'Permission Denied' },
  DigestInvalid: { status: 400, title: 'Digest Invalid' },
  FileUploadFailed: { status: 400, title: 'File Upload Failed' },
  FileSizeInvalid: { status: 400, title: 'File Size Invalid' },
  InternalError: { status: 500, title: 'Internal Error' },
  ApiKeyMissing: { status: 400, title: 'User Key Missing' },
  ApiKeyInvalid: { status: 400, title: 'User Key Invalid' },
  TimestampMissing: { status: 400, title: 'Timestamp Missing' },
  TimestampInvalid: { status: 400, title: 'Timestamp Invalid' },
  TimestampExpired: { status: 403, title: 'Timestamp Expired' },
  NonceMissing: { status: 400, title: 'Nonce Missing' },
  NonceInvalid: { status: 400, title: 'Nonce Invalid' },
  SignatureMissing: { status: 400, title: 'Signature Missing' },
  SignatureInvalid: { status: 400, title: 'Signature Invalid' },
  RateLimitExceeded: { status: 429, title: 'Rate Limit Exceeded' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly title: string }>>;

type V1Code = keyof typeof V1_ERRORS;

/** Makes an error of v1. An answer has one, with a sentence on the remedy. */
export const v1Error = errorsOf(V1_ERRORS);

export function isV1Error({ problems: [problem] }: HttpError): boolean {
  return Object.hasOwn(V1_ERRORS, problem?.code ?? '');
}

/** The first of several problems, without foreign text. @param resource whose parameters are meant. */
export function toV1Error(thrown: unknown, resource?: V1Resource): HttpError {
  const error = toHttpError(thrown);
  if (isV1Error(error)) return error;
  const { status, problems, headers, cause } = error;
  const [problem = { code: '', description: '' }] = problems;
  const code = status === 503 ? 'CallUnavailable' : (V1_CODES[problem.code] ?? 'CallFailed');
  const said =
    resource && problem.fault
      ? parameterFault(resource, problem.fault)
      : ([code, problem.description] as const);
  return v1Error(...said, { status, headers, cause });
}

/** The codes of v1 for those of v2; anything else that fails in v2 is `CallFailed` in v1. */
const V1_CODES: Readonly<Record<string, V1Code>> = {
  server_error: 'InternalError',
  not_found: 'NotFound',
  invalid_body: 'ParameterInvalid',
  invalid_parameter: 'ParameterInvalid',
  invalid_path: 'ParameterEncodingError',
  bad_request: 'CallInvalid',
  body_too_large: 'FileSizeInvalid',
  upload_expired: 'FileUploadFailed',
  upload_finished: 'FileUploadFailed',
  conflict: 'PreconditionFailed',
  rate_limit_exceeded: 'RateLimitExceeded',
};

function parameterFault(resource: V1Resource, fault: SchemaFault): readonly [V1Code, string] {
  const place = fault.path.map(String);
  if (fault.kind === 'unknown') {
    const name = parameterAt(resource, [...place, fault.name]);
    return ['ParameterInvalid', `${name} is not a parameter of this call.`];
  }
  const code = fault.reason === 'missing' ? 'ParameterMissing' : 'ParameterInvalid';
  return [code, `${parameterAt(resource, place)} ${fault.sentence}.`];
}

function parameterAt(resource: V1Resource, place: readonly string[]): string {
  const path = place.join('.');
  const isAt = (request: string) => path === request || path.startsWith(`${request}.`);
  const field = FIELDS[resource].find(({ request }) => request !== undefined && isAt(request));
  if (field) return field.v1;
  if (isAt('metadata.custom_params')) return ['custom', ...place.slice(2)].join('.');
  return isAt(SETUP_CONFIG) ? place.slice(2).join('.') : path;
}
