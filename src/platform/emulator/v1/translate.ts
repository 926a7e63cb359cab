import type { ListQuery } from '../../migration/lists';
import { V1_LIMIT } from '../../migration/lists';
import type { RouteMapping } from '../../migration/mapping/routes';
import {
  isObject,
  isPlaceholder,
  type JsonObject,
  objectIn,
  splitList,
} from '../../migration/mapping/values';
import { changeCustom, readParameters, textsOf, type V2Parts, v1Fields } from '../../migration/parameters';
import type { EmulatorContext } from '../context';
import type { Window } from '../listing/list';
import type { PathIds, View } from '../resources/resource';
import { type ResourceCalls, viewOf } from '../resources/resource-calls';
import { v1Error } from './errors';
import type { V1Call } from './signed-call';

export interface Translated {
  readonly context: EmulatorContext;
  readonly siteId: string;
  readonly parts: V2Parts;
  /** The last value of each parameter. */
  readonly given: ReadonlyMap<string, string>;
  readonly view: View;
}

export type Handler = (call: Translated) => JsonObject | Promise<JsonObject>;

/** The parameters of a call where v2 has them. @throws HttpError for the first that can't be used. */
export function translate(context: EmulatorContext, mapping: RouteMapping, call: V1Call): Translated {
  // v1 also searches in all custom parameters at once, as `search:custom.*`.
  const parts = readParameters(mapping, call.parameters, { searchesCustom: true });
  const [fault] = parts.faults;
  if (fault) throw v1Error('ParameterInvalid', `${fault.field} ${fault.fault}.`);
  const [unknown] = parts.unknown;
  if (unknown) {
    const meant = unknown.near === undefined ? '' : ` Did you mean ${unknown.near}?`;
    const message = `${unknown.field.slice(0, 100)} is not a parameter of ${mapping.route}.${meant}`;
    throw v1Error('NotSupported', message);
  }
  const given = new Map(
    Object.entries(call.parameters).map(([name, value]) => [name, [value].flat().at(-1) ?? '']),
  );
  if (parts.list) checkList(parts.list, given);
  return { context, siteId: call.siteId, parts, given, view: viewOf(context, call.request) };
}

/** The longest search and order: in v2, each field repeats the search. */
const MAX_SEARCH_LENGTH = 200;

/** Refuses parameters that the migration tool leaves to a person. @throws HttpError ParameterInvalid. */
function checkList({ notes }: ListQuery, given: Translated['given']): void {
  for (const [name, value] of given) {
    const isSearch = name === 'search' || name.startsWith('search:') || name === 'order_by';
    if (isSearch && value.length > MAX_SEARCH_LENGTH) {
      const message = `${name.slice(0, 100)} is longer than ${MAX_SEARCH_LENGTH} characters.`;
      throw v1Error('ParameterInvalid', message);
    }
    if (['result_limit', 'result_offset', 'order_by'].includes(name) && isPlaceholder(value)) {
      throw v1Error('ParameterInvalid', `${name} is a placeholder. Send a value.`);
    }
  }
  const unlisted = notes.find(({ field, byHand }) => byHand && /^(?:order_by$|search:)/.test(field));
  if (!unlisted) return;
  const message = `${unlisted.field.slice(0, 100)} names a field that this list does not have.`;
  throw v1Error('ParameterInvalid', message);
}

/** A required parameter. @throws HttpError ParameterMissing, ParameterEmpty. */
export function required({ given }: Pick<Translated, 'given'>, name: string): string {
  const value = given.get(name);
  if (value === undefined) throw v1Error('ParameterMissing', `${name} is missing.`);
  if (value.trim() === '') throw v1Error('ParameterEmpty', `${name} is empty.`);
  return value;
}

export function optional({ given }: Pick<Translated, 'given'>, name: string): string | undefined {
  const value = given.get(name);
  return value === undefined || value.trim() === '' ? undefined : value;
}

/** A whole number that may be left out. @throws HttpError ParameterInvalid. */
export function wholeNumber(call: Pick<Translated, 'given'>, name: string): number | undefined {
  const value = optional(call, name);
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw v1Error('ParameterInvalid', `${name} must be a whole number, 0 or more.`);
}

