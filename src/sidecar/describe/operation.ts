import { curlCommand, type ExampleRequest } from './curl';
import type {
  ApiResponse,
  CodeSample,
  Header,
  JsonSchema,
  MediaType,
  Method,
  NamedExample,
  Operation,
  Parameter,
} from './document';
import { type Access, errorResponses, type StatusCodes } from './error-answers';

/** One request and what it is answered with. A request of the same name as another's shares its body. */
export interface Example extends ExampleRequest {
  readonly summary: string;
  readonly answer: { readonly status: number; readonly type?: string; readonly value?: unknown };
}

export interface OperationOptions {
  readonly method: Method;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** `key` unless told. */
  readonly access?: Access;
  readonly parameters?: readonly Parameter[];
  /** The body's schema for each media type. */
  readonly body?: Readonly<Record<string, JsonSchema>>;
  readonly answers: Readonly<Record<number, Answer>>;
  /** By name, in the order in which they are shown. */
  readonly examples: Readonly<Record<string, Example>>;
  readonly errors: readonly StatusCodes[];
}

export interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, JsonSchema>>;
}

/** An operation with its examples in all places where readers of OpenAPI look for them. */
export function operation(options: OperationOptions): Operation {
  const { operationId, tag, summary, description, access = 'key', parameters = [], body, answers } = options;
  const examples = Object.entries(options.examples);
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    security: access === 'key' ? [{ apiKey: [] }] : [],
    parameters,
    ...(body && {
      requestBody: { required: true, content: contentOf(body, (type) => requests(examples, type)) },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [
          status,
          answerOf(Number(status), answer, examples),
        ]),
      ),
      ...errorResponses(options.errors, access),
    },
    'x-codeSamples': examples.map((example) => codeSample(options, example)),
  };
}

type Examples = readonly (readonly [name: string, example: Example])[];
type NamedExamples = Readonly<Record<string, NamedExample>>;

function contentOf(
  schemas: Readonly<Record<string, JsonSchema>>,
  examplesOf: (type: string) => NamedExamples,
): Record<string, MediaType> {
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

function answerOf(
  status: number,
  { description, headers, content }: Answer,
  examples: Examples,
): ApiResponse {
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

function codeSample(options: OperationOptions, [name, example]: Examples[number]): CodeSample {
  const { method, path, parameters = [], access = 'key' } = options;
  const { status, type } = example.answer;
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, parameter) =>
    encodeURIComponent(String(parameters.find((known) => known.name === parameter)?.example)),
  );
  return {
    lang: 'Shell',
    label: example.summary,
    source: curlCommand(method, filled, example, access === 'key'),
    'x-answer': { example: name, status, ...(type !== undefined && { type }) },
  };
}
