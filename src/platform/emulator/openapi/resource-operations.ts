import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { type Answer, type Method, schemaRef } from '../../../http/openapi';
import { MAX_PAGE_LENGTH, PAGE_LENGTH } from '../listing/list';
import { actionSchema } from '../resources/body';
import type { SetFields } from '../resources/fields';
import type { Action, Resource, Verb } from '../resources/resource';
import { ACTIONS, RESOURCES } from '../resources/table';
import {
  type AnsweredError,
  managementErrors,
  operation,
  type PathItem,
  pathParameters,
  RATE_HEADERS,
  type Seeded,
  templateOf,
} from './operation';
import { actionExample, type Shown, shownExample, verbExamples } from './resource-examples';
import { jsonSchema, madeName, schemaName, shownSchemas } from './schemas';

const JSON_TYPE = 'application/json';

/** Of a text or a number: lists are no parameters here. */
type ParameterSchema = NonNullable<OpenApi.ParameterObject['schema']>;

/** Every operation of the management API, from the table of resources. */
export function resourceOperations(seeded: Seeded): Record<string, PathItem> {
  const paths: Record<string, PathItem> = {};
  const add = (path: string, method: Method, made: PathItem[Method]) => {
    const template = managementPath(path);
    paths[template] = { ...paths[template], [method]: made };
  };
  for (const resource of RESOURCES) {
    for (const verb of resource.verbs) {
      const { method, path } = VERBS[verb];
      add(resource[path], method, verbOperation(resource, verb, seeded));
    }
    for (const [name, action] of Object.entries(resource.actions ?? {})) {
      action.methods.forEach((method, place) => {
        const id = `${name}_${resource.type}${place > 0 ? `_by_${method.toLowerCase()}` : ''}`;
        add(action.path, lower(method), actionOperation({ id, name, action, method, seeded, resource }));
      });
    }
  }
  for (const [name, action] of Object.entries(ACTIONS)) {
    for (const method of action.methods) {
      add(action.path, lower(method), actionOperation({ id: name, name, action, method, seeded }));
    }
  }
  return paths;
}

const SITES_TAG = 'Sites';

/** The tags of the operations, in their order. */
export function resourceTags(): { name: string; description: string }[] {
  return [
    ...RESOURCES.map((resource) => ({ name: tagOf(resource), description: resource.says })),
    { name: SITES_TAG, description: 'What acts on all media of a site, and what sites have used.' },
  ];
}

/** The types of playlists have the plural of all of them in common. */
function tagOf({ type, plural }: Resource): string {
  const words = type.endsWith('_playlist') ? `${type}s` : plural;
  return capital(words.replaceAll('_', ' '));
}

/** The specification writes the paths of the management API with a slash at their end; they are taken without, too. */
function managementPath(path: string): string {
  return `${templateOf(path)}/`;
}

const VERBS = {
  list: { method: 'get', path: 'collection', title: 'List' },
  create: { method: 'post', path: 'collection', title: 'Create' },
  read: { method: 'get', path: 'one', title: 'Read' },
  update: { method: 'patch', path: 'one', title: 'Update' },
  delete: { method: 'delete', path: 'one', title: 'Delete' },
} as const satisfies Record<Verb, { method: Method; path: 'collection' | 'one'; title: string }>;

function verbOperation(resource: Resource, verb: Verb, seeded: Seeded) {
  const { method, path: place, title } = VERBS[verb];
  const path = managementPath(resource[place]);
  const name = schemaName(resource);
  const takesBody = verb === 'create' || verb === 'update';
  const plural = resource.plural.replaceAll('_', ' ');
  return operation({
    method,
    path,
    operationId: verb === 'list' ? `list${capital(camelCase(resource.plural))}` : `${verb}${name}`,
    tag: tagOf(resource),
    summary: `${title} ${verb === 'list' ? plural : withArticle(resource.noun)}`,
    description: saysOf(resource, verb),
    access: 'management',
    parameters: [...pathParameters(path, seeded), ...(verb === 'list' ? listParameters(resource) : [])],
    ...(takesBody && { body: { [JSON_TYPE]: schemaRef(`${name}${capital(verb)}`) } }),
    answers: verbAnswers(resource, verb),
    examples: verbExamples(resource, verb, seeded),
    errors: [
      ...(verb === 'list' ? (['invalid_parameter'] as const) : []),
      ...(takesBody ? BODY_ERRORS : []),
      ...managementErrors(path, method === 'get' ? 'Viewer' : 'Editor'),
      // The sites of a webhook are in its body.
      ...(resource.type === 'webhook' && takesBody ? (['site_forbidden'] as const) : []),
      ...absentErrors(resource, verb),
      ...(resource.refusals?.[verb] ?? []),
    ],
  });
}

const BODY_ERRORS = ['invalid_body', 'malformed_json', 'body_too_large'] as const;

function saysOf({ noun, says, plural }: Resource, verb: Verb): string {
  const sentences = {
    list: `The ${plural.replaceAll('_', ' ')}, the newest first unless \`sort\` says otherwise.`,
    create: says,
    read: says,
    update:
      'Changes the fields that `metadata` names, each as a whole; the others stay. `null` takes a value away where there need be none.',
    delete: `Deletes the ${noun} for good.`,
  };
  return sentences[verb];
}

