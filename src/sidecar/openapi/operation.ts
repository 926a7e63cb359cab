import { STATUS_CODES } from 'node:http';
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import { ALL_ERRORS, type ErrorCode, sentenceOf } from '../errors';

/** A schema as it stands in a body, an answer or a parameter. */
export type Schema = OpenApi.SchemaObject | OpenApi.ReferenceObject;

/** Bodies by media type. What is narrower here than OpenAPI allows is what readers of the document may rely on. */
export type Content = Record<string, { schema: Schema; examples?: NamedExamples }>;
type NamedExamples = Record<string, OpenApi.ExampleObject>;
/** An answer of an operation. */
export type Answered = Omit<OpenApi.ResponseObject, 'content'> & { content?: Content };

export type Method = 'get' | 'post' | 'delete';
export type PathItem = { readonly [method in Method]?: Operation };
export type Operation = ReturnType<typeof operation>;

/** A reference to a schema of the document's components. */
export function schemaRef(name: string): OpenApi.ReferenceObject {
  return { $ref: `#/components/schemas/${name}` };
}

/** One request and what it is answered with. A request of the same name as another's shares its body. */
export interface Example {
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly type: string; readonly value: unknown };
  readonly answer: { readonly status: number; readonly type?: string; readonly value?: unknown };
}

interface OperationOptions {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** `key` unless told. */
  readonly access?: Access;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  /** The body's schema for each media type. */
  readonly body?: Readonly<Record<string, Schema>>;
  readonly answers: Readonly<Record<number, Answer>>;
  /** By name, in the order in which they are shown. */
  readonly examples: Readonly<Record<string, Example>>;
  /** Beside those that any request may be answered with. */
  readonly errors: readonly AnsweredError[];
}

interface Answer {
  readonly description: string;
  readonly headers?: Record<string, OpenApi.HeaderObject>;
  readonly content?: Readonly<Record<string, Schema>>;
}

/** An operation with its examples in all places where readers of OpenAPI look for them. */
export function operation(options: OperationOptions) {
  const { operationId, tag, summary, description, access = 'key', parameters = [], body, answers } = options;
  const examples = Object.entries(options.examples);
  const own = Object.entries(answers).map(
    ([status, answer]) => [status, successOf(Number(status), answer, examples)] as const,
  );
  const responses: Record<string, Answered> = {
    ...Object.fromEntries(own),
    ...errorAnswers(options.errors, access),
  };
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    // Empty for what takes no API key.
    security: access === 'key' ? [{ apiKey: [] }] : [],
    parameters: [...parameters],
    ...(body && {
      requestBody: { required: true, content: contentOf(body, (type) => requests(examples, type)) },
    }),
    responses,
    // Each request of the examples as a command, in the form that several readers of OpenAPI show.
    'x-codeSamples': examples.map((example) => codeSample(options, example)),
  } satisfies OpenApi.OperationObject<{ 'x-codeSamples': object[] }>;
}

type Examples = readonly (readonly [name: string, example: Example])[];

function contentOf(
  schemas: Readonly<Record<string, Schema>>,
  examplesOf: (type: string) => NamedExamples,
): Content {
  return Object.fromEntries(
    Object.entries(schemas).map(([type, schema]) => {
      const examples = examplesOf(type);
      return [type, { schema, ...(Object.keys(examples).length > 0 && { examples }) }];
    }),
  );
}

function requests(examples: Examples, type: string): NamedExamples {
  return Object.fromEntries(
    examples.flatMap(([name, { summary, body }]) =>
      body?.type === type ? [[name, { summary, value: body.value }]] : [],
    ),
  );
}

function successOf(status: number, { description, headers, content }: Answer, examples: Examples): Answered {
  const answered = (type: string) =>
    Object.fromEntries(
      examples.flatMap(([name, { summary, answer }]) =>
        answer.status === status && answer.type === type ? [[name, { summary, value: answer.value }]] : [],
      ),
    );
  return {
    description,
    ...(headers && { headers }),
    ...(content && { content: contentOf(content, answered) }),
  };
}

