import type { Express, IRoute, Request, Response } from 'express';
import * as z from 'zod';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import type { JsonObject } from '../../migration/mapping/values';
import { originOf } from '../addresses';
import { type CredentialParts, callerOf, reachesSite, requireCredential } from '../auth';
import { type Clock, wireTime } from '../clock';
import { readJson, validated } from '../json-body';
import type { Field, Fields } from '../listing/filter';
import { listPage, type Window } from '../listing/list';
import { bodySchema, readResourceBody, uploadSchema, valuesAfter } from './body';
import { camelCase, type ShownField } from './fields';
import {
  type Action,
  type ActionCall,
  type Behaviour,
  isChange,
  type Kept,
  type MetadataOf,
  type PathIds,
  type Resource,
  VERBS,
  type Verb,
  type View,
} from './resource';

export type ResourceCalls = ReturnType<typeof callsOf>;

/**
 * The calls of a resource, for the routes of v2 and v1, the dashboard and the control port.
 * @param now the platform's clock, for the fields that lists are filtered by.
 */
export function callsOf<R extends Resource, Item extends Kept<R>>(
  resource: R,
  behaviour: Behaviour<R, Item>,
  now: () => Date,
) {
  // Schemas are made when they are needed: those of all resources would be a part of every start.
  const anyView = { origin: '', now };
  const schemas = lazy(() => ({
    create: bodySchema(resource, 'create'),
    update: bodySchema(resource, 'update'),
    upload: uploadSchema(resource),
  }));
  const shownBy: Readonly<Record<string, ((item: Item, view: View) => unknown) | undefined>> =
    behaviour.shown ?? {};
  /** The value of a field that the platform sets: the behaviour's, or the item's own of this name in camel case. */
  const shownValue = (name: string, item: Item, view: View): unknown => {
    const fields: object = item;
    const own = (fields as Readonly<Record<string, unknown>>)[camelCase(name)];
    return shownBy[name] ? shownBy[name](item, view) : own;
  };
  const fields = lazy((): Fields<Item> => {
    const named: Record<string, Field<Item>> = {
      id: { kind: 'text', of: ({ id }) => id },
      created: { kind: 'time', of: ({ created }) => created },
      last_modified: { kind: 'time', of: ({ lastModified }) => lastModified },
    };
    for (const [name, { filter }] of Object.entries<ShownField>(resource.shown))
      if (filter) named[name] = { kind: filter, of: (item) => shownValue(name, item, anyView) };
    for (const [name, { filter, otherwise }] of Object.entries(resource.metadata))
      if (filter)
        named[name] = { kind: filter, of: (item) => item.metadata[name] ?? (otherwise && item[otherwise]) };
    if (!('custom_params' in resource.metadata)) return { named };
    return {
      named,
      paramsOf: ({ metadata }) =>
        (metadata as { readonly custom_params: Readonly<Record<string, string>> }).custom_params,
    };
  });
  const { store, parent, sees = () => true } = behaviour;
  const {
    update = (item: Item, metadata: MetadataOf<R>) => store.change(item, { metadata } as Partial<Item>),
    remove = (item: Item) => store.remove(item),
  } = behaviour;
  const ownerIn = (ids: PathIds) => {
    parent?.(ids);
    return ids[store.owner ?? ''];
  };
  const [, idName = ''] = /:(\w+)[^:]*$/.exec(resource.one) ?? [];
  const found = (ids: PathIds, view: View): Item => {
    const item = store.findOf(ownerIn(ids), ids[idName] ?? '');
    if (item && sees(item, view)) return item;
    throw notFound(resource);
  };
  const shown = (item: Item, view: View, isNew = false): JsonObject => {
    const values = Object.entries<ShownField>(resource.shown).flatMap(([name, { unseen, once }]) =>
      unseen || (once && !isNew) ? [] : [[name, shownValue(name, item, view)] as const],
    );
    const metadata = Object.entries(resource.metadata).flatMap(([name, { unseen }]) =>
      unseen ? [] : [[name, item.metadata[name]] as const],
    );
    return {
      id: item.id,
      type: resource.type,
      created: wireTime(item.created),
      last_modified: wireTime(item.lastModified),
      ...Object.fromEntries(values),
      metadata: Object.fromEntries(metadata),
      relationships: behaviour.relationships?.(item) ?? {},
      schema: null,
    } as JsonObject;
  };

  return {
    resource: resource as Resource,
    /** A page of them, or a window. `query` is that of a list. @throws HttpError 400, 404 */
    list(ids: PathIds, query: unknown, view: View, window?: Window): JsonObject {
      const render = (item: Item) => shown(item, view);
      const items = store.of(ownerIn(ids)).filter((item) => sees(item, view));
      const page = listPage(items, query, resource.plural, fields(), render, window);
      const { alsoListedAs: other } = resource;
      return (other === undefined ? page : { ...page, [other]: page[resource.plural] }) as JsonObject;
    },
    /** @throws HttpError 400 with every problem of the body. */
    async create(ids: PathIds, body: unknown, view: View): Promise<JsonObject> {
      if (!behaviour.create) throw new Error(`A ${resource.noun} cannot be made.`);
      const given = readResourceBody(resource, schemas().create, body, 'create');
      const metadata = valuesAfter(resource.metadata, given.metadata) as MetadataOf<R>;
      return shown(await behaviour.create(ids, { ...given, metadata }, view), view, true);
    },
    /** @throws HttpError 404 */
    read: (ids: PathIds, view: View): JsonObject => shown(found(ids, view), view),
    /** @throws HttpError 400, 404 */
    update(ids: PathIds, body: unknown, view: View): JsonObject {
      const item = found(ids, view);
      const given = readResourceBody(resource, schemas().update, body, 'update');
      const metadata = valuesAfter(resource.metadata, given.metadata, item.metadata) as MetadataOf<R>;
      update(item, metadata, given, view);
      return shown(item, view);
    },
    /** Changes nothing. @throws HttpError 400, 404, as `update` would. */
    checkUpdate(ids: PathIds, body: unknown, view: View): void {
      found(ids, view);
      readResourceBody(resource, schemas().update, body, 'update');
    },
    /** @param view without one, every item is found. @throws HttpError 404 */
    remove(ids: PathIds, view: View = anyView): undefined {
      remove(found(ids, view));
      return undefined;
    },
    /** The answer of an action, or undefined when it has none. @throws HttpError 400, 404, 409 */
    async act(
      name: string,
      ids: PathIds,
      { body, query }: { readonly body?: unknown; readonly query?: unknown },
      view: View,
    ): Promise<JsonObject | undefined> {
      const action = resource.actions?.[name];
      const acts: Readonly<Record<string, (item: Item, call: ActionCall) => unknown>> =
        behaviour.actions ?? {};
      const act = acts[name];
      if (!act || !action) throw new Error(`A ${resource.noun} has no action ${name}.`);
      const item = found(ids, view);
      const done = await act(item, {
        upload: action.upload
          ? readResourceBody<Resource>(resource, schemas().upload, body, 'create').upload
          : {},
        query: validated(action.query ?? z.object({}), query ?? {}, 'invalid_parameter'),
        view,
      });
      return done === 'item' ? shown(item, view, true) : (done as JsonObject | undefined);
    },
  };
}

