import type { Express, Request, RequestHandler, Response } from 'express';
import { onlyMethods } from '../../../http/app';
import { originOf } from '../addresses';
import { type CredentialParts, callerOf, reachesSite, requireCredential } from '../auth';
import type { Clock } from '../clock';
import { readJson } from '../json-body';
import type { Action, PathIds, View } from './resource';
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

/** The routes of a resource, as its table says. */
export function mountResource(app: Express, context: RouteParts, calls: ResourceCalls): void {
  const { resource } = calls;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');
  const has = (verb: (typeof resource.verbs)[number]) => resource.verbs.includes(verb);
  const view = (request: AnyRequest, response: Response): View => ({
    ...viewOf(context, request),
    reaches: (siteId) => reachesSite(callerOf(response), siteId),
  });

  for (const [name, action] of Object.entries(resource.actions ?? {})) {
    mountAction(app, context, action, (request, response) =>
      calls.act(name, request.params, request, view(request, response)),
    );
  }

  const one = app.route(resource.one);
  const ofOne: string[] = [];
  if (has('read')) {
    ofOne.push('GET');
    one.get(reads, (request: AnyRequest, response: Response) => {
      response.json(calls.read(request.params, view(request, response)));
    });
  }
  if (has('update')) {
    ofOne.push('PATCH');
    one.patch(writes, readJson, (request: AnyRequest, response: Response) => {
      response.json(calls.update(request.params, request.body, view(request, response)));
    });
  }
  if (has('delete')) {
    ofOne.push('DELETE');
    one.delete(writes, (request: AnyRequest, response: Response) => {
      calls.remove(request.params, view(request, response));
      response.status(204).end();
    });
  }
  one.all(onlyMethods(...ofOne));

  const collection = app.route(resource.collection);
  const ofAll: string[] = [];
  if (has('list')) {
    ofAll.push('GET');
    collection.get(reads, (request: AnyRequest, response: Response) => {
      response.json(calls.list(request.params, request.query, view(request, response)));
    });
  }
  if (has('create')) {
    ofAll.push('POST');
    collection.post(writes, readJson, async (request: AnyRequest, response: Response) => {
      const made = await calls.create(request.params, request.body, view(request, response));
      response.status(201).set('cache-control', 'no-store').json(made);
    });
  }
  collection.all(onlyMethods(...ofAll));
}

/** A route that is neither of the verbs. @param act answers what the route answers, or undefined. */
export function mountAction(
  app: Express,
  context: RouteParts,
  action: Action,
  act: (request: AnyRequest, response: Response) => object | undefined | Promise<object | undefined>,
): void {
  const route = app.route(action.path);
  const handle: RequestHandler<PathIds> = async (request, response) => {
    const answer = await act(request as AnyRequest, response);
    if (answer === undefined) response.status(action.status).end();
    else response.status(action.status).json(answer);
  };
  const before = action.body || action.upload ? [readJson] : [];
  for (const method of action.methods) {
    const guard = requireCredential(context, method === 'GET' ? 'Viewer' : 'Editor');
    const lower = method.toLowerCase() as Lowercase<typeof method>;
    route[lower](guard, ...before, handle);
  }
  route.all(onlyMethods(...action.methods));
}
