import type { Express, IRoute, Request, Response } from 'express';
import { onlyMethods } from '../../../http/app';
import { originOf } from '../addresses';
import { type CredentialParts, callerOf, reachesSite, requireCredential } from '../auth';
import type { Clock } from '../clock';
import { readJson } from '../json-body';
import { type Action, VERBS, type Verb, type View } from './resource';
import type { ResourceCalls } from './resource-calls';

type AnyRequest = Request<Record<string, string>>;

export interface RouteParts extends CredentialParts {
  readonly clock: Clock;
}

/** How what is asked for at this address looks. */
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
    const route = app.route(resource[path]);
    for (const verb of verbs) {
      const takesBody = verb === 'create' || verb === 'update';
      mountCall(route, context, { ...VERBS[verb], takesBody }, acts[verb]);
    }
    route.all(onlyMethods(...verbs.map((verb) => VERBS[verb].method)));
  }
}

/** What a route answers, or undefined. */
type Act = (request: AnyRequest, response: Response) => object | undefined | Promise<object | undefined>;

export function mountAction(app: Express, context: RouteParts, action: Action, act: Act): void {
  const { path, methods, status, body, upload } = action;
  const route = app.route(path);
  const takesBody = (body ?? upload) !== undefined;
  for (const method of methods) mountCall(route, context, { method, status, takesBody }, act);
  route.all(onlyMethods(...methods));
}

interface CallForm {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly status: number;
  readonly takesBody: boolean;
}

function mountCall(route: IRoute, context: RouteParts, { method, status, takesBody }: CallForm, act: Act) {
  const guard = requireCredential(context, method === 'GET' ? 'Viewer' : 'Editor');
  const lower = method.toLowerCase() as Lowercase<typeof method>;
  route[lower](guard, ...(takesBody ? [readJson] : []), async (request: AnyRequest, response: Response) => {
    const answer = await act(request, response);
    response.status(status);
    if (status === 201) response.set('cache-control', 'no-store');
    if (answer === undefined) response.end();
    else response.json(answer);
  });
}
