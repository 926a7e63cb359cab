import { type ServerResponse, STATUS_CODES } from 'node:http';
import { constants } from 'node:os';
import type { ErrorEntry, Problem } from './faults';

export type { Problem };

/** The one error that becomes an answer. */
export class HttpError extends Error {
  readonly status: number;
  readonly problems: readonly Problem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    problems: Problem | readonly Problem[],
    options: { cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    const list: readonly Problem[] = 'code' in problems ? [problems] : problems;
    super(list.map((problem) => problem.code).join(', '), { cause: options.cause });
    this.name = 'HttpError';
    this.status = status;
    this.problems = list;
    this.headers = options.headers ?? {};
  }
}

export const HTTP_ERRORS = {
  invalid_path: {
    status: 400,
    when: 'The path cannot be decoded.',
    says: 'The path holds a percent-encoding that is not UTF-8. Encode each part of it once.',
  },
  invalid_query: {
    status: 400,
    when: 'A query parameter is unknown, or has an invalid value.',
  },
  invalid_body: {
    status: 400,
    when: 'A field is missing, has the wrong form, or needs another field. There is one error for each field.',
  },
  unknown_field: {
    status: 400,
    when: 'The request has an unknown field, most likely a misspelled one.',
  },
  malformed_json: {
    status: 400,
    when: 'The body is not JSON in UTF-8. The answer does not quote it.',
    says: 'The body is not valid JSON. Send one JSON object.',
  },
  bad_request: {
    status: 400,
    when: 'The request is not valid HTTP.',
    says: 'The request is not valid HTTP.',
  },
  https_required: {
    status: 400,
    when: 'The service speaks HTTPS, but the request came over plain HTTP.',
    says: 'This port speaks HTTPS: call it with https://.',
  },
  client_certificate_required: {
    status: 401,
    when: 'The service asks for client certificates (`PACKAGERDRMAPI_TLSCLIENTCA`), and the client sent none.',
    says: 'Send a client certificate that an authority of this service has signed.',
    headers: { connection: 'close' },
  },
  client_certificate_refused: {
    status: 403,
    when: 'The client certificate is not valid. The description says why.',
    headers: { connection: 'close' },
  },
  not_found: {
    status: 404,
    when: 'There is nothing at the path.',
    says: 'There is nothing at this path.',
  },
  method_not_allowed: {
    status: 405,
    when: 'The path accepts other methods; the header `allow` names them.',
  },
  request_timeout: {
    status: 408,
    when: 'The head of the request did not arrive within 10 seconds, or its body within a minute (of a batch: 30 seconds).',
    says: 'The request did not arrive in time.',
    headers: { connection: 'close' },
  },
  body_too_large: {
    status: 413,
    when: 'The body is larger than this route accepts.',
  },
  unsupported_media_type: {
    status: 415,
    when: 'The body has another content type, or an unknown content encoding.',
  },
  request_header_fields_too_large: {
    status: 431,
    when: 'The headers are larger than 16 KiB.',
    says: 'The headers are larger than this service accepts.',
  },
  server_error: {
    status: 500,
    when: "The service failed. Its log has the cause under the answer's `x-request-id`.",
    says: 'The service failed. The cause is in its log under the request id of this answer.',
  },
  too_many_connections: {
    status: 503,
    when: 'All places for connections are taken by clients with a valid API key. The header `retry-after` says when to try again.',
    says: 'All places for connections are taken by other clients. Try again in a moment.',
    headers: { 'retry-after': '1' },
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

type Catalogue = Readonly<Record<string, Omit<ErrorEntry, 'when'>>>;
type Fixed<Table extends Catalogue> = {
  [Code in keyof Table]: Table[Code] extends { readonly says: string } ? Code : never;
}[keyof Table];

interface ErrorOptions {
  readonly cause?: unknown;
  /** In addition to those of the catalogue. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

/** Makes errors by code. The description is left out where the catalogue has the sentence. */
export function errorsOf<const Table extends Catalogue>(table: Table) {
  function make(code: Fixed<Table>, description?: undefined, options?: ErrorOptions): HttpError;
  function make(code: keyof Table, description: string, options?: ErrorOptions): HttpError;
  function make(code: keyof Table, description?: string, options: ErrorOptions = {}): HttpError {
    const { status = 500, says = '', headers }: Partial<ErrorEntry> = table[code] ?? {};
    return new HttpError(
      options.status ?? status,
      { code: String(code), description: description ?? says },
      { cause: options.cause, headers: { ...headers, ...options.headers } },
    );
  }
  return make;
}

export const httpError = errorsOf(HTTP_ERRORS);

/** By body-parser's type. Its messages quote the request, so none of them is passed on. */
const FOREIGN: Readonly<Record<string, (limit: number | undefined) => HttpError>> = {
  'entity.parse.failed': () => httpError('malformed_json'),
  'entity.too.large': (limit) =>
    httpError(
      'body_too_large',
      `The body is larger than this route accepts${limit === undefined ? '' : `: ${limit / 1024} KiB`}.`,
    ),
  'encoding.unsupported': () =>
    httpError('unsupported_media_type', 'Send the body without that content-encoding.'),
  'charset.unsupported': () => httpError('unsupported_media_type', 'Send the body as UTF-8.'),
  'request.size.invalid': () =>
    httpError('invalid_body', 'The body is not as long as its content-length says.'),
  'request.aborted': () => httpError('invalid_body', 'The request ended before its body did.'),
};

/** Foreign errors keep a 4xx status at most: their texts may quote a body or a file, and are only logged. */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  const foreign = FOREIGN[textProperty(thrown, 'type') ?? ''];
  if (foreign) return foreign(numberProperty(thrown, 'limit'));
  if (textProperty(thrown, 'name') === 'URIError') return httpError('invalid_path');
  const status = numberProperty(thrown, 'status');
  // An error of zlib has a number.
  if (status === 400 && numberProperty(thrown, 'errno') !== undefined)
    return httpError('invalid_body', 'The body is not encoded as its content-encoding says.');
  if (status !== undefined && status >= 400 && status < 500) {
    const name = STATUS_CODES[status] ?? 'Bad Request';
    const code = name.toLowerCase().replaceAll(/[^a-z]+/g, '_');
    return new HttpError(status, { code, description: `The request can't be read: ${name.toLowerCase()}.` });
  }
  return httpError('server_error', undefined, { cause: thrown });
}

export function errorBody(error: HttpError): { errors: Problem[] } {
  return { errors: error.problems.map(({ code, description }) => ({ code, description })) };
}

/** The connection ends with the answer. */
export function answerAndClose(response: ServerResponse, error: HttpError): void {
  const { headers, body } = closingAnswer(error);
  response.writeHead(error.status, headers).end(body);
}

/** For connections without a request to answer. */
export function rawAnswer(error: HttpError): string {
  const { headers, body } = closingAnswer(error);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n${body}`;
}

function closingAnswer(error: HttpError) {
  const body = JSON.stringify(errorBody(error));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    ...error.headers,
    connection: 'close',
  };
  return { headers, body };
}

/** Plain data for a log line, without messages that quote the parsed text. JSON leaves out what is undefined. */
export function describeThrown(thrown: unknown, depth = 0): Record<string, unknown> {
  const name = textProperty(thrown, 'name') ?? typeof thrown;
  const cause = property(thrown, 'cause');
  return {
    name,
    code: systemCode(thrown),
    syscall: textProperty(thrown, 'syscall'),
    // V8's JSON messages quote the text they choke on, which may be key material.
    message: name === 'SyntaxError' ? undefined : textProperty(thrown, 'message'),
    stack: framesOf(textProperty(thrown, 'stack')),
    cause: cause === undefined || depth > 3 ? undefined : describeThrown(cause, depth + 1),
  };
}

const NUMBERS = Object.entries(constants.errno);

/** The code of a system error, as `ENOENT`. Not `instanceof Error`: that fails across realms. */
export function systemCode(thrown: unknown): string | undefined {
  const code = textProperty(thrown, 'code');
  if (!code?.startsWith('Unknown system error')) return code;
  // Node has no name for ESTALE of a network file system, nor for EDQUOT.
  return NUMBERS.find(([, number]) => number === -(numberProperty(thrown, 'errno') ?? 0))?.[0];
}

function framesOf(stack: string | undefined): string[] | undefined {
  return stack
    ?.split('\n')
    .filter((line) => line.startsWith('    at '))
    .map((line) => line.trim());
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** A text in something thrown, as the `path` of a system error; undefined: there is none. */
export function textProperty(value: unknown, name: string): string | undefined {
  const found = property(value, name);
  return typeof found === 'string' ? found : undefined;
}

export function numberProperty(value: unknown, name: string): number | undefined {
  const found = property(value, name);
  return typeof found === 'number' ? found : undefined;
}
