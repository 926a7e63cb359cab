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

export type V1Code = keyof typeof V1_ERRORS;

/** An error of v1: one at a time, with a sentence that says what to do. */
export class V1Error extends Error {
  readonly code: V1Code;
  readonly status: number;
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: V1Code,
    message: string,
    options: { status?: number; headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'V1Error';
    this.code = code;
    this.status = options.status ?? V1_ERRORS[code].status;
    this.title = V1_ERRORS[code].title;
    this.headers = options.headers ?? {};
  }
}

/** The body of an error. */
export function v1ErrorBody({ code, title, message }: V1Error) {
  return { status: 'error', code, title, message };
}
