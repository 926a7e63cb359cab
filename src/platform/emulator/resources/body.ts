import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { bodyProblem, MAX_PROBLEMS, printable, type SchemaFault, schemaFaults } from '../../../http/faults';
import { objectParams } from '../json-body';
import { type GivenOf, type SetField, type SetFields, secondsOf, spoken, type ValuesOf } from './fields';
import type { BodyOf, Resource } from './resource';

type Use = 'create' | 'update';

/** The schema of given fields. `null` means the same as leaving a field out, where it has a default. */
function givenFields(fields: SetFields, use: Use) {
  const given = Object.entries(fields).filter(([, { fixed }]) => use === 'create' || !fixed);
  return z.strictObject(
    Object.fromEntries(given.map(([name, field]) => [name, givenField(field, use)])),
    objectParams,
  );
}

/** Also accepts the forms in which clients send an absent value, which the API's description does not list. */
function givenField(field: SetField, use: Use): z.ZodType {
  const { schema, required, says } = field;
  const given = required && use === 'create' ? schema : schema.nullish();
  // For the API's description; an update keeps fields that it does not name.
  const meta = {
    description: says,
    ...(use === 'create' && 'default' in field && { default: field.default }),
  };
  if (schema instanceof z.ZodObject || schema instanceof z.ZodRecord) return emptyAsObject(given).meta(meta);
  // Clients that serialise a class send "" for a choice that was not made, and for fields that have a value already.
  const hasValue = typeof field.default === 'string' && field.default !== '';
  const isNone = schema instanceof z.ZodEnum || hasValue || (required && use === 'update');
  const lenient = isNone ? z.preprocess((value) => (value === '' ? undefined : value), given) : given;
  return lenient.meta(meta);
}

/** PHP writes an object without entries as an empty list. */
function emptyAsObject(schema: z.ZodType): z.ZodType {
  return z.preprocess((value) => (Array.isArray(value) && value.length === 0 ? {} : value), schema);
}

export function bodySchema(resource: Resource, use: Use): z.ZodType {
  const { metadata, upload, relationships } = resource;
  const isNeeded = (fields: SetFields = {}) =>
    use === 'create' && Object.values(fields).some(({ required }) => required);
  const isAlone = upload === undefined && relationships === undefined;
  const related = relationships ? givenFields(relationships, use) : z.looseObject({}, objectParams);
  const parts = {
    metadata: part(givenFields(metadata, use), 'The metadata.', isNeeded(metadata) || isAlone),
    upload: part(
      upload && use === 'create' ? givenFields(upload, use) : Empty,
      'Where the content comes from.',
    ),
    relationships: part(related, 'The related resources.', isNeeded(relationships)),
  };
  const names = ['metadata', ...(upload ? ['upload'] : []), ...(relationships ? ['relationships'] : [])];
  return z.strictObject(parts, `The body must be a JSON object with ${spoken(names, 'or')}.`);
}

function part(fields: z.ZodType, description: string, isRequired = false): z.ZodType {
  return emptyAsObject(isRequired ? fields : fields.nullish()).meta({ description });
}

/** Clients send `upload`, empty, with every resource. */
const Empty = z.strictObject({}, objectParams);

/** Parts that a body leaves out are empty. @throws HttpError 400 `invalid_body` with every problem. */
export function readResourceBody<R extends Resource>(
  resource: R,
  schema: z.ZodType,
  body: unknown = {},
  use: Use,
) {
  const parsed = schema.safeParse(body);
  const faults = parsed.success ? [] : schemaFaults(schema, parsed.error, body);
  const others = [
    ...lostNames(body, []),
    ...(use === 'create' ? uploadFaults(resource.upload ?? {}, body) : []),
  ];
  const problems = [
    ...faults.map((fault) => ({ code: 'invalid_body', description: describe(fault, resource), fault })),
    ...others.map((description) => ({ code: 'invalid_body', description })),
  ];
  if (!parsed.success || problems.length > 0) throw new HttpError(400, problems.slice(0, MAX_PROBLEMS));
  const { metadata, upload, relationships } = parsed.data as Partial<BodyOf<R>>;
  return {
    metadata: metadata ?? {},
    upload: upload ?? {},
    relationships: relationships ?? {},
  } as BodyOf<R>;
}

const LOST = '__proto__';