export function lazy<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export function conflict(description: string): HttpError {
  return new HttpError(409, { code: 'conflict', description });
}

export function notFound(resource: Resource): HttpError {
  const owner = [...resource.one.matchAll(/:(\w+)Id\b/g)].at(-2)?.[1] ?? 'account';
  const description = `This ${owner} has no ${resource.noun} with this id.`;
  return new HttpError(404, { code: 'not_found', description });
}

type AnyRequest = Request<Record<string, string>>;

export interface RouteParts extends CredentialParts {
  readonly clock: Clock;
}

export function viewOf(
  { clock }: Pick<RouteParts, 'clock'>,
  request: Pick<Request, 'protocol' | 'get' | 'socket'>,
): View {
  return { origin: originOf(request), now: clock.now };
}

export function mountResource(app: Express, context: RouteParts, calls: ResourceCalls): void {
  const { resource } = calls;
  const view = (request: AnyRequest, response: Response): View => ({
    ...viewOf(context, request),
    reaches: (siteId) => reachesSite(callerOf(response), siteId),
  });
  for (const [name, action] of Object.entries(resource.actions ?? {}))
    mountAction(app, context, action, (request, response) =>
      calls.act(name, request.params, request, view(request, response)),
    );
  const acts: Readonly<Record<Verb, Act>> = {
    list: (request, response) => calls.list(request.params, request.query, view(request, response)),
    create: (request, response) => calls.create(request.params, request.body, view(request, response)),
    read: (request, response) => calls.read(request.params, view(request, response)),
    update: (request, response) => calls.update(request.params, request.body, view(request, response)),
    delete: (request, response) => calls.remove(request.params, view(request, response)),
  };
  for (const path of ['one', 'collection'] as const) {
    const verbs = resource.verbs.filter((verb) => VERBS[verb].path === path);
    const route = routeAt(app, resource[path]);
    for (const verb of verbs) {
      const takesBody = verb === 'create' || verb === 'update';
      mountCall(route, context, { ...VERBS[verb], takesBody }, acts[verb]);
    }
  }
}

type Act = (request: AnyRequest, response: Response) => object | undefined | Promise<object | undefined>;

export function mountAction(app: Express, context: RouteParts, action: Action, act: Act): void {
  const { path, methods, status, body, upload } = action;
  const route = routeAt(app, path);
  const takesBody = (body ?? upload) !== undefined;
  for (const method of methods) mountCall(route, context, { method, status, takesBody }, act);
}

interface CallForm {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly status: number;
  readonly takesBody: boolean;
}

function mountCall(route: IRoute, context: RouteParts, { method, status, takesBody }: CallForm, act: Act) {
  const guard = requireCredential(context, isChange(method, route.path) ? 'Editor' : 'Viewer');
  const lower = method.toLowerCase() as Lowercase<typeof method>;
  route[lower](guard, ...(takesBody ? [readJson] : []), async (request: AnyRequest, response: Response) => {
    const answer = await act(request, response);
    response.status(status);
    if (status === 201) response.set('cache-control', 'no-store');
    if (answer === undefined) response.end();
    else response.json(answer);
  });
}
