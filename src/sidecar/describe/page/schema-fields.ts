import type { JsonSchema, OpenApiDocument } from '../document';

/** One field of a body, as a row of a table. */
export interface Field {
  readonly name: string;
  /** How deep it lies: 0 for a field of the body itself. */
  readonly depth: number;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  /** The values that it can have, when they are few. */
  readonly values: readonly string[];
}

/** A schema in one of the forms that it can have. */
export interface Shape {
  readonly title: string | undefined;
  readonly description: string;
  readonly fields: readonly Field[];
}

type Schemas = OpenApiDocument['components']['schemas'];

/** The shapes of a schema: several when it is one of several. */
export function shapesOf(schema: JsonSchema, schemas: Schemas): Shape[] {
  const { title, description, oneOf } = resolve(schema, schemas);
  if (oneOf) return oneOf.flatMap((option) => shapesOf(option, schemas));
  return [{ title, description: description ?? '', fields: fieldsOf(schema, schemas, 0) }];
}

/** A schema's type in a word or two. What may be null may be left out as well, so null is not told. */
export function typeOf(schema: JsonSchema, schemas: Schemas): string {
  return wordsFor(schema, schemas).join(' or ');
}

function wordsFor(schema: JsonSchema, schemas: Schemas): string[] {
  const { type, format, contentEncoding, items, anyOf, const: only } = resolve(schema, schemas);
  if (only !== undefined) return [JSON.stringify(only)];
  if (anyOf && type === undefined) return [...new Set(anyOf.flatMap((option) => wordsFor(option, schemas)))];
  return [type ?? 'anything'].flat().flatMap((name) => {
    if (name === 'null') return [];
    if (name === 'array' && isSchema(items))
      return [`list of ${wordsFor(items, schemas).map(plural).join(' or ')}`];
    return [[contentEncoding, format === 'date-time' ? 'date and time' : name].filter(Boolean).join(' ')];
  });
}

function plural(word: string): string {
  return `${word}s`;
}

function isSchema(items: JsonSchema['items']): items is JsonSchema {
  return typeof items === 'object' && !Array.isArray(items);
}

/** The values of a schema that names them. */
export function valuesOf(schema: JsonSchema): string[] {
  const { enum: values = [], anyOf = [] } = schema;
  return [...values.filter((value) => value !== null).map(String), ...anyOf.flatMap(valuesOf)];
}

function fieldsOf(schema: JsonSchema, schemas: Schemas, depth: number): Field[] {
  const { properties = {}, required = [], items, type } = resolve(schema, schemas);
  if ([type].flat().includes('array') && isSchema(items)) return fieldsOf(items, schemas, depth);
  return Object.entries(properties).flatMap(([name, property]) => {
    const found = typeof property === 'object' ? resolve(property, schemas) : {};
    // What must be null is not there to be filled in.
    if (found.type === 'null') return [];
    const field: Field = {
      name,
      depth,
      type: typeOf(found, schemas),
      isRequired: required.includes(name),
      description: found.description ?? '',
      values: valuesOf(found),
    };
    return [field, ...fieldsOf(found, schemas, depth + 1)];
  });
}

/** The schema itself, for a reference to one of the components. */
function resolve(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const [, name = ''] = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref ?? '') ?? [];
  return schemas[name] ?? schema;
}