function codeSample(options: OperationOptions, [name, example]: Examples[number]) {
  const { method, path, parameters = [], access = 'key' } = options;
  const { status, type } = example.answer;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, parameter) =>
    encodeURIComponent(String(parameters.find((known) => known.name === parameter)?.example)),
  );
  return {
    lang: 'Shell',
    label: example.summary,
    source: curlCommand(method, filled, example, access === 'key'),
    // The example that it belongs to: its name, and the answer's status and media type.
    'x-answer': { example: name, status, ...(type !== undefined && { type }) },
  };
}

/** The variables that hold address and API key in the commands; the command line reads them, too. */
export const URL_VARIABLE = 'PACKAGERDRM_URL';
export const API_KEY_VARIABLE = 'PACKAGERDRM_APIKEY';

/** A request as a command for a POSIX shell. */
function curlCommand(
  method: string,
  path: string,
  { query = {}, headers = {}, body }: Example,
  withApiKey: boolean,
): string {
  const search = new URLSearchParams(query).toString();
  const target = `"$${URL_VARIABLE}${path}${search && `?${search}`}"`;
  const options = [
    ...(withApiKey ? [`-H "x-api-key: $${API_KEY_VARIABLE}"`] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body
      ? [`-H ${quoted(`content-type: ${body.type}`)}`, `--data-binary ${quoted(textOf(body.value))}`]
      : []),
  ];
  const verb = method === 'get' || (method === 'post' && body) ? '' : `-X ${method.toUpperCase()} `;
  return [`curl -sS ${verb}${target}`, ...options].join(' \\\n  ');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** In single quotes a shell takes everything as it is, but for the single quote. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
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
  'too_many_requests_ahead',
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
export function errorAnswers(own: readonly AnsweredError[], access: Access): Record<string, Answered> {
  const all = [
    ...own,
    ...(access === 'key' ? BEHIND_THE_KEY : []),
    ...(access === 'probe' ? [] : BUT_FOR_PROBES),
    ...ALWAYS,
  ].map(told);
  const statuses = [...new Set(all.map(({ status }) => status))].sort((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      failureOf(
        status,
        all.filter((error) => error.status === status),
      ),
    ]),
  );
}

/** The answer that is one error. */
export function errorAnswer(code: ErrorCode): Answered {
  const error = told(code);
  return failureOf(error.status, [error]);
}

interface Told {
  readonly code: ErrorCode;
  readonly status: number;
  readonly when: string;
  readonly says: string;
}

function told(error: AnsweredError): Told {
  const { code, ...other } = typeof error === 'string' ? { code: error } : error;
  const { status, when } = ALL_ERRORS[code];
  return { code, status, when, says: sentenceOf(code), ...other };
}

function failureOf(status: number, errors: readonly Told[]): Answered {
  const items = { properties: { code: { enum: errors.map(({ code }) => code) } } };
  return {
    description: [`${STATUS_CODES[status]}.`, ...errors.map(({ code, when }) => `\`${code}\`: ${when}`)].join(
      '\n\n',
    ),
    ...(errors.some(({ code }) => WITH_RETRY_AFTER.includes(code)) && { headers: RETRY_AFTER }),
    content: {
      'application/json': {
        schema: { allOf: [schemaRef('Errors'), { properties: { errors: { items } } }] },
        examples: Object.fromEntries(
          errors.map(({ code, when, says }) => [
            code,
            { summary: when, value: { errors: [{ code, description: says }] } },
          ]),
        ),
      },
    },
  };
}

const RETRY_AFTER = {
  'retry-after': { description: 'In so many seconds.', schema: { type: 'string', pattern: '^\\d+$' } },
} as const satisfies Record<string, OpenApi.HeaderObject>;
