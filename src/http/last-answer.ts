import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Problem } from './errors';
import { STOPPED } from './intake';

/** An answer after which the connection ends. */
export interface LastAnswer extends Problem {
  readonly status: number;
}

export const USE_HTTPS: LastAnswer = {
  status: 400,
  code: 'https_required',
  description: 'This port speaks HTTPS: call it with https://.',
};

export const BUSY: LastAnswer = {
  status: 503,
  code: 'too_many_connections',
  description: 'All places for connections are taken by other clients. Try again in a moment.',
};

const NOT_HTTP: LastAnswer = {
  status: 400,
  code: 'bad_request',
  description: 'The request is not valid HTTP.',
};

export const NO_HOST: LastAnswer = {
  status: 400,
  code: 'bad_request',
  description: 'The request has no Host header.',
};

export const NO_TUNNEL: LastAnswer = {
  status: 400,
  code: 'bad_request',
  description: 'This service is no proxy: it knows no CONNECT.',
};

/** Why a request can't be read. */
export type UnreadableCause = 'request_timeout' | 'pipelined' | 'not_http';

interface Unreadable {
  readonly cause: UnreadableCause;
  readonly answer: LastAnswer;
}

/** What Node's parser refuses, by its code. */
const UNREADABLE: Readonly<Record<string, Unreadable>> = {
  HPE_HEADER_OVERFLOW: {
    cause: 'not_http',
    answer: {
      status: 431,
      code: 'request_header_fields_too_large',
      description: 'The headers are larger than this service takes.',
    },
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    cause: 'request_timeout',
    answer: { status: 408, code: 'request_timeout', description: 'The request did not arrive in time.' },
  },
  [STOPPED]: {
    cause: 'pipelined',
    answer: {
      status: 503,
      code: 'too_many_requests_ahead',
      description: 'Too many requests were sent before their answers were read. Send the rest again.',
    },
  },
};

/** What to tell of a request that Node's parser refuses with this code. */
export function unreadable(code: string | undefined): Unreadable {
  return UNREADABLE[code ?? ''] ?? { cause: 'not_http', answer: NOT_HTTP };
}

/** Answers a request by it. */
export function answerThrough(response: ServerResponse, { status, code, description }: LastAnswer): void {
  const body = JSON.stringify({ errors: [{ code, description }] });
  response.statusCode = status;
  response.setHeader('connection', 'close');
  response.setHeader('content-type', CONTENT_TYPE);
  response.setHeader('content-length', Buffer.byteLength(body));
  if (status === 503) response.setHeader('retry-after', '1');
  response.end(body);
}

/** It as the text of a whole response, where there is no request to answer. */
export function wholeAnswer({ status, code, description }: LastAnswer): string {
  const body = JSON.stringify({ errors: [{ code, description }] });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${CONTENT_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

const CONTENT_TYPE = 'application/json; charset=utf-8';
