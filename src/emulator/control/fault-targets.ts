import { nearest } from '../../http/faults';

/** A path at which the platform takes requests, as Express writes it: `/v2/sites/:siteId/channels`. */
export interface PlatformRoute {
  readonly path: string;
  /** In capitals. */
  readonly methods: readonly string[];
}

/** What an app's router keeps of its routes. */
export interface RouterLayer {
  readonly route?:
    | { readonly path: string; readonly stack: readonly { readonly method: string }[] }
    | undefined;
}

/** The routes among an app's layers, in their order. */
export function routesOf(layers: readonly RouterLayer[]): PlatformRoute[] {
  return layers.flatMap(({ route }) => {
    if (!route) return [];
    // What answers every other method with 405 has no method.
    const methods = route.stack.flatMap(({ method }) => (method ? [method.toUpperCase()] : []));
    return [{ path: route.path, methods: [...new Set(methods)] }];
  });
}

/** What is wrong with a fault's target `METHOD /path`, or undefined when a call can meet it. */
export function faultOfTarget(target: string, routes: readonly PlatformRoute[]): string | undefined {
  const [method = '', path = ''] = target.split(' ');
  const there = routes.filter((route) => isAt(partsOf(path), partsOf(route.path)));
  if (there.some(({ methods }) => takes(methods, method))) return undefined;
  const [first] = there;
  if (first) return `target: ${first.path} takes ${first.methods.join(', ')}, not ${method}`;
  const meant = nearestTarget(target, routes);
  return meant === undefined
    ? `target: the platform has no such route; its routes begin with ${beginningsOf(routes).join(', ')}`
    : `target: the platform has no such route; did you mean ${meant}?`;
}

function takes(methods: readonly string[], method: string): boolean {
  // Express answers HEAD as GET; browsers ask with OPTIONS before they call.
  return method === '*' || method === 'OPTIONS' || methods.includes(method === 'HEAD' ? 'GET' : method);
}

function partsOf(path: string): string[] {
  return path.replace(/\/$/, '').split('/');
}

const ANY = /^(?:\*$|:|\{)/;

function isAt(wanted: readonly string[], route: readonly string[]): boolean {
  return wanted.length === route.length && route.every((part, place) => isPart(wanted[place] ?? '', part));
}

/** Whether a part of a target can mean a part of a route, such as `channels`, `:channelId` or `:channelId.json`. */
function isPart(wanted: string, part: string): boolean {
  if (ANY.test(wanted) || wanted === part) return true;
  const [, ending] = /^:\w+(.*)$/.exec(part) ?? [];
  return ending !== undefined && wanted.length > ending.length && wanted.endsWith(ending);
}

/** The route that is written most like a target, with the target's own parts where the route takes any. */
function nearestTarget(target: string, routes: readonly PlatformRoute[]): string | undefined {
  const [method = '', path = ''] = target.split(' ');
  const wanted = partsOf(path);
  const meant = new Map<string, string>(
    routes.flatMap((route) => {
      const parts = partsOf(route.path);
      const filled = parts.map((part, place) =>
        part.startsWith(':') && parts.length === wanted.length ? (wanted[place] ?? part) : part,
      );
      const own = takes(route.methods, method) ? [method] : route.methods;
      return own.map((each) => [`${each} ${filled.join('/')}`, `${each} ${route.path}`] as const);
    }),
  );
  const found = nearest(`${method} ${wanted.join('/')}`, [...meant.keys()]);
  return found === undefined ? undefined : meant.get(found);
}

function beginningsOf(routes: readonly PlatformRoute[]): string[] {
  return [...new Set(routes.map(({ path }) => /^(?:\/v\d)?\/[^/:]*/.exec(path)?.[0] ?? path))];
}
