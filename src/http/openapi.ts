import { STATUS_CODES } from 'node:http';
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import type * as z from 'zod';

/** A schema as it stands in a body, an answer or a parameter. */
export type Schema = OpenApi.SchemaObject | OpenApi.ReferenceObject;

/** Bodies by media type. What is narrower here than OpenAPI allows is what readers of the document may rely on. */
type Content = Record<string, { schema: Schema; examples?: NamedExamples }>;
type NamedExamples = Record<string, OpenApi.ExampleObject>;
/** An answer of an operation. */
export type Answered = Omit<OpenApi.ResponseObject, 'content'> & { content?: Content };

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
export type Operation = ReturnType<typeof describeOperation>;

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

export interface OperationOptions {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  /** The body's schema for each media type. */
  readonly body?: Readonly<Record<string, Schema>>;
  readonly answers: Readonly<Record<number, Answer>>;
  /** By name, in the order in which they are shown. */
  readonly examples: Readonly<Record<string, Example>>;
}

export interface Answer {
  readonly description: string;
  readonly headers?: Record<string, OpenApi.HeaderObject>;
  readonly content?: Readonly<Record<string, Schema>>;
}

/** What the operations of a service differ in from those of another. */
interface Service {
  /** Empty for what takes no credential. */
  readonly security: OpenApi.SecurityRequirementObject[];
  readonly errors: Readonly<Record<string, Answered>>;
  readonly command: CommandOptions;
}

/** How the commands of examples call a service. */
interface CommandOptions {
  /** The shell's variable that holds the address. */
  readonly urlVariable: string;
  /** Headers with a secret, as they stand in a command: between double quotes, with variables. */
  readonly headers: readonly string[];
}

/** An operation with its examples in all places where readers of OpenAPI look for them. */
export function describeOperation(options: OperationOptions, { security, errors, command }: Service) {
  const { operationId, tag, summary, description, parameters = [], body, answers } = options;
  const examples = Object.entries(options.examples);
  const own = Object.entries(answers).map(
    ([status, answer]) => [status, successOf(Number(status), answer, examples)] as const,
  );
  const responses: Record<string, Answered> = { ...Object.fromEntries(own), ...errors };
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security,
    parameters: [...parameters],
    ...(body && {
      requestBody: { required: true, content: contentOf(body, (type) => requests(examples, type)) },
    }),
    responses,
    // Each request of the examples as a command, in the form that several readers of OpenAPI show.
    'x-codeSamples': examples.map((example) => codeSample(options, command, example)),
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

function codeSample(
  { method, path, parameters = [] }: OperationOptions,
  command: CommandOptions,
  [name, example]: Examples[number],
) {
  const { status, type } = example.answer;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, parameter: string) => {
    const known = parameters.find((each) => each.name === parameter)?.example;
    return known === undefined ? `$${parameter.toUpperCase()}` : encodeURIComponent(String(known));
  });
  return {
    lang: 'Shell',
    label: example.summary,
    source: curlCommand(method, filled, example, command),
    // The example that it belongs to: its name, and the answer's status and media type.
    'x-answer': { example: name, status, ...(type !== undefined && { type }) },
  };
}

/** A request as a command for a POSIX shell. */
function curlCommand(
  method: string,
  path: string,
  { query = {}, headers = {}, body }: Example,
  { urlVariable, headers: secrets }: CommandOptions,
): string {
  // A value that is a variable is for the shell to fill in.
  const search = new URLSearchParams(query).toString().replaceAll(/=%24(\w+)/g, '=$$$1');
  const target = `"$${urlVariable}${path}${search && `?${search}`}"`;
  const options = [
    ...secrets.map((header) => `-H "${header}"`),
    ...Object.entries(headers).map(([name, value]) =>
      value.startsWith('$') ? `-H "${name}: ${value}"` : `-H ${quoted(`${name}: ${value}`)}`,
    ),
    ...(body ? bodyOptions(body) : []),
  ];
  const verb = method === 'get' || (method === 'post' && body) ? '' : `-X ${method.toUpperCase()} `;
  return [`curl -sS ${verb}${target}`, ...options].join(' \\\n  ');
}

function bodyOptions({ type, value }: NonNullable<Example['body']>): string[] {
  const fields = Object.entries(Object(value)).map(([name, text]) => `${name}=${text}`);
  if (type === 'multipart/form-data') return fields.map((field) => `-F ${quoted(field)}`);
  // Between double quotes, as variables stand in them.
  if (type === 'application/x-www-form-urlencoded')
    return fields.map((field) => `--data-urlencode "${field}"`);
  return [`-H ${quoted(`content-type: ${type}`)}`, `--data-binary ${quoted(textOf(value))}`];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** In single quotes a shell takes everything as it is, but for the single quote. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** An error that an operation answers. */
export interface Told {
  readonly code: string;
  readonly status: number;
  readonly when: string;
  readonly says: string;
}

/** Errors as answers, one a status. @param withRetryAfter the codes that come with `retry-after`. */
export function failures(
  errors: readonly Told[],
  withRetryAfter: readonly string[],
): Record<string, Answered> {
  const statuses = [...new Set(errors.map(({ status }) => status))].sort((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      failureOf(
        status,
        errors.filter((error) => error.status === status),
        withRetryAfter,
      ),
    ]),
  );
}

function failureOf(status: number, errors: readonly Told[], withRetryAfter: readonly string[]): Answered {
  const items = { properties: { code: { enum: errors.map(({ code }) => code) } } };
  return {
    description: [`${STATUS_CODES[status]}.`, ...errors.map(({ code, when }) => `\`${code}\`: ${when}`)].join(
      '\n\n',
    ),
    ...(errors.some(({ code }) => withRetryAfter.includes(code)) && { headers: RETRY_AFTER }),
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

/** Says the same in fewer words than zod's JSON Schema: people read this. */
export function simplify(schema: z.core.JSONSchema.BaseSchema): void {
  const options = schema.anyOf?.flatMap((option) => option.anyOf ?? [option]);
  const [only, nothing, ...more] = options ?? [];
  if (options) schema.anyOf = options;
  if (isNull(nothing) && more.length === 0 && typeof only?.type === 'string' && !only.enum) {
    delete schema.anyOf;
    Object.assign(schema, { ...only, ...schema, type: [only.type, 'null'] });
  }
  // The pattern of a date-time is a page long, and the bounds of an integer are those of JavaScript.
  if (schema.format !== undefined) delete schema.pattern;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

function isNull(schema: z.core.JSONSchema.BaseSchema | undefined): boolean {
  return schema?.type === 'null' && Object.keys(schema).length === 1;
}
