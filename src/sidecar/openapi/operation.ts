import {
  type Answered,
  describeOperation,
  failures,
  type Operation,
  type OperationOptions,
  type Told,
} from '../../http/openapi';
import { ALL_ERRORS, type ErrorCode, sentenceOf } from '../errors';

type Method = 'get' | 'post' | 'delete';
export type PathItem = { readonly [method in Method]?: Operation };

interface SidecarOperation extends OperationOptions {
  /** `key` unless told. */
  readonly access?: Access;
  /** Beside those that any request may be answered with. */
  readonly errors: readonly AnsweredError[];
}

/** The variables that hold address and API key in the commands; the command line reads them, too. */
export const URL_VARIABLE = 'PACKAGERDRM_URL';
export const API_KEY_VARIABLE = 'PACKAGERDRM_APIKEY';

/** An operation of the sidecar, with what any of them may be answered with. */
export function operation({ access = 'key', errors, ...options }: SidecarOperation): Operation {
  const isGuarded = access === 'key';
  return describeOperation(options, {
    security: isGuarded ? [{ apiKey: [] }] : [],
    errors: errorAnswers(errors, access),
    command: {
      urlVariable: URL_VARIABLE,
      headers: isGuarded ? [`x-api-key: $${API_KEY_VARIABLE}`] : [],
    },
  });
}

/** An error that an operation answers, with what is another there than in the catalogue. */
export type AnsweredError =
  | ErrorCode
  | { readonly code: ErrorCode; readonly says?: string; readonly status?: number };

/** What an operation asks of its caller: an API key, a client certificate at most, or nothing. */
export type Access = 'key' | 'open' | 'probe';

/** What any request may be answered with. */
const ALWAYS: readonly ErrorCode[] = [
  'bad_request',
  'https_required',
  'request_timeout',
  'request_header_fields_too_large',
  'server_error',
];

/** What any request but a probe's may be answered with: it needs a client certificate, and a place. */
const BUT_FOR_PROBES: readonly ErrorCode[] = [
  'client_certificate_required',
  'client_certificate_refused',
  'too_many_connections',
];

/** What any request to `/api` may be answered with, besides. */
const BEHIND_THE_KEY: readonly ErrorCode[] = ['invalid_path', 'unauthorized', 'too_many_attempts'];

const WITH_RETRY_AFTER: readonly ErrorCode[] = [
  'too_many_attempts',
  'too_many_batches',
  'too_many_connections',
];

/** The errors of an operation, one answer a status. */
function errorAnswers(own: readonly AnsweredError[], access: Access): Record<string, Answered> {
  const all = [
    ...own,
    ...(access === 'key' ? BEHIND_THE_KEY : []),
    ...(access === 'probe' ? [] : BUT_FOR_PROBES),
    ...ALWAYS,
  ];
  return failures(all.map(told), WITH_RETRY_AFTER);
}

/** The answer that is one error. */
export function errorAnswer(code: ErrorCode): Answered {
  const [answer] = Object.values(failures([told(code)], WITH_RETRY_AFTER));
  return answer as Answered;
}

function told(error: AnsweredError): Told {
  const { code, ...other } = typeof error === 'string' ? { code: error } : error;
  const { status, when } = ALL_ERRORS[code];
  return { code, status, when, says: sentenceOf(code), ...other };
}
