import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { type Answer, jsonSchema, queryParameters, type Schema, schemaRef } from '../../../http/openapi';
import { field as described } from '../json-body';
import { ListQuery } from '../listing/list';
import { bodySchema, uploadSchema } from '../resources/body';
import {
  camelCase,
  capital,
  type SetFields,
  type ShownField,
  type ShownFields,
  valueForms,
} from '../resources/fields';
import { RESOURCES } from '../resources/library';
import { type Action, type Resource, VERBS, type Verb } from '../resources/resource';
import { TAG_ACTIONS } from '../resources/tags';
import { USAGE_ACTIONS } from '../resources/usage';
import { type AnsweredError, answer, type Group, type Row } from './operation';

const JSON_TYPE = 'application/json';

/** @param resource without one, they act on a site. */
function actionRows(actions: Readonly<Record<string, Action>>, resource?: Resource): Row[] {
  return Object.entries(actions).flatMap(([name, action]) =>
    action.methods.map((method, place) => {
      const suffix = place > 0 ? `_by_${method.toLowerCase()}` : '';
      const id = camelCase(resource ? `${name}_${resource.type}${suffix}` : name);
      return actionRow(id, method, action, resource);
    }),
  );
}

/** The types of playlists have the plural of all of them in common. */
function tagOf({ type, plural }: Resource): string {
  return capital(type.endsWith('_playlist') ? `${words(type)}s` : words(plural));
}

const DONE: Readonly<Record<Verb, string>> = {
  list: 'A page.',
  create: 'It is created.',
  read: 'It is there.',
  update: 'It is changed.',
  delete: 'It is deleted.',
};

function verbRow(resource: Resource, verb: Verb): Row {
  const { noun, says, plural, refusals, type } = resource;
  const { method, path, status } = VERBS[verb];
  const name = schemaName(resource);
  const takesBody = verb === 'create' || verb === 'update';
  const descriptions: Partial<Record<Verb, string>> = {
    list: `The ${words(plural)}, the newest first unless \`sort\` says otherwise.`,
    update:
      'Changes the fields that `metadata` names, each as a whole; the others stay. `null` removes a value where there need be none.',
    delete: `Deletes the ${noun} for good.`,
  };
  const answered = { list: `${name}Page`, create: madeName(resource), read: name, update: name, delete: '' }[
    verb
  ];
  return {
    at: `${method} ${resource[path]}`,
    id: verb === 'list' ? `list${capital(camelCase(plural))}` : `${verb}${name}`,
    summary: `${capital(verb)} ${verb === 'list' ? words(plural) : `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`}`,
    description: descriptions[verb] ?? says,
    access: 'apiSecret',
    parameters: verb === 'list' ? listParameters(resource) : [],
    ...(takesBody && { body: { [JSON_TYPE]: schemaRef(`${name}${capital(verb)}`) } }),
    answers: { [status]: done(DONE[verb], answered === '' ? undefined : schemaRef(answered)) },
    errors: [
      ...(verb === 'list' ? (['invalid_parameter'] as const) : []),
      // The sites of a webhook are in its body.
      ...(type === 'webhook' && takesBody ? (['site_forbidden'] as const) : []),
      ...absentErrors(resource, verb),
      ...(refusals?.[verb] ?? []),
    ],
  };
}

function absentErrors({ collection, noun }: Resource, verb: Verb): readonly AnsweredError[] {
  const owner = [...collection.matchAll(/:(\w+)Id/g)].at(-1)?.[1];
  const isOfItem = verb !== 'list' && verb !== 'create';
  if (!isOfItem && (owner === undefined || owner === 'site')) return [];
  return [[404, 'not_found', `There is no such ${isOfItem ? noun : owner}.`]];
}

const count = { type: 'string', pattern: '^\\d+$' } as const;
const RATE_HEADERS: NonNullable<Answer['headers']> = {
  'jw-request-limit': { description: 'How many requests a credential may send in a minute.', schema: count },
  'jw-request-remaining': { description: 'How many of them are left.', schema: count },
};

const done = (description: string, schema?: Schema | z.ZodType): Answer =>
  answer(description, schema && { [JSON_TYPE]: schema }, RATE_HEADERS);

function listParameters({ shown, metadata }: Resource): OpenApi.ParameterObject[] {
  const named = [...Object.entries(shown), ...Object.entries(metadata)];
  const params = 'custom_params' in metadata ? ['custom_params.<name>'] : [];
  const filtered = named.flatMap(([name, { filter }]) => (filter ? [name] : []));
  const fields = ['id', 'created', 'last_modified', ...filtered, ...params].map((name) => `\`${name}\``);
  return queryParameters(ListQuery).map((each) =>
    each.name === 'q' ? { ...each, description: `${each.description} Fields: ${fields.join(', ')}.` } : each,
  );
}

function actionRow(id: string, method: string, action: Action, resource: Resource | undefined): Row {
  const { title, says, status, body, upload, query, answer: answered, refusals = [] } = action;
  const reuploaded = upload && resource;
  const given = reuploaded ? schemaRef(`${schemaName(resource)}Reupload`) : body;
  const schema = reuploaded ? schemaRef(madeName(resource)) : answered;
  return {
    at: `${method} ${action.path}`,
    id,
    summary: title,
    description: says,
    access: 'apiSecret',
    parameters: query ? queryParameters(query) : [],
    ...(given && { body: { [JSON_TYPE]: given } }),
    answers: { [status]: done('It is done.', schema) },
    errors: [
      ...(query ? (['invalid_parameter'] as const) : []),
      ...(resource ? absentErrors(resource, 'read') : []),
      ...refusals,
    ],
  };
}