function absentErrors({ collection, noun }: Resource, verb: Verb): readonly AnsweredError[] {
  const owner = [...collection.matchAll(/:(\w+)Id/g)].at(-1)?.[1];
  const isBelowOne = owner !== undefined && owner !== 'site';
  if (verb === 'list' || verb === 'create') {
    if (!isBelowOne) return [];
    const says = `This site has no ${owner} with this id.`;
    return [{ status: 404, code: 'not_found', when: `There is no such ${owner}.`, says }];
  }
  const says = `This ${owner ?? 'account'} has no ${noun} with this id.`;
  return [{ status: 404, code: 'not_found', when: `There is no such ${noun}.`, says }];
}

function verbAnswers(resource: Resource, verb: Verb): Record<number, Answer> {
  const headers = RATE_HEADERS;
  const name = schemaName(resource);
  const answer = (status: number, description: string, schema: string) => ({
    [status]: { description, headers, content: { [JSON_TYPE]: schemaRef(schema) } },
  });
  if (verb === 'delete') return { 204: { description: 'It is deleted.', headers } };
  if (verb === 'list') return answer(200, 'A page.', `${name}Page`);
  if (verb === 'create') return answer(201, 'It is made.', madeName(resource));
  return answer(200, `The ${resource.noun}.`, name);
}

function listParameters(resource: Resource): OpenApi.ParameterObject[] {
  const fields = filterNames(resource).map((name) => `\`${name}\``);
  const parameter = (name: string, description: string, schema: ParameterSchema) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema,
  });
  return [
    parameter(
      'q',
      `Which to list: \`field: word\`, \`field: "several words"\` or \`field: [from TO to]\`, joined by \`AND\`, \`OR\`, \`NOT\` and parentheses. \`*\` stands for any text, and a backslash takes the next character as it is. Fields: ${fields.join(', ')}.`,
      { type: 'string' },
    ),
    parameter(
      'sort',
      'In which order: `field:asc` or `field:dsc`, several joined by commas. The fields are those of `q`.',
      { type: 'string', default: 'created:dsc' },
    ),
    parameter('page', 'Which page, from 1.', { type: 'integer', minimum: 1, default: 1 }),
    parameter('page_length', 'How many a page has at most.', {
      type: 'integer',
      minimum: 1,
      maximum: MAX_PAGE_LENGTH,
      default: PAGE_LENGTH,
    }),
  ];
}

/** The fields that lists of a resource are filtered by. */
function filterNames({ shown, metadata }: Resource): string[] {
  const named = [...Object.entries(shown), ...Object.entries(metadata)].flatMap(([name, { filter }]) =>
    filter ? [name] : [],
  );
  const params = 'custom_params' in metadata ? ['custom_params.<name>'] : [];
  return [...new Set(['id', 'created', 'last_modified', ...named, ...params])];
}

interface DescribedAction {
  /** The name of the operation, in snake case. */
  readonly id: string;
  readonly name: string;
  readonly action: Action;
  readonly method: Action['methods'][number];
  readonly seeded: Seeded;
  /** Without one, it acts on a site. */
  readonly resource?: Resource;
}

function actionOperation({ id, name, action, method, seeded, resource }: DescribedAction) {
  const path = managementPath(action.path);
  const { status, refusals = [] } = action;
  const example = actionExample(name, seeded);
  const query = Object.entries(example.query ?? {}).length > 0 && { query: example.query ?? {} };
  const answered = answerOf(action, resource, seeded);
  const body = action.upload && resource ? schemaRef(`${schemaName(resource)}Reupload`) : bodyOf(action);
  const request = { ...query, ...(example.body && { body: { type: JSON_TYPE, value: example.body } }) };
  const content = answered && { content: { [JSON_TYPE]: answered.schema } };
  const value = example.answer ?? answered?.value;
  return operation({
    method: lower(method),
    path,
    operationId: camelCase(id),
    tag: resource ? tagOf(resource) : SITES_TAG,
    summary: action.title,
    description: action.says,
    access: 'management',
    parameters: [...pathParameters(path, seeded), ...queryParameters(action.query ?? {})],
    ...(body && { body: { [JSON_TYPE]: body } }),
    answers: { [status]: { description: 'It is done.', headers: RATE_HEADERS, ...content } },
    examples: {
      [name]: {
        summary: action.title,
        ...request,
        answer: { status, ...(answered && { type: JSON_TYPE, value }) },
      },
    },
    errors: [
      ...(body ? BODY_ERRORS : []),
      ...(action.query ? (['invalid_parameter'] as const) : []),
      ...managementErrors(path, method === 'GET' ? 'Viewer' : 'Editor'),
      ...(resource ? absentErrors(resource, 'read') : []),
      ...refusals.map((refusal) => ({ ...refusal, says: refusal.when })),
    ],
  });
}

function bodyOf({ body }: Action) {
  return body && jsonSchema(actionSchema(body));
}

function answerOf({ answer, upload }: Action, resource: Resource | undefined, seeded: Seeded) {
  if (upload && resource) {
    const value: Shown = shownExample(resource, seeded, { made: 'direct' });
    return { schema: schemaRef(madeName(resource)), value };
  }
  return answer && { schema: jsonSchema(z.object(shownSchemas(answer))), value: undefined };
}

function queryParameters(fields: SetFields): OpenApi.ParameterObject[] {
  return Object.entries(fields).map(([name, { schema, says, required = false }]) => ({
    name,
    in: 'query',
    required,
    description: says,
    schema: jsonSchema(schema) as ParameterSchema,
  }));
}

function lower<Verb extends string>(method: Verb): Lowercase<Verb> {
  return method.toLowerCase() as Lowercase<Verb>;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_whole, letter: string) => letter.toUpperCase());
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}
