import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { HTTP_ERRORS } from '../../../http/errors';
import type { ErrorEntry } from '../../../http/faults';
import {
  describeOperation,
  failures,
  type Method,
  type Operation,
  type OperationOptions,
  type Told,
} from '../../../http/openapi';

export type PathItem = { readonly [method in Method]?: Operation };

/** What the description takes from the emulator that it describes. */
export interface Seeded {
  /** The site of the examples. */
  readonly siteId: string;
  /** The client of the key provider. */
  readonly client: string;
}

/** Errors that more than one operation answers. */
const ERRORS = {
  invalid_path: HTTP_ERRORS.invalid_path,
  malformed_json: HTTP_ERRORS.malformed_json,
  body_too_large: {
    ...HTTP_ERRORS.body_too_large,
    example: 'The body is larger than this route accepts: 256 KiB.',
  },
  server_error: HTTP_ERRORS.server_error,
  invalid_body: {
    status: 400,
    when: 'A field is missing, unknown or not of its form. One error a field.',
    example: 'metadata.title: must be a string',
  },
  invalid_parameter: {
    status: 400,
    when: 'A parameter of the query is not of its form. One error a parameter.',
    example: 'page: must be at least 1.',
  },
  credential_missing: {
    status: 401,
    when: 'No credential was sent.',
    says: 'Send the V2 API secret in the header Authorization: Bearer <secret>.',
  },
  credential_refused: {
    status: 401,
    when: 'Nobody has this secret, or no longer.',
    says: 'The header Authorization does not hold the secret of an API credential.',
  },
  site_forbidden: {
    status: 403,
    when: 'The credential does not reach the site, or there is none.',
    says: 'This credential does not reach a site with this id.',
  },
  permission_insufficient: {
    status: 403,
    when: 'The permission of the credential is not enough.',
    example: 'This needs a credential with the permission Editor; this one has Viewer.',
  },
  not_found: {
    status: 404,
    when: 'There is none with this id.',
    example: 'This site has no media with this id.',
  },
  rate_limit_exceeded: {
    status: 429,
    when: 'These are more requests in a minute than a credential may send; `EMULATOR_RATELIMIT=on` limits them.',
    example: 'These are more than 60 requests in a minute. Wait 17 s.',
  },
  api_key_missing: {
    status: 401,
    when: "The client's API key was not sent.",
    says: "Send the client's API key in the header API-KEY.",
  },
  api_key_refused: {
    status: 401,
    when: 'The API key is not that of the client.',
    says: "The header API-KEY does not hold this client's API key.",
  },
  client_unknown: {
    status: 404,
    when: 'There is no client of this name.',
    says: 'There is no client of this name. The emulator knows the one that EMULATOR_CLIENT names.',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

type ErrorCode = keyof typeof ERRORS;

/** An error of an operation, with what is another there than in the catalogue. */
export type AnsweredError = ErrorCode | (Omit<Told, 'says'> & { readonly says?: string });

const WITH_RETRY_AFTER: readonly string[] = ['rate_limit_exceeded'];

/** Who may call: a credential of the management API, who has the token of an upload, a client of the key provider, anyone. */
type Access = 'management' | 'upload' | 'client' | 'open';

/** The variables in the commands of examples; the emulator itself reads those behind the first. */
export const URL_VARIABLE = 'EMULATOR_URL';
export const SECRET_VARIABLE = 'EMULATOR_API_SECRET';

const ACCESS: Readonly<
  Record<Access, { security: OpenApi.SecurityRequirementObject[]; headers: readonly string[] }>
> = {
  management: {
    security: [{ apiSecret: [] }],
    headers: [`authorization: Bearer $${SECRET_VARIABLE}`],
  },
  upload: { security: [{ uploadToken: [] }], headers: ['authorization: Bearer $UPLOAD_TOKEN'] },
  client: { security: [{ clientApiKey: [] }], headers: ['api-key: $EMULATOR_CLIENT_API_KEY'] },
  open: { security: [], headers: [] },
};

interface EmulatorOperation extends OperationOptions {
  readonly access: Access;
  /** Beside those that any request may be answered with. */
  readonly errors?: readonly AnsweredError[];
}

/** An operation of the emulator. */
export function operation({ access, errors = [], ...options }: EmulatorOperation): Operation {
  const { security, headers } = ACCESS[access];
  const always: AnsweredError[] = [
    ...(options.path.includes('{') ? ['invalid_path' as const] : []),
    'server_error',
  ];
  return describeOperation(options, {
    security,
    errors: failures([...errors, ...always].map(told), WITH_RETRY_AFTER),
    command: { urlVariable: URL_VARIABLE, headers },
  });
}

function told(error: AnsweredError): Told {
  if (typeof error !== 'string') return { says: error.when, ...error };
  const { status, when, ...entry }: ErrorEntry = ERRORS[error];
  return { code: error, status, when, says: entry.says ?? entry.example ?? when };
}

/** A path of Express as OpenAPI writes it: `/media/:mediaId{.:ending}/*file` is `/media/{media_id}/{file}`. */
export function templateOf(path: string): string {
  return path
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/[:*](\w+)/g, (_whole, name: string) => `{${snakeCase(name)}}`);
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The parameters of a path that OpenAPI writes. What the emulator starts with has an example. */
export function pathParameters(path: string, seeded: Seeded): OpenApi.ParameterObject[] {
  const examples: Readonly<Record<string, string>> = { site_id: seeded.siteId, client: seeded.client };
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: DESCRIPTIONS[name] ?? `The id of the ${name.replace(/_id$/, '').replaceAll('_', ' ')}.`,
    schema: { type: 'string' },
    ...(examples[name] !== undefined && { example: examples[name] }),
  }));
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  client: 'The name of the client.',
  ending: 'The ending of a file name.',
  file: 'What the manifest or the playlist names, relative to it. It may have slashes.',
  content_id: 'The content: 1 to 200 letters, digits, `_`, `-` and `.`',
  part: 'The number of the part, from 1.',
  token: 'The token of the address that was given.',
};

export const RATE_HEADERS = {
  'jw-request-limit': {
    description: 'How many requests a credential may send in a minute.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'jw-request-remaining': {
    description: 'How many of them are left.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
} as const satisfies Record<string, OpenApi.HeaderObject>;

/** What operations of the management API may be answered with because of who calls, and how often. */
export function managementErrors(path: string, needs: 'Viewer' | 'Editor'): readonly AnsweredError[] {
  return [
    'credential_missing',
    'credential_refused',
    ...(path.includes('{site_id}') ? (['site_forbidden'] as const) : []),
    ...(needs === 'Editor' ? (['permission_insufficient'] as const) : []),
    'rate_limit_exceeded',
  ];
}
