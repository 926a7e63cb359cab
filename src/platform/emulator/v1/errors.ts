import { toHttpError } from '../../../http/errors';
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
  ItemAlreadyExists: { status: 409, title: 'Item Already Exists' },
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

/** An error of v1: one at a time, with a sentence that says what to do. */
export class V1Error extends Error {
  override readonly name = 'V1Error';
  readonly status: number;
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: V1Code,
    message: string,
    options: { status?: number; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.status = options.status ?? V1_ERRORS[code].status;
    this.title = V1_ERRORS[code].title;
    this.headers = options.headers ?? {};
  }
}

/**
 * The error of v1 for whatever was thrown; of several problems the first. Nothing foreign is quoted.
 * @param resource whose parameters are meant, when the call was read.
 */
export function toV1Error(thrown: unknown, resource?: V1Resource): V1Error {
  if (thrown instanceof V1Error) return thrown;
  const { status, problems, headers, cause } = toHttpError(thrown);
  const [problem] = problems;
  const options = { status, headers, cause };
  if (resource && problem?.fault) return parameterError(resource, problem.fault, options);
  const code = status === 503 ? 'CallUnavailable' : (V1_CODES[problem?.code ?? ''] ?? 'CallFailed');
  return new V1Error(code, problem?.description ?? '', options);
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
};

function parameterError(
  resource: V1Resource,
  fault: SchemaFault,
  options: ConstructorParameters<typeof V1Error>[2],
): V1Error {
  const place = fault.path.map(String);
  if (fault.kind === 'unknown') {
    const name = parameterAt(resource, [...place, fault.name]);
    return new V1Error('ParameterInvalid', `${name} is not a parameter of this call.`, options);
  }
  const code = fault.reason === 'missing' ? 'ParameterMissing' : 'ParameterInvalid';
  return new V1Error(code, `${parameterAt(resource, place)} ${fault.sentence}.`, options);
}

/** The parameter that fills a place in a body of v2. */
function parameterAt(resource: V1Resource, place: readonly string[]): string {
  const path = place.join('.');
  const isAt = (request: string) => path === request || path.startsWith(`${request}.`);
  const field = FIELDS[resource].find(({ request }) => request !== undefined && isAt(request));
  if (field) return field.v1;
  if (isAt('metadata.custom_params')) return ['custom', ...place.slice(2)].join('.');
  return isAt(SETUP_CONFIG) ? place.slice(2).join('.') : path;
}