function schemaName({ type }: Resource): string {
  return capital(camelCase(type));
}

/** The name of the answer that creates a resource: it may have fields that no other has. */
function madeName(resource: Resource): string {
  const hasMore = Object.values(resource.shown).some(({ once }) => once);
  return `${schemaName(resource)}${hasMore ? 'Made' : ''}`;
}

const Moment = z.string().meta({ format: 'date-time' });

function answerSchema(resource: Resource, isNew: boolean): z.ZodType {
  const { type, noun, says, shown, metadata, relationships = {} } = resource;
  const related = Object.entries(relationships).map(
    ([name, field]) => [name, described(field.schema, field.says).optional()] as const,
  );
  return described(
    z.object({
      id: described(z.string(), `The id of the ${noun}.`),
      type: described(z.literal(type), 'The type of the resource.'),
      created: described(Moment, 'When it was created.'),
      last_modified: described(Moment, 'When it was last changed.'),
      ...shownSchemas(shown, isNew),
      metadata: described(z.object(keptSchemas(metadata)), 'The metadata. An update changes it.'),
      relationships: described(z.object(Object.fromEntries(related)), 'The related resources.'),
      schema: described(z.null(), 'Always `null`.'),
    }),
    says,
  );
}

function shownSchemas(fields: ShownFields, isNew: boolean): Record<string, z.ZodType> {
  const shown = Object.entries<ShownField>(fields).flatMap(([name, { schema, says, once, unseen }]) => {
    if (unseen || (once && !isNew)) return [];
    const field = described(schema, says);
    return [[name, once && name !== 'secret' ? field.optional() : field] as const];
  });
  return Object.fromEntries(shown);
}

function keptSchemas(fields: SetFields): Record<string, z.ZodType> {
  const kept = Object.entries(valueForms(fields)).flatMap(([name, form]) =>
    fields[name]?.unseen ? [] : [[name, described(form, fields[name]?.says ?? '')] as const],
  );
  return Object.fromEntries(kept);
}

function pageSchema(resource: Resource): OpenApi.SchemaObject {
  const { plural, alsoListedAs } = resource;
  const items = { type: 'array', items: schemaRef(schemaName(resource)) } as const;
  const page = z.object({
    page: described(z.int(), 'The page, from 1.'),
    page_length: described(z.int(), 'How many a page has at most.'),
    total: described(z.int(), 'How many there are on all pages.'),
  });
  const properties: OpenApi.SchemaObject['properties'] = {
    ...jsonSchema(page).properties,
    [plural]: { ...items, description: 'Those of this page.' },
    ...(alsoListedAs !== undefined && {
      [alsoListedAs]: { ...items, description: 'The same once more, as a released client reads it.' },
    }),
  };
  return { type: 'object', description: 'A page.', required: Object.keys(properties), properties };
}

export function resourceSchemas(siteId: string): Record<string, OpenApi.SchemaObject> {
  const schemas: Record<string, OpenApi.SchemaObject> = {};
  for (const resource of RESOURCES) {
    const { verbs, actions } = resource;
    const name = schemaName(resource);
    schemas[name] = jsonSchema(answerSchema(resource, false));
    if (madeName(resource) !== name) schemas[madeName(resource)] = jsonSchema(answerSchema(resource, true));
    if (verbs.includes('list')) schemas[`${name}Page`] = pageSchema(resource);
    for (const verb of ['create', 'update'] as const)
      if (verbs.includes(verb))
        schemas[`${name}${capital(verb)}`] = {
          ...jsonSchema(bodySchema(resource, verb)),
          examples: [exampleBody(resource, verb, siteId)],
        };
    if (actions?.reupload) schemas[`${name}Reupload`] = jsonSchema(uploadSchema(resource));
  }
  return schemas;
}

function exampleBody({ type, noun, metadata }: Resource, verb: 'create' | 'update', siteId: string): object {
  const name = ['title', 'name', 'label'].find((field) => field in metadata);
  const titled = name === undefined ? {} : { [name]: `My ${noun}` };
  if (verb === 'update') return { metadata: titled };
  if (type === 'media_rendition') return { relationships: { media_rendition_template: { id: '270p' } } };
  const webhook = { webhook_url: 'https://example.com/', events: ['media_available'], site_ids: [siteId] };
  const needed = type === 'webhook' ? webhook : type === 'import' ? { url: 'https://example.com/' } : {};
  return { metadata: { ...titled, ...needed } };
}

const words = (name: string) => name.replaceAll('_', ' ');

export const LIBRARY = RESOURCES.map(
  (resource): Group => ({
    tag: tagOf(resource),
    says: resource.says,
    rows: [
      ...resource.verbs.map((verb) => verbRow(resource, verb)),
      ...actionRows(resource.actions ?? {}, resource),
    ],
  }),
);

export const SITES: Group = {
  tag: 'Sites',
  says: 'Actions on all media of a site, and the usage of sites.',
  rows: actionRows({ ...TAG_ACTIONS, ...USAGE_ACTIONS }),
};