/** The keys in a parameter, which has commas between them. @throws HttpError. */
export function keysIn(call: Translated, name: string): readonly string[] {
  const keys = splitList(required(call, name));
  if (keys.length === 0) throw v1Error('ParameterEmpty', `${name} is empty.`);
  if (keys.length > MAX_LIMIT) {
    throw v1Error('ParameterInvalid', `${name} has more than ${MAX_LIMIT} keys.`);
  }
  return [...new Set(keys)];
}

export function notFound(name: string, key: string) {
  return v1Error('NotFound', `${name}: there is nothing with the key ${key.slice(0, 50)}.`);
}

/** A resource of v2 with its ids, or the list of such resources. */
export interface Found {
  readonly calls: ResourceCalls;
  readonly ids: PathIds;
}

interface V1Kind {
  readonly name: 'video' | 'channel' | 'player' | 'track';
  /** The one with this key, or without one their list. @throws HttpError NotFound */
  readonly find: (call: Translated, key?: string) => Found;
  readonly show?: (call: Translated, resource: JsonObject) => JsonObject;
  /** The metadata that an update gives, where it doesn't keep to custom parameters. @param before as v2 has it. */
  readonly metadata?: (call: Translated, before: JsonObject) => JsonObject;
}

export function commonHandlers({ name, find, show, metadata = metadataIn }: V1Kind) {
  const shown = show ?? ((_call: Translated, resource: JsonObject) => v1Fields(name, resource));
  const findAsked = (call: Translated) => find(call, required(call, `${name}_key`));
  return {
    list(call) {
      const window = listedWindow(call);
      const { sort, q } = call.parts.list?.query ?? {};
      const { calls, ids } = find(call);
      const page = calls.list(ids, { sort, q }, call.view, window);
      const items = itemsOf(page, calls.resource.plural).map((item) => shown(call, item));
      return { ...window, total: Number(page.total), [`${name}s`]: items };
    },
    show(call) {
      const { calls, ids } = findAsked(call);
      return { [name]: shown(call, calls.read(ids, call.view)) };
    },
    update(call) {
      const { calls, ids } = findAsked(call);
      calls.update(ids, { metadata: metadata(call, calls.read(ids, call.view)) }, call.view);
      return {};
    },
    /** All or nothing. */
    delete(call) {
      const all = keysIn(call, `${name}_key`).map((key) => find(call, key));
      for (const { calls, ids } of all) calls.read(ids, call.view);
      for (const { calls, ids } of all) calls.remove(ids);
      return {};
    },
  } satisfies Readonly<Record<string, Handler>>;
}

/** The most that a list of v1 has at once, and that a call deletes. */
const MAX_LIMIT = 1000;

/** The window that `result_limit` and `result_offset` ask for. @throws HttpError ParameterInvalid. */
export function windowOf(limit: number | undefined = V1_LIMIT, offset: number | undefined = 0): Window {
  if (limit > MAX_LIMIT) {
    throw v1Error('ParameterInvalid', `result_limit must be at most ${MAX_LIMIT}.`);
  }
  // No limit is the largest there is.
  return { limit: limit === 0 ? MAX_LIMIT : limit, offset };
}

export function listedWindow({ parts: { list } }: Translated): Window {
  return windowOf(list?.limit, list?.offset);
}

function itemsOf(page: JsonObject, name: string): readonly JsonObject[] {
  const items = page[name];
  return Array.isArray(items) ? items.filter(isObject) : [];
}

/** The metadata that a call gives, with the custom parameters that it leaves. @param before of an update. */
export function metadataIn({ parts: { body, custom } }: Translated, before: JsonObject = {}): JsonObject {
  const params = textsOf(objectIn(before, 'metadata', 'custom_params'));
  return { ...body.metadata, custom_params: changeCustom(params, custom) };
}

/** All that belongs to one thing, oldest first; there are never many. */
export function everything(calls: ResourceCalls, ids: PathIds, view: View): readonly JsonObject[] {
  const query = { page_length: String(MAX_LIMIT), sort: 'created:asc' };
  return itemsOf(calls.list(ids, query, view), calls.resource.plural);
}
