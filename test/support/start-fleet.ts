import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { FleetAnswer } from '../../src/api/fleet-answers';
import type { FleetConfig } from '../../src/sidecar/fleet/config';
import type { OpenFleet } from '../../src/sidecar/fleet/fleet';
import { joinFleet } from '../../src/sidecar/fleet/join';
import { afterTest, temporaryFolder } from './after-test';
import { API_KEY, callWithKey } from './api-key';
import { startBuilt } from './built-program';
import { listening } from './listening';
import { type LogLine, recordedLog } from './recorded-log';
import { startSidecar } from './start-sidecar';
import { until } from './until';

interface FleetSetUp {
  /** Addresses of the engine's servers. */
  readonly urls: readonly string[];
  /** How many packagers, `packager-1` and on; by default three. */
  readonly packagers?: number;
  /** The name of the only packager. */
  readonly name?: string;
  /** Prefixes of the streams that some packagers take, by their names; the others take all. */
  readonly streams?: Readonly<Record<string, readonly string[]>>;
  /** Of the engine. */
  readonly user?: { readonly name: string; readonly password: string };
}

export type FleetPackager = Awaited<ReturnType<typeof launchPackager>>;
export type TestFleet = Awaited<ReturnType<typeof launchFleet>>;

export const pathOf = (stream: string) => `/api/keyfile/${encodeURIComponent(stream)}`;

/** Sends the keys of a stream through a packager, which must take them. */
export async function post(through: FleetPackager, stream: string, body: object): Promise<void> {
  expect((await through.ask('POST', pathOf(stream), body)).status).toBe(200);
}

/** Deletes the key file of a stream through a packager, which must do it. */
export async function remove(through: FleetPackager, stream: string): Promise<void> {
  expect((await through.ask('DELETE', pathOf(stream))).status).toBe(200);
}

interface Running {
  readonly url: string;
  /** The log of its fleet; empty for a program. */
  readonly lines: readonly LogLine[];
  stop(): Promise<void>;
}

interface Place extends Pick<FleetConfig, 'name' | 'urls' | 'streams' | 'secretFile' | 'user'> {
  readonly folder: string;
}

type Launch = (place: Place) => Promise<Running>;

/** Starts sidecars of one fleet in this process; they are stopped after the test. */
export function startFleet(setUp: FleetSetUp): Promise<TestFleet> {
  return launchFleet(setUp, async ({ folder, ...place }) => {
    const config: FleetConfig = { ...place, prefix: 'packagerdrmapi/', timeoutMs: 5000, tls: {} };
    const { log, lines } = recordedLog();
    const clock = () => new Date();
    const open = joinFleet(config, { log, clock });
    const fleet: OpenFleet = (local, hooks) => open(local, { ...hooks, log, version: '1.2.3' });
    const dependencies = { fleet, newId: randomUUID, clock, now: () => performance.now() };
    return { ...(await startSidecar({ keyFilesPath: folder }, clock, dependencies)), lines };
  });
}

/** The same with the built program, a process each, which `stop` kills at once, `kill -9`. */
export function startBuiltFleet(setUp: FleetSetUp): Promise<TestFleet> {
  return launchFleet(setUp, async ({ name, folder, urls, secretFile }) => {
    const env = {
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_KEYFILESPATH: folder,
      PACKAGERDRMAPI_FLEET_URLS: urls.join(','),
      PACKAGERDRMAPI_FLEET_SECRET_FILE: secretFile,
      PACKAGERDRMAPI_FLEET_NAME: name,
    };
    const program = await startBuilt('sidecar', { cwd: folder, env });
    const stop = async () => {
      program.send('SIGKILL');
      await program.ended;
    };
    return { url: program.url, lines: [], stop };
  });
}

