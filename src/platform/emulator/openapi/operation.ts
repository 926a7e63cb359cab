import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { HTTP_ERRORS } from '../../../http/errors';
import {
  type Answer,
  type Bodies,
  contentOf,
  type DescribedError,
  failures,
  type Operation,
  type PathItem,
  parameter,
  type Schema,
} from '../../../http/openapi';
import { isChange } from '../resources/resource';

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

/** By scheme: the errors of all operations that need it. */
const ACCESS = {
  apiSecret: ['credential_missing', 'credential_refused', 'rate_limit_exceeded'],
  uploadToken: ['credential_missing'],
  clientApiKey: ['api_key_missing', 'api_key_refused', 'client_unknown'],
  v1Signature: [],
} as const satisfies Readonly<Record<string, readonly AnsweredError[]>>;

const BODY_ERRORS = ['invalid_body', 'malformed_json', 'body_too_large'] as const;

export interface Row {
  /** As Express writes it: `GET /media/:mediaId`. */
  readonly at: string;
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** The security scheme, if it needs any. */
  readonly access?: keyof typeof ACCESS | undefined;
  readonly parameters?: readonly OpenApi.ParameterObject[];
  readonly body?: Bodies;
  readonly answers: Readonly<Record<number, Answer>>;
  /** In addition to those of its access, its path and a body in JSON. */
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

export function pathsOf(groups: readonly Group[], { siteId, client }: Seeded): Record<string, PathItem> {
  const seeded = { site_id: siteId, api_key: siteId, client, content_id: 'somecontentid' };
  const examples = new Map(Object.entries(seeded));
  const paths: Record<string, PathItem> = {};
  for (const { tag, rows } of groups) {
    for (const row of rows) {
      const { at, id, summary, description, access, parameters = [], body, answers } = row;
      const [method = '', pattern = ''] = at.split(' ');
      // The specification writes paths of the management API with a slash at their end; they are taken without, too.
      const path = `${templateOf(pattern)}${access === 'apiSecret' ? '/' : ''}`;
      const operation: Operation = {
        operationId: id,
        tags: [tag],
        summary,
        description,
        security: access ? [{ [access]: [] }] : [],
        parameters: [...pathParameters(path), ...parameters].map((each) => {
          const example = examples.get(each.name);
          return example === undefined ? each : { ...each, example };
        }),
        ...(body && { requestBody: { required: true, content: contentOf(body) } }),
        responses: { ...answers, ...(row.failures ?? failures(errorsOf(row), ['rate_limit_exceeded'])) },
      };
      paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
    }
  }
  return paths;
}

function errorsOf({ at, access, body, answers, errors = [] }: Row): DescribedError[] {
  const [method = '', path = ''] = at.split(' ');
  const isManagement = access === 'apiSecret';
  const all: AnsweredError[] = [
    ...(access ? ACCESS[access] : []),
    ...(isManagement && path.includes(':siteId') ? (['site_forbidden'] as const) : []),
    ...(isManagement && isChange(method, path) ? (['permission_insufficient'] as const) : []),
    ...(body?.['application/json'] ? BODY_ERRORS : []),
    ...errors,
    ...(path.includes(':') && !answers[400] ? (['invalid_path'] as const) : []),
    'server_error',
  ];
  return all.map((error) => {
    const [status, code, when] =
      typeof error === 'string' ? [ERRORS[error][0], error, ERRORS[error][1]] : error;
    return { code, status, when };
  });
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

export function answer(description: string, bodies?: Bodies, headers?: Answer['headers']): Answer {
  return { description, ...(headers && { headers }), ...(bodies && { content: contentOf(bodies) }) };
}

export function json(description: string, body: Schema | z.ZodType): Answer {
  return answer(description, { 'application/json': body });
}