/** Finds names that JavaScript reserves: the schema library would drop them without a fault. */
function lostNames(value: unknown, path: readonly string[]): string[] {
  if (typeof value !== 'object' || value === null || path.length > 2) return [];
  const here = Object.hasOwn(value, LOST)
    ? [`${path.join('.') || 'The body'}: must not have the name ${LOST}`]
    : [];
  return [
    ...here,
    ...Object.entries(value).flatMap(([name, inner]) =>
      name === LOST ? [] : lostNames(inner, [...path, name]),
    ),
  ];
}

/** The contradictions in the `upload` of a body, whose fields may be wrong themselves. */
function uploadFaults(fields: SetFields, body: unknown): string[] {
  const { upload } = (body ?? {}) as { readonly upload?: unknown };
  if (typeof upload !== 'object' || upload === null) return [];
  const given = upload as Readonly<Record<string, unknown>>;
  const givenAs = (name: string) => (name in fields ? given[name] : undefined);
  const isGiven = (name: string) => ![undefined, null, ''].includes(givenAs(name) as string);
  const method = isGiven('method') ? givenAs('method') : 'direct';
  const faults: string[] = [];
  const goesWith = (name: string, methods: readonly string[]) => {
    if (isGiven(name) && typeof method === 'string' && !methods.includes(method))
      faults.push(
        `upload.${name}: goes with the method ${spoken(methods, 'or')}, not with ${printable(method)}`,
      );
  };
  goesWith('download_url', ['fetch']);
  // A released client has no download_url, and sends the address here.
  goesWith('source_url', isGiven('download_url') ? ['external'] : ['external', 'fetch']);
  if (method === 'fetch' && !isGiven('download_url') && !isGiven('source_url'))
    faults.push('upload.download_url: is missing; the method fetch needs it');
  if (method === 'external' && !isGiven('source_url'))
    faults.push('upload.source_url: is missing; the method external needs it');
  if (isGiven('source_media_id') && method !== 'direct')
    faults.push('upload.source_media_id: takes the picture from a media; leave method out');
  const [begin, end] = [givenAs('trim_in_point'), givenAs('trim_out_point')];
  if (method === 'external' && (begin || end))
    faults.push('upload.trim_in_point and trim_out_point: cannot be set for the method external');
  else if (typeof begin === 'string' && typeof end === 'string' && secondsOf(begin) >= secondsOf(end))
    faults.push('upload.trim_out_point: must be after trim_in_point');
  return faults;
}

const BY_PLATFORM = ['id', 'type', 'created', 'last_modified', 'schema'];

function describe(fault: SchemaFault, resource: Resource): string {
  const { description } = bodyProblem(fault);
  if (fault.kind !== 'unknown') return description;
  const { name } = fault;
  const [part] = fault.path;
  if (part === undefined && (BY_PLATFORM.includes(name) || Object.hasOwn(resource.shown, name))) {
    return `${name} is set by the platform, and a request cannot change it. Leave it out.`;
  }
  if (part === undefined && Object.hasOwn(resource.metadata, name)) {
    return `${name} belongs into metadata: send it as metadata.${name}.`;
  }
  const isFixed = part === 'metadata' && resource.metadata[name]?.fixed;
  if (isFixed || (part !== undefined && fault.known.length === 0)) {
    return `${String(part)}.${printable(name)} cannot be set by this call. Leave it out.`;
  }
  return description;
}

/** The values after a call: its own ones, each as a whole, over the present ones, over the defaults. */
export function valuesAfter<F extends SetFields>(
  fields: F,
  given: GivenOf<F>,
  before?: ValuesOf<F>,
): ValuesOf<F> {
  const values = Object.entries(fields).map(([name, field]) => {
    const value = given[name];
    const hasDefault = 'default' in field;
    const kept = before === undefined ? (hasDefault ? field.default : null) : before[name];
    const isLeftOut = value === undefined || (value === null && (hasDefault || field.required));
    return [name, isLeftOut ? kept : value] as const;
  });
  return Object.fromEntries(values) as ValuesOf<F>;
}

export function uploadSchema({ upload = {} }: Resource): z.ZodType {
  const parts = {
    upload: part(givenFields(upload, 'create'), 'Where the content comes from.'),
    metadata: part(Empty, 'Empty: it stays.'),
    relationships: part(Empty, 'Empty: they stay.'),
  };
  return z.strictObject(parts, 'The body must be a JSON object with upload.');
}

/** The body of an action on a site. */
export const siteBody = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, `The body must be a JSON object with ${spoken(Object.keys(shape), 'and')}.`);
