import { nearestName } from '../../drm/nearest';
import { listParameter, listParametersOf, readListParameters } from './lists';
import {
  AUTHENTICATION,
  CUSTOM,
  FIELDS,
  type FieldMapping,
  isAuthentication,
  parametersOf,
  SETUP_CONFIG,
} from './mapping/fields';
import type { RouteMapping, V1Resource } from './mapping/routes';
import { FORMS } from './mapping/sentences';
import {
  isPlaceholder,
  type Json,
  type JsonObject,
  objectIn,
  toV1Value,
  toV2Value,
  valueIn,
} from './mapping/values';

/** The parameters of a v1 call, by name; a name that was sent several times has all its values. */
export type V1Parameters = Readonly<Record<string, string | readonly string[]>>;

/** A body of v2; parts that have nothing are absent. That of an action has its fields at top level. */
export interface V2Body {
  readonly [field: string]: Json;
  readonly metadata?: JsonObject;
  readonly upload?: JsonObject;
  readonly relationships?: JsonObject;
}

export type V2Parts = ReturnType<typeof readParameters>;

/** Puts the parameters of a call where v2 wants them. Never throws: it reports values that v2 can't take. */
export function readParameters(
  mapping: RouteMapping,
  parameters: V1Parameters,
  { searchesCustom = false } = {},
) {
  const fields = parametersOf(mapping);
  const texts = textsIn(mapping, fields, parameters);
  const list = readListParameters(mapping, texts, searchesCustom);
  const used: FieldMapping[] = [];
  const faults = [...(list?.faults ?? [])];
  /** For variables whose values have another form in v1. */
  const forms: { readonly field: string; readonly sentence: string }[] = [];
  const parts = emptyRecord<Json>();
  for (const field of fields) {
    const text = texts[field.v1];
    if (text === undefined) continue;
    used.push(field);
    if (field.request === undefined) continue;
    const value = toV2Value(field.kind, text);
    const sentence = FORMS[field.kind];
    if (sentence !== undefined && isPlaceholder(text)) forms.push({ field: field.v1, sentence });
    if (value.ok) put(parts, field.request.split('.'), value.value);
    else faults.push({ field: field.v1, fault: value.fault });
  }
  const rest = Object.keys(texts).filter(
    (name) =>
      !isAuthentication(name) &&
      !listParameter(mapping, name) &&
      !fields.some(({ v1 }) => v1 === name) &&
      customName(mapping, name) === undefined,
  );
  const options = mapping.resource === 'player' && mapping.v2[0]?.method.startsWith('P') ? rest : [];
  for (const name of options) {
    const value = toV2Value('option', texts[name] ?? '');
    if (value.ok) put(parts, [...SETUP_CONFIG.split('.'), name], value.value);
  }
  const known = [...fields, ...listParametersOf(mapping)].map(({ v1 }) => v1);
  return {
    ids: textsOf({ ...objectIn(parts, 'path'), ...objectIn(parts, 'lookup') }),
    /** Without `custom_params`, which are in `custom`. */
    body: bodyOf(mapping, parts),
    custom: customChanges(mapping, texts),
    /** Which member of a playlist is meant (`id`, `position`, `before`, `after`); for `/v1/channels/videos/…` alone. */
    member: objectIn(parts, 'member'),
    list,
    used,
    /** Options of a player that v1 had no field for. */
    options,
    faults,
    forms,
    /** Parameters that the route isn't known to have, with the known name that may have been meant. */
    unknown: (options.length > 0 ? [] : rest).map((field) => ({
      field,
      near: nearestName(field, [...new Set([...known, ...AUTHENTICATION])]),
    })),
    authentication: Object.keys(texts).filter(isAuthentication),
  };
}

/** Of several values of a name the last counts; those of a list, as of `tags`, are all of it. */
function textsIn(
  mapping: RouteMapping,
  fields: readonly FieldMapping[],
  parameters: V1Parameters,
): Record<string, string> {
  const lists = [...fields, ...listParametersOf(mapping)]
    .filter(({ kind }) => kind === 'list' || kind === 'tags' || kind === 'any_of')
    .map(({ v1 }) => v1);
  const texts = emptyRecord<string>();
  for (const [name, value] of Object.entries(parameters)) {
    const values = typeof value === 'string' ? [value] : value;
    const text = lists.includes(name) ? values.join(',') : values.at(-1);
    if (text !== undefined && values.length > 0) texts[name] = text;
  }
  return texts;
}

