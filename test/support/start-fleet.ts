import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FleetAnswer } from '../../src/api/fleet';
import type { FleetConfig } from '../../src/sidecar/fleet/config';
import type { OpenFleet } from '../../src/sidecar/fleet/fleet';
import { joinFleet } from '../../src/sidecar/fleet/join';
import { temporaryFolder } from './after-test';
import { type BuiltProgram, startBuilt } from './built-program';
import { type CutProxy, startCutProxy } from './cut-proxy';
import { type LogLine, recordedLog } from './recorded-log';
import { API_KEY, startSidecar } from './start-sidecar';
import { until } from './until';

export interface FleetSetUp {
  /** Addresses of the engine's servers. */
  readonly urls: readonly string[];
  /** How many packagers, `packager-1` and on; by default three. */
  readonly packagers?: number;
  /** Beginnings of the streams that some packagers take, by their names; the others take all. */
  readonly streams?: Readonly<Record<string, readonly string[]>>;
  readonly timeoutMs?: number;
  /** What some packagers have of their own, by their order. */
  readonly own?: readonly OwnSetUp[];
}

/** What a packager has of its own; by default what all have. */
export interface OwnSetUp {
  readonly name?: string;
  /** Stays after the test. */
  readonly folder?: string;
  /** Of the engine, with its password. */
  readonly user?: { readonly name: string; readonly password: string };
}

/** A sidecar of a fleet, with a folder and a way to the engine of its own. */
export interface FleetPackager {
  readonly name: string;
  readonly folder: string;
  readonly url: () => string;
  /** Sends a request with the API key, to a path such as `/api/keyfile/news`. */
  ask(method: string, path: string, body?: object): Promise<Response>;
  status(): Promise<FleetAnswer>;
  /** A metric, such as `fleet_kept`, or `fleet_state{state="away"}`; undefined: there is none. */
  figure(name: string): Promise<number | undefined>;
  /** What its fleet logs since its last start; of a program nothing. */
  log(): readonly LogLine[];
  /** Whether it is ready, which a member of a fleet is once it has all key files. */
  isReady(): Promise<boolean>;
  /** What a packager reads of a stream; undefined: there is no file. */
  file(stream: string): Promise<string | undefined>;
  /** Nothing reaches the engine any more, nor comes from it, and no error reports it. */
  partition(): void;
  /** Its connections to the engine are reset, and new ones, too. */
  cut(): void;
  heal(): void;
  /** Ends it; a program is killed at once, `kill -9`. */
  stop(): Promise<void>;
  /** Starts it again on its folder, on a new port. */
  start(): Promise<void>;
}

export interface TestFleet {
  readonly packagers: readonly FleetPackager[];
  packager(index: number): FleetPackager;
  /** Resolves when all that run are ready. */
  level(): Promise<void>;
  /** Resolves when a file is as expected at some packagers, by default at all. */
  untilFile(stream: string, text: string | undefined, beside?: readonly FleetPackager[]): Promise<void>;
  readonly secretFile: string;
}

export const pathOf = (stream: string) => `/api/keyfile/${encodeURIComponent(stream)}`;

/** Sends the keys of a stream through a packager, which must take them. */
export async function post(through: FleetPackager, stream: string, body: object): Promise<void> {
  expect((await through.ask('POST', pathOf(stream), body)).status).toBe(200);
}

interface Running {
  readonly url: string;
  readonly lines?: readonly LogLine[];
  stop(): Promise<void>;
}

interface Place {
  readonly name: string;
  readonly folder: string;
  readonly urls: readonly string[];
  readonly streams: readonly string[] | undefined;
  readonly secretFile: string;
  readonly timeoutMs: number;
  readonly user: { readonly name: string; readonly passwordFile: string } | undefined;
}

type Launch = (place: Place) => Promise<Running>;

/** Starts sidecars of one fleet in this process; they are stopped after the test. */
export function startFleet(setUp: FleetSetUp): Promise<TestFleet> {
  return launchFleet(setUp, async ({ folder, user, ...place }) => {
    const signIn = user && { user };
    const config: FleetConfig = { ...place, ...signIn, prefix: 'packagerdrmapi/', tls: {} };
    const { log, lines } = recordedLog();
    const clock = () => new Date();
    const open = joinFleet(config, { log, clock });
    const fleet: OpenFleet = (local, hooks) => open(local, { ...hooks, log, version: '1.2.3' });
    const ambient = { fleet, newId: randomUUID, clock, now: () => performance.now() };
    return { ...(await startSidecar({ keyFilesPath: folder }, clock, ambient)), lines };
  });
}

