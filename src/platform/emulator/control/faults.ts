import type { RequestHandler } from 'express';
import { HttpError } from '../../../http/errors';
import { nearest } from '../../../http/faults';
import type { Clock } from '../clock';

export type Fault =
  | { readonly kind: 'fail'; readonly status: number }
  /** By `ms` milliseconds, or by any number up to `ms_to`. */
  | { readonly kind: 'delay'; readonly ms: number; readonly ms_to?: number | undefined }
  | { readonly kind: 'reset' };

export interface FaultSwitch {
  /** `METHOD /path/:any/*`, or `webhook:<id>`, or `webhook:*`. */
  readonly target: string;
  readonly fault: Fault;
  /** The part of the calls that fail, by chance: 0 to 1. Without it, every call does. */
  readonly rate: number | undefined;
  /** How many calls are still to fail. */
  left: number;
}

export class FaultSwitches {
  /** The possible targets; the platform's app sets them. */
  routes: readonly PlatformRoute[] = [];
  #switches: FaultSwitch[] = [];
  readonly #held = new Set<() => void>();
  readonly #chance: () => number;

  /** @param isStanding whether the clock is one of a run with a seed: delays take real time. */
  constructor(
    newBytes: (count: number) => Buffer,
    private readonly clock: Clock,
    private readonly isStanding = false,
  ) {
    this.#chance = () => newBytes(4).readUInt32BE() / 2 ** 32;
  }

  add(target: string, fault: Fault, times: number, rate?: number): void {
    this.#switches.push({ target, fault, rate, left: times });
  }

  list(): readonly FaultSwitch[] {
    return this.#switches;
  }

  /**
   * Holds a call back for so long. The returned function lets it continue at once; so does `clear`.
   * @param goOn is called once, with whether the time is over.
   */
  hold(ms: number, goOn: (isOver: boolean) => void): () => void {
    const end = (isOver: boolean) => {
      if (this.#held.delete(letGo)) goOn(isOver);
    };
    const letGo = () => end(false);
    this.#held.add(letGo);
    this.clock.after(ms, () => end(true));
    if (this.isStanding) setTimeout(end, ms, true).unref();
    return letGo;
  }

  clear(): void {
    this.#switches = [];
    this.letGo();
  }

  /** Lets all calls continue that are held back. */
  letGo(): void {
    for (const letGo of [...this.#held]) letGo();
  }

  /** The fault for this call, counted off; the call is `METHOD /path`, or `webhook:<id>`. The oldest switch wins. */
  take(call: string): Fault | undefined {
    const found = this.#switches.find(
      ({ target, rate }) => isMeant(target, call) && (rate === undefined || this.#chance() < rate),
    );
    if (!found) return undefined;
    found.left -= 1;
    if (found.left === 0) this.#switches = this.#switches.filter((other) => other !== found);
    const { fault } = found;
    if (fault.kind !== 'delay' || fault.ms_to === undefined) return fault;
    return { kind: 'delay', ms: fault.ms + Math.floor(this.#chance() * (fault.ms_to - fault.ms + 1)) };
  }
}

/** Whether a target `METHOD /path` or `webhook:<id>` means a call; `*` and `:name` mean any part. */
export function isMeant(target: string, call: string): boolean {
  if (target.startsWith('webhook:') || call.startsWith('webhook:')) {
    return target === call || (target === 'webhook:*' && call.startsWith('webhook:'));
  }
  const [wanted = [], given = []] = [target, call].map((text) => text.replace(/\/$/, '').split(/[ /]/));
  return (
    wanted.length === given.length &&
    wanted.every((part, at) => part === '*' || /^(?::|\{)/.test(part) || part === given[at])
  );
}

export function injectFaults({ faults }: { readonly faults: FaultSwitches }): RequestHandler {
  return (request, _response, next) => {
    const fault = faults.take(`${request.method} ${request.path}`);
    if (!fault) return next();
    if (fault.kind === 'reset') {
      request.socket.destroy();
      return;
    }
    if (fault.kind === 'delay') {
      faults.hold(fault.ms, () => next());
      return;
    }
    const code = fault.status >= 500 ? 'server_error' : 'injected_fault';
    throw new HttpError(fault.status, { code, description: 'A fault switch of the control port did this.' });
  };
}

/** A path at which the platform takes requests, as Express writes it: `/v2/sites/:siteId/channels`. */
interface PlatformRoute {
  readonly path: string;
  readonly methods: readonly string[];
}

interface RouterLayer {
  readonly route?:
    | { readonly path: string | readonly string[]; readonly stack: readonly { readonly method: string }[] }
    | undefined;
}

export function routesOf(layers: readonly RouterLayer[]): PlatformRoute[] {
  return layers.flatMap(({ route }) => {
    if (!route) return [];
    // The layer that answers every other method with 405 has no method.
    const methods = route.stack.flatMap(({ method }) => (method ? [method.toUpperCase()] : []));
    return [route.path].flat().map((path) => ({ path, methods: [...new Set(methods)] }));
  });
}

/** The reason that no route answers `METHOD /path`, with the nearest route; undefined when one does. */
export function whyNoRoute(target: string, routes: readonly PlatformRoute[]): string | undefined {
  const [method = '', path = ''] = target.split(' ');
  const wanted = partsOf(path);
  const there = routes.filter((route) => isAt(wanted, partsOf(route.path)));
  if (there.some(({ methods }) => takes(methods, method))) return undefined;
  const [first] = there;
  if (first) return `${first.path} takes ${first.methods.join(', ')}, not ${method}`;
  // Written with the target's own parts where a route takes any; some clients leave out the site.
  const withoutSite = routes.map((route) => ({ ...route, form: route.path.replace('/sites/:siteId', '') }));
  const forms = [...withoutSite, ...routes.map((route) => ({ ...route, form: route.path }))];
  const targets = new Map<string, string>(
    forms.flatMap((route) => {
      const parts = partsOf(route.form);
      const filled = parts.map((part, place) =>
        part.startsWith(':') && parts.length === wanted.length ? (wanted[place] ?? part) : part,
      );
      const own = takes(route.methods, method) ? [method] : route.methods;
      return own.map((each) => [`${each} ${filled.join('/')}`, `${each} ${route.path}`] as const);
    }),
  );
  const meant = nearest(`${method} ${wanted.join('/')}`, [...targets.keys()]);
  if (meant !== undefined) return `the platform has no such route; did you mean ${targets.get(meant)}?`;
  const prefixes = routes.map((route) => /^(?:\/v\d)?\/[^/:]*/.exec(route.path)?.[0] ?? route.path);
  return `the platform has no such route; its routes start with ${[...new Set(prefixes)].join(', ')}`;
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
  const isOpen = route.at(-1)?.startsWith('*') === true && wanted.length >= route.length;
  const isAsLong = wanted.length === route.length || isOpen;
  return isAsLong && route.every((part, place) => isPart(wanted[place] ?? '', part));
}

/** Whether a part of a target can mean a part of a route: `channels`, `:channelId`, `:channelId.json` or `*file`. */
function isPart(wanted: string, part: string): boolean {
  if (ANY.test(wanted) || wanted === part || part.startsWith('*')) return true;
  const [, ending] = /^:\w+(.*)$/.exec(part) ?? [];
  return ending !== undefined && wanted.length > ending.length && wanted.endsWith(ending);
}
