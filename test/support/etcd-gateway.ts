import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Engine, Moment, WatchEnd, WatchedEvent } from '../../src/sidecar/fleet/engine/engine';
import { createEtcd } from '../../src/sidecar/fleet/engine/etcd';
import type { EtcdOptions } from '../../src/sidecar/fleet/engine/etcd-calls';
import { afterTest } from './after-test';
import { listening } from './listening';
import { recordedLog } from './recorded-log';
import { serveRaw } from './serve';

export interface Asked {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly token: string | undefined;
  readonly accept: string | undefined;
}

/** JSON of an answer, which gets the header that all have; or a function that answers. */
export type Answer = object | ((response: ServerResponse) => unknown);

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

export const header = { cluster_id: '5', member_id: '6', revision: '100', raft_term: '2' };
export const base64 = (text: string) => Buffer.from(text, 'latin1').toString('base64');

/** A stored value of the key `a`. */
export const kv = (text: string, revision: number) => ({
  key: base64('a'),
  mod_revision: String(revision),
  value: base64(text),
});

export const found = (...kvs: readonly object[]) => ({ response_range: { kvs } });

export const eventOf = (key: string, revision: number, value: Buffer | string | undefined) => ({
  ...(value === undefined && { type: 'DELETE' }),
  kv: {
    key: base64(key),
    mod_revision: String(revision),
    ...(value !== undefined && { value: Buffer.from(value).toString('base64') }),
  },
});

/** An error of etcd, with gRPC's code. */
export const refusal =
  (message: string, code: number, status = 400) =>
  (response: ServerResponse) =>
    response.writeHead(status).end(JSON.stringify({ error: message, message, code }));

/** An HTTP server with the paths of etcd's JSON gateway whose answers the test writes; it ends with the test. */
export async function startGateway(
  answer: (asked: Asked, count: number) => Answer | undefined = () => undefined,
) {
  const open = new Set<ServerResponse>();
  const lineOf = (result: object) => `${JSON.stringify({ result: { header: gateway.header, ...result } })}\n`;
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    const body = (await json(request).catch(() => ({}))) as Record<string, unknown>;
    if (path === '/v3/watch') {
      gateway.watches.push(body.create_request as Record<string, unknown>);
      open.add(response.once('close', () => open.delete(response)));
      gateway.onWatch(response, gateway.watches.length);
      return;
    }
    const { authorization: token, accept } = request.headers;
    const asked = { path, body, token, accept };
    gateway.asked.push(asked);
    const found = gateway.answer(asked, gateway.asked.length) ?? {};
    if (typeof found === 'function') found(response);
    else response.end(JSON.stringify({ header: gateway.header, ...found }));
  });
  const gateway = {
    url: `http://127.0.0.1:${await listening(server)}`,
    /** The requests in order, without watches. */
    asked: [] as Asked[],
    /** The body of each watch that was begun. */
    watches: [] as Record<string, unknown>[],
    /** The header of its answers. */
    header: header as Record<string, string>,
    /** Answers calls; undefined: with the header alone. */
    answer,
    /** Begins a watch. */
    onWatch: (response: ServerResponse, _count: number): unknown => response.write(lineOf({ created: true })),
    /** Sends a message to the watches. */
    send(result: object) {
      for (const response of open) response.write(lineOf(result));
    },
    /** Resets all connections. */
    cut: () => server.closeAllConnections(),
  };
  return gateway;
}

/** A server that takes connections and says nothing. */
export const startSilent = (): Promise<string> => serveRaw(() => undefined);

/** Opens an engine, which is closed after the test. */
export function openEngine(urls: readonly string[], options: Partial<EtcdOptions> = {}): Engine {
  const engine = createEtcd({
    urls,
    timeoutMs: 5000,
    log: recordedLog().log,
    now: () => performance.now(),
    clock: () => new Date(),
    ...options,
  });
  afterTest(() => engine.close());
  return engine;
}

/** Watches all keys with a prefix until the test ends, and keeps what is reported. `since` is by default what the engine answers. */
export async function watchAll(
  engine: Engine,
  prefix: string,
  { from, since, take }: { from: number; since?: Moment; take?: () => Promise<void> },
) {
  const watched = {
    events: [] as WatchedEvent[],
    batches: [] as (readonly WatchedEvent[])[],
    heartbeats: [] as Moment[],
    losses: [] as string[],
    ends: [] as WatchEnd[],
  };
  const watch = engine.watch(
    { prefix },
    {
      from,
      since: since ?? (await engine.read([prefix])).at,
      onEvents: async (events) => {
        watched.batches.push(events);
        watched.events.push(...events);
        await take?.();
      },
      onHeartbeat: (at) => watched.heartbeats.push(at),
      onLost: ({ kind }) => watched.losses.push(kind),
      onEnd: (end) => watched.ends.push(end),
    },
  );
  afterTest(watch.close);
  return { ...watched, close: watch.close };
}
