import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { type Schema, schemaRef, simplify } from '../../../http/openapi';
import { bodySchema, uploadSchema } from '../resources/body';
import type { SetField, SetFields, ShownField, ShownFields } from '../resources/fields';
import type { Resource } from '../resources/resource';
import { RESOURCES } from '../resources/table';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** A schema as JSON Schema (draft 2020-12, which is that of OpenAPI 3.1), of what is sent, before any decoding. */
export function jsonSchema(schema: z.ZodType): OpenApi.SchemaObject {
  const { $schema, ...made } = z.toJSONSchema(schema, {
    io: 'input',
    override({ zodSchema, jsonSchema: part }) {
      // Of what is decoded zod leaves the default out.
      const given = z.globalRegistry.get(zodSchema)?.default;
      if (given !== undefined) part.default = given as JsonSchema['default'];
    },
  });
  simplifyAll(made);
  return made as OpenApi.SchemaObject;
}

/** From the inside out: what is inside may become simple enough to be joined with what is around it. */
function simplifyAll(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) simplifyAll(part);
  simplify(value as JsonSchema);
}

/** The name of a resource in the components: `text_track` is `TextTrack`. */
export function schemaName({ type }: Pick<Resource, 'type'>): string {
  return type.replaceAll(/(?:^|_)([a-z])/g, (_whole, letter: string) => letter.toUpperCase());
}

/** The name of the answer that makes a resource: it may have fields that no other has. */
export function madeName(resource: Resource): string {
  const hasMore = Object.values(resource.shown).some(({ once }) => once);
  return `${schemaName(resource)}${hasMore ? 'Made' : ''}`;
}

const described = (schema: z.ZodType, description: string) => schema.meta({ description });
const Moment = z.string().meta({ format: 'date-time' });

/** A resource as answers have it. */
function answerSchema(resource: Resource, isNew = false): z.ZodType {
  const { type, noun, says, shown, metadata, relationships = {} } = resource;
  return z
    .object({
      id: described(z.string(), `The id of the ${noun}.`),
      type: described(z.literal(type), 'What it is.'),
      created: described(Moment, 'When it was made.'),
      last_modified: described(Moment, 'When it was last changed.'),
      ...shownSchemas(shown, isNew),
      metadata: described(z.object(keptSchemas(metadata)), 'What describes it. An update changes it.'),
      relationships: described(
        z.object(
          Object.fromEntries(
            Object.entries(relationships).map(([name, field]) => [
              name,
              described(field.schema, field.says).optional(),
            ]),
          ),
        ),
        'What it belongs to.',
      ),
      schema: described(z.null(), 'Always `null`.'),
    })
    .meta({ description: says });
}

/** The fields that the platform sets. */
export function shownSchemas(fields: ShownFields, isNew = false): Record<string, z.ZodType> {
  const shown = Object.entries<ShownField>(fields).flatMap(([name, { schema, says, once, unseen }]) => {
    if (unseen || (once && !isNew)) return [];
    const told = described(schema, says);
    return [[name, once && name !== 'secret' ? told.optional() : told] as const];
  });
  return Object.fromEntries(shown);
}

function keptSchemas(fields: SetFields): Record<string, z.ZodType> {
  const kept = Object.entries<SetField>(fields).flatMap(
    ([name, { schema, says, unseen, required, ...field }]) => {
      const hasValue = required || 'default' in field;
      return unseen ? [] : [[name, described(hasValue ? schema : schema.nullable(), says)] as const];
    },
  );
  return Object.fromEntries(kept);
}

/** The envelope of a list. */
function pageSchema(resource: Resource): OpenApi.SchemaObject {
  const { plural, alsoListedAs } = resource;
  const properties: Record<string, Schema> = {
    page: { type: 'integer', description: 'Which page this is, from 1.' },
    page_length: { type: 'integer', description: 'How many a page has at most.' },
    total: { type: 'integer', description: 'How many there are on all pages.' },
    [plural]: {
      type: 'array',
      items: schemaRef(schemaName(resource)),
      description: 'Those of this page.',
    },
    ...(alsoListedAs !== undefined && {
      [alsoListedAs]: {
        type: 'array',
        items: schemaRef(schemaName(resource)),
        description: 'The same once more, as a released client reads it.',
      },
    }),
  };
  return { type: 'object', description: 'A page.', required: Object.keys(properties), properties };
}

/** The schemas of all resources: as answers have them, and as bodies make and change them. */
export function resourceSchemas(): Record<string, OpenApi.SchemaObject> {
  const schemas: Record<string, OpenApi.SchemaObject> = {};
  for (const resource of RESOURCES) {
    const name = schemaName(resource);
    const has = (verb: Resource['verbs'][number]) => resource.verbs.includes(verb);
    schemas[name] = jsonSchema(answerSchema(resource));
    if (madeName(resource) !== name) schemas[madeName(resource)] = jsonSchema(answerSchema(resource, true));
    if (has('list')) schemas[`${name}Page`] = pageSchema(resource);
    if (has('create')) schemas[`${name}Create`] = jsonSchema(bodySchema(resource, 'create'));
    if (has('update')) schemas[`${name}Update`] = jsonSchema(bodySchema(resource, 'update'));
    if (resource.actions?.reupload) schemas[`${name}Reupload`] = jsonSchema(uploadSchema(resource));
  }
  return schemas;
}

/** The body of every error. */
export const ERRORS_SCHEMA: OpenApi.SchemaObject = {
  type: 'object',
  description: 'What is wrong with a request, all at once.',
  required: ['errors'],
  properties: {
    errors: {
      type: 'array',
      minItems: 1,
      description: 'Each of its problems.',
      items: {
        type: 'object',
        required: ['code', 'description'],
        properties: {
          code: { type: 'string', description: 'For programs; it stays as it is.' },
          description: { type: 'string', description: 'For a person: what is wrong, and what to do.' },
        },
      },
    },
  },
};