async function launchFleet(
  { urls, packagers: count = 3, name, streams = {}, user }: FleetSetUp,
  launch: Launch,
) {
  const root = await temporaryFolder();
  const secretFile = join(root, 'secret');
  await writeFile(secretFile, `${'fleet-secret-of-the-tests-'.repeat(2)}\n`, { mode: 0o600 });
  const passwordFile = join(root, 'password');
  if (user) await writeFile(passwordFile, user.password, { mode: 0o600 });
  const names = name ? [name] : Array.from({ length: count }, (_, index) => `packager-${index + 1}`);
  const packagers = await Promise.all(
    names.map(async (each) => {
      const folder = join(root, each);
      await mkdir(folder, { recursive: true });
      const signIn = user && { user: { name: user.name, passwordFile } };
      return launchPackager(
        { name: each, folder, urls, streams: streams[each], secretFile, ...signIn },
        launch,
      );
    }),
  );
  return {
    packagers,
    secretFile,
    packager(index: number): FleetPackager {
      const found = packagers[index];
      if (!found) throw new Error(`there is no packager ${index}`);
      return found;
    },
    /** Resolves when all that run are ready. */
    level: () =>
      until(async () => (await Promise.all(packagers.map((each) => each.isReady()))).every(Boolean)),
    /** Resolves when a file is as expected at some packagers, by default at all. */
    async untilFile(stream: string, text: string | undefined, at = packagers): Promise<void> {
      await until(async () => {
        const files = await Promise.all(at.map((each) => each.file(stream)));
        return files.every((file) => file === text);
      });
    },
  };
}

/** A sidecar of a fleet, with a folder and a way to the engine of its own. */
async function launchPackager({ urls, ...rest }: Place, launch: Launch) {
  const { name, folder } = rest;
  const proxies = await Promise.all(urls.map((url) => startCutProxy(url)));
  const place = { ...rest, urls: proxies.map(({ url }) => url) };
  let running: Running | undefined = await launch(place);
  const url = () => running?.url ?? 'http://127.0.0.1:9';
  /** Sends a request with the API key, to a path such as `/api/keyfile/news`. */
  const ask = (method: string, path: string, body?: object) => callWithKey(`${url()}${path}`, method, body);
  return {
    name,
    folder,
    ask,
    status: async () => (await (await ask('GET', '/api/fleet')).json()) as FleetAnswer,
    /** A metric, such as `fleet_kept`, or `fleet_state{state="away"}`; undefined: there is none. */
    async figure(name: string): Promise<number | undefined> {
      const text = await (await ask('GET', '/metrics')).text();
      const line = text.split('\n').find((each) => each.startsWith(`packagerdrmapi_${name} `));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
    /** The log of its fleet since its last start. */
    log: () => running?.lines ?? [],
    /** Whether it is ready, which a member of a fleet is once it has all key files. */
    isReady: async () => running === undefined || (await fetch(`${url()}/readyz`)).status === 200,
    /** The key file of a stream; undefined: there is no file. */
    file: (stream: string) => readFile(join(folder, `${stream}.key`), 'utf8').catch(() => undefined),
    /** Nothing reaches the engine any more, nor comes from it, and no error reports it. */
    partition() {
      for (const proxy of proxies) proxy.drop();
    },
    heal() {
      for (const proxy of proxies) proxy.restore();
    },
    async stop(): Promise<void> {
      await running?.stop();
      running = undefined;
    },
    /** Starts it again on its folder, on a new port. */
    async start(): Promise<void> {
      running ??= await launch(place);
    },
  };
}

/**
 * Starts a proxy in front of a TCP server with an address such as `http://127.0.0.1:2379`, on a free port, where the network
 * can fail; it is stopped after the test.
 */
async function startCutProxy(target: string) {
  const { hostname, port: targetPort } = new URL(target);
  let isOpen = true;
  const sockets = new Set<Socket>();
  const lost = new Set<Socket>();
  const waiting = new Set<() => void>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    if (!isOpen) socket.pause();
    return socket;
  };
  const forward = (from: Socket, to: Socket) => {
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      if (to.write(chunk)) return;
      from.pause();
      to.once('drain', () => {
        if (isOpen) from.resume();
      });
    });
    // Without a network neither side hears that the other one has gone.
    from.once('close', () => (isOpen ? to.destroy() : lost.add(to)));
    from.once('end', () => to.end());
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    const open = () => {
      if (client.destroyed) return;
      const upstream = keep(connect({ host: hostname, port: Number(targetPort), allowHalfOpen: true }));
      forward(client, upstream);
      forward(upstream, client);
      upstream.once('error', () => client.resetAndDestroy());
    };
    if (isOpen) open();
    else waiting.add(open);
  });
  const port = await listening(server);
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    /** Nothing is forwarded any more, either way, and no error reports it; new connections are taken and stay silent. */
    drop() {
      isOpen = false;
      for (const socket of sockets) socket.pause();
    },
    /** Forwards again. Held data arrives, as with TCP, whose sender repeats it. */
    restore() {
      isOpen = true;
      for (const socket of lost) socket.destroy();
      lost.clear();
      for (const socket of sockets) socket.resume();
      for (const open of waiting) open();
      waiting.clear();
    },
  };
}
