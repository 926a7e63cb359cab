import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { HTTP_ERRORS } from '../../../http/errors';
import {
  type Answer,
  contentOf,
  type DescribedError,
  failures,
  jsonSchema,
  type Operation,
  type PathItem,
  parameter,
  type Schema,
} from '../../../http/openapi';

export interface Seeded {
  readonly siteId: string;
  readonly client: string;
}

const ERRORS = {
  invalid_path: [400, HTTP_ERRORS.invalid_path.when],
  malformed_json: [400, HTTP_ERRORS.malformed_json.when],
  body_too_large: [413, HTTP_ERRORS.body_too_large.when],
  server_error: [500, HTTP_ERRORS.server_error.when],
  invalid_body: [400, 'A field is missing, unknown or not of its form. One error a field.'],
  invalid_parameter: [400, 'A parameter of the query is not of its form. One error a parameter.'],
  invalid_content_id: [400, 'The content id is against the rule.'],
  credential_missing: [401, 'No credential was sent.'],
  credential_refused: [401, 'There is no credential with this secret, or no longer.'],
  site_forbidden: [403, 'The credential does not reach the site, or there is none.'],
  permission_insufficient: [403, 'The permission of the credential is not enough.'],
  not_found: [404, 'There is none with this id.'],
  rate_limit_exceeded: [
    429,
    'A credential sent more requests in a minute than it may; `EMULATOR_RATELIMIT=on` limits them.',
  ],
  api_key_missing: [401, "The client's API key was not sent."],
  api_key_refused: [401, 'The API key is not that of the client.'],
  client_unknown: [404, 'There is no client of this name.'],
} as const satisfies Readonly<Record<string, readonly [status: number, when: string]>>;

export type AnsweredError = keyof typeof ERRORS | readonly [status: number, code: string, when: string];

const ACCESS = {
  management: [{ apiSecret: [] }],
  upload: [{ uploadToken: [] }],
  client: [{ clientApiKey: [] }],
  v1: [{ v1Signature: [] }],
  open: [],
} as const satisfies Readonly<Record<string, readonly OpenApi.SecurityRequirementObject[]>>;

export interface Row {
  /** As Express writes it: `GET /media/:mediaId`. */
  readonly at: string;
  readonly id: string;
  readonly tag?: string;
  readonly summary: string;
  readonly description: string;
  /** `open` unless given. */
  readonly access?: keyof typeof ACCESS;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  readonly body?: Bodies;
  readonly answers: Readonly<Record<number, Answer>>;
  /** In addition to the errors of any request. */
  readonly errors?: readonly AnsweredError[];
  /** Replaces all errors, for v1, which has its own form. */
  readonly failures?: Readonly<Record<string, Answer>>;
}

export interface Group {
  readonly tag: string;
  readonly says: string;
  readonly rows: readonly Row[];
}

type Words = Pick<Row, 'id' | 'at' | 'summary' | 'description'>;

export type Details = Omit<Row, keyof Words>;

/** Operations in words, one a line: `id | METHOD path | summary | description`. @param details the rest of each. */
export function rowsOf(table: string, details: (words: Words) => Details): Row[] {
  return table
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', at = '', summary = '', description = ''] = line.split(' | ');
      const words = { id, at, summary, description };
      return { ...words, ...details(words) };
    });
}

export function operationsOf(
  { tag: group, rows }: Group,
  { siteId, client }: Seeded,
): Record<string, PathItem> {
  const examples = new Map([
    ['site_id', siteId],
    ['api_key', siteId],
    ['client', client],
    ['content_id', 'somecontentid'],
  ]);
  const paths: Record<string, PathItem> = {};
  for (const row of rows) {
    const { at, id, tag = group, summary, description, access = 'open', parameters = [], body } = row;
    const [method = '', pattern = ''] = at.split(' ');
    const path = templateOf(pattern);
    const errors: AnsweredError[] = [...(row.errors ?? []), 'server_error'];
    if (path.includes('{') && !row.answers[400]) errors.push('invalid_path');
    const made: Operation = {
      operationId: id,
      tags: [tag],
      summary,
      description,
      security: [...ACCESS[access]],
      parameters: [...pathParameters(path), ...parameters].map((each) => {
        const example = examples.get(each.name);
        return example === undefined ? each : { ...each, example };
      }),
      ...(body && { requestBody: { required: true, content: contentsOf(body) } }),
      responses: {
        ...row.answers,
        ...(row.failures ?? failures(errors.map(describeError), ['rate_limit_exceeded'])),
      },
    };
    paths[path] = { ...paths[path], [method.toLowerCase()]: made };
  }
  return paths;
}

function describeError(error: AnsweredError): DescribedError {
  const [status, code, when] =
    typeof error === 'string' ? [ERRORS[error][0], error, ERRORS[error][1]] : error;
  return { code, status, when };
}

/** A path of Express as OpenAPI writes it: `/media/:mediaId{.:ending}/*file` is `/media/{media_id}/{file}`. */
export function templateOf(path: string): string {
  return path
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/[:*](\w+)/g, (_whole, name: string) => `{${snakeCase(name)}}`);
}

export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function pathParameters(path: string): OpenApi.ParameterObject[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const thing = name.replace(/_id$/, '').replaceAll('_', ' ');
    const says = DESCRIPTIONS[name] ?? `The id of the ${thing}.`;
    return parameter(name, says, { type: 'string' }, { in: 'path', required: true });
  });
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  client: 'The name of the client.',
  ending: 'The ending of a file name.',
  file: 'The path of a file that the manifest or the playlist names, relative to it. It may have slashes.',
  content_id: 'The content: 1 to 200 letters, digits, `_`, `-` and `.`',
  part: 'The number of the part, from 1.',
  token: 'The token of the address that was given.',
};

export const text = z.string();

type Bodies = Readonly<Record<string, Schema | z.ZodType>>;

const contentsOf = (bodies: Bodies) =>
  contentOf(
    Object.fromEntries(
      Object.entries(bodies).map(([type, body]) => [
        type,
        body instanceof z.ZodType ? jsonSchema(body) : body,
      ]),
    ),
  );

export function answer(description: string, bodies?: Bodies, headers?: Answer['headers']): Answer {
  return { description, ...(headers && { headers }), ...(bodies && { content: contentsOf(bodies) }) };
}

export function json(description: string, body: Schema | z.ZodType): Answer {
  return answer(description, { 'application/json': body });
}
