import { STATUS_CODES } from 'node:http';
import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { groupedBy } from '../drm/bytes';

export type Schema = OpenApi.SchemaObject | OpenApi.ReferenceObject;
/** By media type. */
export type Content = Record<string, { schema: Schema; examples?: Record<string, OpenApi.ExampleObject> }>;
export type Answer = Omit<OpenApi.ResponseObject, 'content'> & { content?: Content };
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** Narrower than OpenAPI allows: the service and its readers may rely on it. */
export interface Operation {
  readonly operationId: string;
  readonly tags: string[];
  readonly summary: string;
  readonly description: string;
  /** Empty where no credential is needed. */
  readonly security: OpenApi.SecurityRequirementObject[];
  readonly parameters: OpenApi.ParameterObject[];
  readonly requestBody?: { required: true; content: Content };
  readonly responses: Record<string, Answer>;
  /** Commands of a shell, in the form that several readers of OpenAPI show. */
  readonly 'x-codeSamples'?: { lang: string; label: string; source: string }[];
}

export type PathItem = { readonly [method in Method]?: Operation };

export function schemaRef(name: string): OpenApi.ReferenceObject {
  return { $ref: `#/components/schemas/${name}` };
}

/** By media type. */
export type Bodies = Readonly<Record<string, Schema | z.ZodType>>;

export function contentOf(bodies: Bodies): Content {
  const content = Object.entries(bodies).map(([type, body]) => {
    const schema = body instanceof z.ZodType ? jsonSchema(body) : body;
    return [type, { schema }] as const;
  });
  return Object.fromEntries(content);
}

type ParameterSchema = NonNullable<OpenApi.ParameterObject['schema']>;

export function parameter(
  name: string,
  description: string,
  schema: ParameterSchema = { type: 'string' },
  more: { readonly in?: 'query' | 'path' | 'header'; required?: boolean; example?: string } = {},
): OpenApi.ParameterObject {
  return { name, in: 'query', required: more.in === 'path', description, schema, ...more };
}

/** Without `null`, which an address cannot have. */
export function queryParameters(query: z.ZodObject): OpenApi.ParameterObject[] {
  return Object.entries(jsonSchema(query).properties ?? {}).map(([name, property]) => {
    const { description = '', anyOf = [], type, ...rest } = Object(property);
    const schema = { ...anyOf[0], ...rest, ...(type && { type: [type].flat()[0] }) };
    const required = !(query.shape[name] as z.ZodType).isOptional();
    return parameter(name, description, schema, { required });
  });
}

export interface DescribedError {
  readonly code: string;
  readonly status: number;
  readonly when: string;
}

/** One answer a status. `withRetryAfter`: codes that come with `retry-after`. */
export function failures(
  errors: readonly DescribedError[],
  withRetryAfter: readonly string[],
): Record<string, Answer> {
  const answers = [...groupedBy(errors, ({ status }) => status)].map(([status, those]): [number, Answer] => {
    const items = { properties: { code: { enum: those.map(({ code }) => code) } } };
    const lines = those.map(({ code, when }) => `\`${code}\`: ${when}`);
    const hasRetryAfter = those.some(({ code }) => withRetryAfter.includes(code));
    return [
      status,
      {
        description: [`${STATUS_CODES[status]}.`, ...lines].join('\n\n'),
        ...(hasRetryAfter && { headers: { 'retry-after': RETRY_AFTER } }),
        content: contentOf({
          'application/json': { allOf: [schemaRef('Errors'), { properties: { errors: { items } } }] },
        }),
      },
    ];
  });
  return Object.fromEntries(answers);
}

const RETRY_AFTER: OpenApi.HeaderObject = {
  description: 'In this number of seconds.',
  schema: { type: 'string', pattern: '^\\d+$' },
};

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** JSON Schema (draft 2020-12, that of OpenAPI 3.1) of requests as sent, before any decoding. */
export function jsonSchema(schema: z.ZodType): OpenApi.SchemaObject {
  const { $schema, ...made } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema: part }) {
      // For decoded values, zod leaves out the default.
      const given = z.globalRegistry.get(zodSchema)?.default;
      if (given !== undefined) part.default = given as JsonSchema['default'];
    },
  });
  simplify(made);
  return made as OpenApi.SchemaObject;
}

/** Expresses zod's JSON Schema in fewer words, from the inside out: people read this. */
function simplify(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) simplify(part);
  const schema = value as JsonSchema;
  const options = Array.isArray(schema.anyOf)
    ? schema.anyOf.flatMap((option) => option.anyOf ?? [option])
    : undefined;
  if (options) schema.anyOf = options;
  const [only, nothing, ...more] = options ?? [];
  const isNullable = nothing?.type === 'null' && Object.keys(nothing).length === 1 && more.length === 0;
  if (isNullable && typeof only?.type === 'string' && !only.enum) {
    delete schema.anyOf;
    Object.assign(schema, { ...only, ...schema, type: [only.type, 'null'] });
  }
  // The pattern of a date-time is a page long, and the bounds of an integer are those of JavaScript.
  if (schema.format !== undefined || schema.type === 'integer') delete schema.pattern;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}
