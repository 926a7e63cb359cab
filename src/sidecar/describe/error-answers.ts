import { STATUS_CODES } from 'node:http';
import { ALL_ERRORS, type ErrorCode, sentenceOf } from '../errors';
import { type ApiResponse, schemaRef } from './document';

/** A status with its codes; one whose sentence is another here than elsewhere comes with it. */
export type StatusCodes = readonly [status: number, ...codes: (ErrorCode | readonly [ErrorCode, string])[]];

interface Told {
  readonly code: ErrorCode;
  readonly when: string;
  readonly says: string;
}

/** What any request may be answered with. */
const ALWAYS: readonly StatusCodes[] = [
  [400, 'bad_request', 'https_required'],
  [408, 'request_timeout'],
  [431, 'request_header_fields_too_large'],
  [500, 'server_error'],
  [503, 'too_many_requests_ahead'],
];

/** What any request but a probe's may be answered with when places run out. */
const BEHIND_THE_LIMIT: readonly StatusCodes[] = [[503, 'too_many_connections']];

/** What any request but a probe's may be answered with, besides. */
const BEHIND_THE_CERTIFICATE: readonly StatusCodes[] = [
  [401, 'client_certificate_required'],
  [403, 'client_certificate_refused'],
];

/** What any request to `/api` may be answered with, besides. */
const BEHIND_THE_KEY: readonly StatusCodes[] = [
  [400, 'invalid_path'],
  [401, 'unauthorized'],
  [429, 'too_many_attempts'],
];

/** What an operation asks of its caller: an API key, a client certificate at most, or nothing. */
export type Access = 'key' | 'open' | 'probe';

/** The error answers of an operation, one a status. */
export function errorResponses(own: readonly StatusCodes[], access: Access): Record<string, ApiResponse> {
  const all = [
    ...own,
    ...(access === 'key' ? BEHIND_THE_KEY : []),
    ...(access === 'probe' ? [] : [...BEHIND_THE_CERTIFICATE, ...BEHIND_THE_LIMIT]),
    ...ALWAYS,
  ];
  const statuses = [...new Set(all.map(([status]) => status))].sort((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = all.flatMap(([known, ...more]) => (known === status ? more : []));
      return [status, errorResponse([status, ...codes])];
    }),
  );
}

export function errorResponse([status, ...codes]: StatusCodes): ApiResponse {
  const told = codes.map((code): Told => {
    const [name, says = sentenceOf(name)] = typeof code === 'string' ? [code] : code;
    return { code: name, when: ALL_ERRORS[name].when, says };
  });
  const items = { properties: { code: { enum: told.map(({ code }) => code) } } };
  const schema = { allOf: [schemaRef('Errors'), { properties: { errors: { items } } }] };
  return {
    description: [`${STATUS_CODES[status]}.`, ...told.map(({ code, when }) => `\`${code}\`: ${when}`)].join(
      '\n\n',
    ),
    ...(status === 429 && { headers: RETRY_AFTER }),
    content: {
      'application/json': {
        schema,
        examples: Object.fromEntries(
          told.map(({ code, when, says }) => [
            code,
            { summary: when, value: { errors: [{ code, description: says }] } },
          ]),
        ),
      },
    },
  };
}

const RETRY_AFTER = {
  'retry-after': {
    description: 'In so many seconds.',
    schema: { type: 'string' as const, pattern: '^\\d+$' },
  },
};