function bodyOf({ resource, action }: RouteMapping, parts: Readonly<Record<string, Json>>): V2Body {
  const isNew = ['video', 'track'].includes(resource) && action === 'create';
  const upload = uploadOf(objectIn(parts, 'upload'), isNew);
  return {
    ...objectIn(parts, 'action'),
    ...(parts.metadata !== undefined && { metadata: objectIn(parts, 'metadata') }),
    ...(Object.keys(upload).length > 0 && { upload }),
    ...(parts.relationships !== undefined && { relationships: objectIn(parts, 'relationships') }),
  };
}

/** v1 knew from the parameters how a file comes; v2 wants it said in `method`. */
function uploadOf(given: JsonObject, isNew: boolean): JsonObject {
  const { method, ...upload } = given;
  const said = method === 'direct' ? undefined : (method ?? undefined);
  const implied =
    (upload.download_url !== undefined && 'fetch') || (upload.source_url !== undefined && 'external');
  const needed = isNew || method === 'direct' || Object.keys(upload).length > 0;
  const chosen = said ?? (implied || (needed ? 'direct' : undefined));
  return chosen === undefined ? upload : { method: chosen, ...upload };
}

/** The name of a custom parameter, with its `-` if it has one; undefined for any other parameter. */
function customName({ resource, action }: RouteMapping, name: string): string | undefined {
  if (!CUSTOM.includes(resource) || !['create', 'update'].includes(action)) return undefined;
  return /^custom\.(-?.+)$/su.exec(name)?.[1];
}

/** v1 sets some custom parameters, takes some away, and leaves the others. */
function customChanges(mapping: RouteMapping, texts: Readonly<Record<string, string>>) {
  const set = emptyRecord<string>();
  const removed: string[] = [];
  for (const [parameter, text] of Object.entries(texts)) {
    const name = customName(mapping, parameter);
    if (name === undefined) continue;
    if (name.length > 1 && name.startsWith('-')) removed.push(name.slice(1));
    else set[name] = text;
  }
  return { set, removed };
}

/** The custom parameters after the changes; v2 wants all of them, as it replaces them as a whole. */
export function changeCustom(
  before: Readonly<Record<string, string>>,
  { set, removed }: ReturnType<typeof customChanges>,
): Record<string, string> {
  const after = Object.assign(emptyRecord<string>(), before);
  for (const name of removed) delete after[name];
  return Object.assign(after, set);
}

/** Leaves out what v2 has nothing for. Custom parameters are in `custom`, player options at top level. */
export function v1Fields(resource: V1Resource, answer: JsonObject): Record<string, Json> {
  const fields = emptyRecord<Json>();
  for (const { v1, kind, answer: place } of FIELDS[resource]) {
    const value = place === undefined ? undefined : valueIn(answer, ...place.split('.'));
    if (value !== undefined) fields[v1] = toV1Value(kind, value);
  }
  if (resource === 'player') addOptions(fields, answer);
  const custom = CUSTOM.includes(resource) ? valueIn(answer, 'metadata', 'custom_params') : undefined;
  if (custom !== undefined) fields.custom = custom;
  return fields;
}

/** Options that v1 had no name for keep the name that they have in `setup_config`. */
function addOptions(fields: Record<string, Json>, answer: JsonObject): void {
  const path = SETUP_CONFIG.split('.');
  const named = FIELDS.player.flatMap(({ answer: place }) => place?.split('.').slice(path.length)[0] ?? []);
  for (const [name, value] of Object.entries(objectIn(answer, ...path))) {
    if (!named.includes(name) && !(name in fields)) fields[name] = value;
  }
}

/** Without a prototype: the names come from the caller. */
function emptyRecord<Value>(): Record<string, Value> {
  return Object.create(null);
}

function put(target: Record<string, Json>, path: readonly string[], value: Json): void {
  const [name = '', ...rest] = path;
  if (rest.length === 0) {
    target[name] = value;
    return;
  }
  const inner = Object.assign(emptyRecord<Json>(), objectIn(target, name));
  put(inner, rest, value);
  target[name] = inner;
}

export function textsOf(values: JsonObject): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}