/** The same with the built program, a process each. */
export function startBuiltFleet(setUp: FleetSetUp): Promise<TestFleet> {
  return launchFleet(setUp, async ({ name, folder, urls, streams, secretFile, timeoutMs, user }) => {
    const env = {
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_KEYFILESPATH: folder,
      PACKAGERDRMAPI_FLEET_URLS: urls.join(','),
      PACKAGERDRMAPI_FLEET_SECRET_FILE: secretFile,
      PACKAGERDRMAPI_FLEET_NAME: name,
      PACKAGERDRMAPI_FLEET_TIMEOUTMS: String(timeoutMs),
      ...(streams && { PACKAGERDRMAPI_FLEET_STREAMS: streams.join(',') }),
      ...(user && {
        PACKAGERDRMAPI_FLEET_USER: user.name,
        PACKAGERDRMAPI_FLEET_PASSWORD_FILE: user.passwordFile,
      }),
    };
    const program: BuiltProgram & { url: string } = await startBuilt('sidecar', { cwd: folder, env });
    const stop = async () => {
      program.send('SIGKILL');
      await program.ended;
    };
    return { url: program.url, stop };
  });
}

async function launchFleet(
  { urls, packagers: count = 3, streams = {}, timeoutMs = 5000, own = [] }: FleetSetUp,
  launch: Launch,
): Promise<TestFleet> {
  const root = await temporaryFolder();
  const secretFile = join(root, 'secret');
  await writeFile(secretFile, `${'fleet-secret-of-the-tests-'.repeat(2)}\n`, { mode: 0o600 });
  const packagers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const numbered = `packager-${index + 1}`;
      const { name = numbered, user, ...has } = own[index] ?? {};
      const folder = has.folder ?? join(root, numbered);
      await mkdir(folder, { recursive: true });
      const passwordFile = join(root, `${numbered}-password`);
      if (user) await writeFile(passwordFile, user.password, { mode: 0o600 });
      const proxies = await Promise.all(urls.map((url) => startCutProxy(url)));
      const place: Place = {
        name,
        folder,
        urls: proxies.map(({ url }) => url),
        streams: streams[name],
        secretFile,
        timeoutMs,
        user: user && { name: user.name, passwordFile },
      };
      return launchPackager(place, proxies, launch);
    }),
  );
  return {
    packagers,
    secretFile,
    packager(index) {
      const found = packagers[index];
      if (!found) throw new Error(`there is no packager ${index}`);
      return found;
    },
    level: () =>
      until(async () => (await Promise.all(packagers.map((each) => each.isReady()))).every(Boolean)),
    async untilFile(stream, text, beside = packagers) {
      await until(async () => {
        const files = await Promise.all(beside.map((each) => each.file(stream)));
        return files.every((file) => file === text);
      });
    },
  };
}

async function launchPackager(
  place: Place,
  proxies: readonly CutProxy[],
  launch: Launch,
): Promise<FleetPackager> {
  const { name, folder } = place;
  let running: Running | undefined = await launch(place);
  const url = () => running?.url ?? 'http://127.0.0.1:9';
  const ask = (method: string, path: string, body?: object) =>
    fetch(`${url()}${path}`, {
      method,
      headers: { 'x-api-key': API_KEY, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  return {
    name,
    folder,
    url,
    ask,
    status: async () => (await (await ask('GET', '/api/fleet')).json()) as FleetAnswer,
    async figure(name) {
      const text = await (await ask('GET', '/metrics')).text();
      const line = text.split('\n').find((each) => each.startsWith(`packagerdrmapi_${name} `));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
    log: () => running?.lines ?? [],
    isReady: async () => running === undefined || (await fetch(`${url()}/readyz`)).status === 200,
    file: (stream) => readFile(join(folder, `${stream}.key`), 'utf8').catch(() => undefined),
    partition() {
      for (const proxy of proxies) proxy.drop();
    },
    cut() {
      for (const proxy of proxies) proxy.cut();
    },
    heal() {
      for (const proxy of proxies) proxy.restore();
    },
    async stop() {
      await running?.stop();
      running = undefined;
    },
    async start() {
      running ??= await launch(place);
    },
  };
}
