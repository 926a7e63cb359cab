import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import {
  type Answer,
  type Content,
  contentOf,
  failures,
  type Method,
  type Operation,
  parameter,
  type Schema,
  schemaRef,
} from '../../http/openapi';
import { ALL_ERRORS, type ErrorCode } from '../errors';

export const URL_VARIABLE = 'PACKAGERDRM_URL';
export const API_KEY_VARIABLE = 'PACKAGERDRM_APIKEY';

export const JSON_TYPE = 'application/json';

export function json(name: string): Record<string, Schema> {
  return { [JSON_TYPE]: schemaRef(name) };
}

export const IF_NONE_MATCH = parameter(
  'If-None-Match',
  '`*`: there must be no key file yet. Otherwise the answer is 412, and nothing is changed.',
  { type: 'string' },
  { in: 'header' },
);
export const IF_CHANGED: OpenApi.ParameterObject = {
  ...IF_NONE_MATCH,
  description:
    'The `ETag` of what the client has, in its quotes. While it is still that, the answer is 304 without a body.',
};
export const ETAG: OpenApi.HeaderObject = {
  description: 'The entity tag of the answer: it changes with every byte of it.',
  schema: { type: 'string' },
};
export const NOT_MODIFIED: Answer = {
  description: 'It still has the entity tag of `If-None-Match`.',
  headers: { ETag: ETAG },
};

type AnsweredError = ErrorCode | { readonly code: ErrorCode; readonly status: number };

interface Example {
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly value: unknown } | undefined;
  /** Of the answer 200, where it is always this one. */
  readonly answer?: { readonly type: string; readonly value: unknown };
}

interface Described {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** An API key (unless given), a client certificate at most, or nothing. */
  readonly access?: 'key' | 'open' | 'probe';
  readonly parameters?: readonly OpenApi.ParameterObject[];
  readonly body?: Readonly<Record<string, Schema>>;
  /** Of the answer 200, by media type. */
  readonly content: Readonly<Record<string, Schema>>;
  readonly headers?: Record<string, OpenApi.HeaderObject>;
  readonly answers?: Readonly<Record<number, Answer>>;
  /** In addition to those of any operation with this access, of a stream, a query and a body. */
  readonly errors?: readonly AnsweredError[];
  readonly examples: readonly Example[];
}

const ALWAYS: readonly ErrorCode[] = [
  'bad_request',
  'https_required',
  'request_timeout',
  'request_header_fields_too_large',
  'server_error',
];
const BUT_FOR_PROBES: readonly ErrorCode[] = [
  'client_certificate_required',
  'client_certificate_refused',
  'too_many_connections',
];
const BEHIND_THE_KEY: readonly ErrorCode[] = ['invalid_path', 'unauthorized', 'too_many_attempts'];

/** By method and path, as `get /healthz`. */
export type Operations = Readonly<Record<string, Described>>;

export function operation(path: string, method: Method, tag: string, described: Described): Operation {
  const { id, summary, description, access = 'key', parameters = [], body, examples } = described;
  const errors = new Set<AnsweredError>([
    ...(path.includes('{streamid}') ? (['invalid_stream_id'] as const) : []),
    ...(parameters.some((each) => each.in === 'query') ? (['invalid_query'] as const) : []),
    ...(body?.[JSON_TYPE] ? (['invalid_body', 'malformed_json'] as const) : []),
    ...(body ? (['body_too_large', 'unsupported_media_type'] as const) : []),
    ...(described.errors ?? []),
    ...(access === 'key' ? BEHIND_THE_KEY : []),
    ...(access === 'probe' ? [] : BUT_FOR_PROBES),
    ...ALWAYS,
  ]);
  const success: Answer = {
    description: 'It is done.',
    ...(described.headers && { headers: described.headers }),
    content: shown(
      described.content,
      examples.map(({ summary: name, answer }) => ({ summary: name, body: answer })),
    ),
  };
  const filled = parameters.reduce(
    (text, { name, example }) => text.replace(`{${name}}`, String(example)),
    path,
  );
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: access === 'key' ? [{ apiKey: [] }] : [],
    parameters: [...parameters],
    ...(body && { requestBody: { required: true, content: shown(body, examples) } }),
    responses: { 200: success, ...described.answers, ...errorAnswers([...errors]) },
    'x-codeSamples': examples.map((example) => ({
      lang: 'Shell',
      label: example.summary,
      source: curlCommand(method, filled, example, access),
    })),
  };
}

export function errorAnswer(code: ErrorCode): Answer {
  const [answer] = Object.values(errorAnswers([code]));
  return answer ?? { description: '' };
}

function errorAnswers(errors: readonly AnsweredError[]): Record<string, Answer> {
  const described = errors.map((error) => {
    const { code, ...other } = typeof error === 'string' ? { code: error } : error;
    const { status, when } = ALL_ERRORS[code];
    return { code, status, when, ...other };
  });
  return failures(described, [
    'too_many_attempts',
    'too_many_pulls',
    'too_many_batches',
    'too_many_connections',
  ]);
}

function shown(
  schemas: Readonly<Record<string, Schema>>,
  examples: readonly Pick<Example, 'summary' | 'body'>[],
): Content {
  const content = contentOf(schemas);
  for (const { summary, body } of examples) {
    const described = content[body?.type ?? ''];
    if (described && body?.value !== undefined)
      described.examples = { ...described.examples, [summary]: { summary, value: body.value } };
  }
  return content;
}

function curlCommand(
  method: Method,
  path: string,
  { query = {}, headers = {}, body }: Example,
  access: Described['access'],
): string {
  const search = new URLSearchParams(query).toString();
  const target = `"$${URL_VARIABLE}${path}${search && `?${search}`}"`;
  const verb = method === 'get' || body ? '' : `-X ${method.toUpperCase()} `;
  const text = typeof body?.value === 'string' ? body.value : JSON.stringify(body?.value, null, 2);
  return [
    `curl -sS ${verb}${target}`,
    ...(access === 'key' ? [`-H "x-api-key: $${API_KEY_VARIABLE}"`] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body ? [`-H ${quoted(`content-type: ${body.type}`)}`, `--data-binary ${quoted(text)}`] : []),
  ].join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
