import type { z } from 'zod';

/** What this service uses of OpenAPI 3.1. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { title: string; version: string; summary: string; description: string; license: object };
  readonly servers: readonly { url: string; description: string }[];
  readonly tags: readonly { name: string; description: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: { readonly NoSuchPath: ApiResponse; readonly NoSuchMethod: ApiResponse };
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
}

export interface SecurityScheme {
  readonly type: 'apiKey';
  readonly in: 'header';
  readonly name: string;
  readonly description: string;
}

export type JsonSchema = z.core.JSONSchema.BaseSchema;

export type Method = 'get' | 'post' | 'delete';

export type PathItem = { readonly [method in Method]?: Operation };

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  /** Empty for what takes no API key. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, MediaType>>;
  };
  readonly responses: Readonly<Record<string, ApiResponse>>;
  /** Each request of the examples as a command, in the form that several readers of OpenAPI show. */
  readonly 'x-codeSamples': readonly CodeSample[];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

export interface ApiResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Header {
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface MediaType {
  readonly schema: JsonSchema;
  readonly examples?: Readonly<Record<string, NamedExample>>;
}

export interface NamedExample {
  readonly summary: string;
  readonly value: unknown;
}

export interface CodeSample {
  readonly lang: 'Shell';
  readonly label: string;
  readonly source: string;
  /** The example it belongs to: its name, and the answer's status and media type. */
  readonly 'x-answer': { readonly example: string; readonly status: number; readonly type?: string };
}

/** A reference to a schema of the document's components. */
export function schemaRef(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}
