import { type ServerResponse, STATUS_CODES } from 'node:http';
import { errorBody, type HttpError, httpError } from './errors';
import { STOPPED } from './intake';
import { type Exchange, setHeaders } from './shell';

export const USE_HTTPS = httpError('https_required');
export const BUSY = httpError('too_many_connections');
const NOT_HTTP = httpError('bad_request');
export const NO_HOST = httpError('bad_request', 'The request has no Host header.');
export const NO_TUNNEL = httpError(
  'bad_request',
  'This service is not a proxy: it does not support CONNECT.',
);

/** Why a request can't be read. */
export type UnreadableCause = 'request_timeout' | 'pipelined' | 'not_http';

interface Unreadable {
  readonly cause: UnreadableCause;
  readonly answer: HttpError;
}

/** What Node's parser refuses, by its code. */
const UNREADABLE: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: { cause: 'not_http', answer: httpError('request_header_fields_too_large') },
  ERR_HTTP_REQUEST_TIMEOUT: { cause: 'request_timeout', answer: httpError('request_timeout') },
  [STOPPED]: { cause: 'pipelined', answer: httpError('too_many_requests_ahead') },
};

/** What to tell of a request that Node's parser refuses with this code. */
export function unreadable(code: string | undefined): Unreadable {
  return UNREADABLE[code ?? ''] ?? { cause: 'not_http', answer: NOT_HTTP };
}

/** Answers a request with an error after which the connection ends. */
export function answerThrough(response: ServerResponse, error: HttpError): void {
  const body = JSON.stringify(errorBody(error));
  // Of a request that has begun to be served.
  const { locals } = response as ServerResponse & { readonly locals?: Exchange };
  if (locals) setHeaders(response, locals);
  response.statusCode = error.status;
  response.setHeader('connection', 'close');
  response.setHeader('content-type', CONTENT_TYPE);
  response.setHeader('content-length', Buffer.byteLength(body));
  if (error.status === 503) response.setHeader('retry-after', '1');
  response.end(body);
}

/** The same as the text of a whole response, where there is no request to answer. */
export function wholeAnswer(error: HttpError): string {
  const body = JSON.stringify(errorBody(error));
  return [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    `Content-Type: ${CONTENT_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

const CONTENT_TYPE = 'application/json; charset=utf-8';
