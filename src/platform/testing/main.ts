import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createLog } from '../../http/log';
import { Programs, productProgram } from '../demo/child-program';
import { readEmulatorConfig } from '../emulator/config';
import { openPlatformTls } from '../emulator/own-certificates';
import { dependenciesOf, startEmulator as startPlatform } from '../emulator/start-emulator';

const GRACE_MS = 1000;
const EMULATOR = {
  EMULATOR_PORT: '0',
  EMULATOR_CONTROL_PORT: '0',
  EMULATOR_RTMP_PORT: 'off',
  EMULATOR_LOGLEVEL: 'silent',
};
const LISTENING = /"message":"listening".*"url":"([^"]+)"/;
const UNKNOWN = /"message":"unknown variable","variable":"([^"]+)"/;

/** Variables of a program by their names, as its page in `docs` lists them. */
export type Variables = Readonly<Record<string, string>>;

export interface Fault {
  /** A route such as `POST /v2/sites/:site/channels/`, `webhook:<id>` or `webhook:*`. */
  readonly target: string;
  readonly kind: 'fail' | 'delay' | 'reset';
  /** The status that the kind `fail` answers; 500 by default. */
  readonly status?: number;
  /** How long the kind `delay` waits, in milliseconds; 1000 by default. */
  readonly ms?: number;
  /** With `ms`, the end of a range of random delays. */
  readonly ms_to?: number;
  /** The share of the calls that have the fault, from 0 to 1; without `times`, until it is removed. */
  readonly rate?: number;
  /** How many calls have the fault; 1 by default. */
  readonly times?: number;
}

export interface ActiveFault extends Omit<Fault, 'times'> {
  /** How many calls it is left for; null for any number. */
  readonly times: number | null;
}

/** Without any of these, all requests are meant. */
export interface RequestFilter {
  readonly method?: string;
  /** Matches the path; `*` and `:name` match any part. */
  readonly path?: string;
  /** A status, or a class such as `4xx`. */
  readonly status?: number | string;
  /** Those after the request with this id. */
  readonly since?: number;
  /** The latest of them, so many at most. */
  readonly limit?: number;
}

/** A request that a client sent, and its answer, with secrets masked. */
export interface ReceivedRequest {
  readonly id: number;
  /** ISO 8601, by the emulator's clock. */
  readonly time: string;
  readonly ms: number;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON as it is, anything else as text; null if there is none, or if it is a file. */
  readonly body: unknown;
  /** Null where the length is not known. */
  readonly body_bytes: number | null;
  readonly answer: Pick<ReceivedRequest, 'headers' | 'body' | 'body_bytes'>;
  /** For a 400 or 404, what the client may have meant. */
  readonly hint: string | null;
}

export interface StateEntry {
  readonly id: string;
  readonly [field: string]: unknown;
}

export interface State {
  /** ISO 8601, by the emulator's clock. */
  readonly now: string;
  readonly sites: readonly string[];
  readonly credentials: readonly StateEntry[];
  readonly channels: readonly StateEntry[];
  readonly events: readonly StateEntry[];
  readonly media: readonly StateEntry[];
  readonly webhooks: readonly StateEntry[];
  readonly faults: readonly ActiveFault[];
  readonly [field: string]: unknown;
}

export interface Delivery {
  readonly webhook_id: string;
  readonly event: string;
  readonly subject_id: string;
  readonly url: string;
  readonly attempt: number;
  readonly at: string;
  /** The status that the receiver answered; null if it did not. */
  readonly status: number | null;
  readonly failure: string | null;
  readonly ms: number;
  readonly next_try_at: string | null;
}

export interface Encoder {
  readonly channel_id: string;
  readonly event_id: string;
}

/** An emulator in this process. Its calls reject with the error of the control port. */
export interface RunningEmulator {
  /** The platform: management API, delivery, key provider and configuration service. */
  readonly url: string;
  readonly controlUrl: string;
  /** Temporary: uploads are in it; it is removed by `close`. */
  readonly folder: string;
  readonly siteId: string;
  /** The secret of an Admin credential, for `Authorization: Bearer`. */
  readonly apiSecret: string;
  /** The client of the key provider, for requests that provision key files. */
  readonly client: { readonly name: string; readonly apiKey: string; readonly sharedSecret: string };
  readonly clock: {
    now(): Promise<Date>;
    /** Triggers all that is due by then. @returns the new time. */
    advance(seconds: number): Promise<Date>;
  };
  readonly faults: {
    add(fault: Fault): Promise<void>;
    list(): Promise<readonly ActiveFault[]>;
    /** Removes all; calls that are held back continue. */
    clear(): Promise<void>;
  };
  readonly encoder: {
    /** @param streamKey the `stream_key` of a channel. */
    connect(streamKey: string): Promise<Encoder>;
    disconnect(streamKey: string): Promise<Encoder>;
  };
  /** The requests of clients, the oldest first. */
  requests(filter?: RequestFilter): Promise<readonly ReceivedRequest[]>;
  deliveries(): Promise<readonly Delivery[]>;
  /** Secrets are masked unless `reveal` is true. */
  state(options?: { readonly reveal?: boolean }): Promise<State>;
  /** @returns which files of media are missing in the uploads folder. */
  restore(state: State): Promise<{ readonly missing_files: readonly string[] }>;
  reset(): Promise<void>;
  /** Ends all and removes the folder; it can be called again. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface RunningSidecar {
  readonly url: string;
  /** For the header `x-api-key`. */
  readonly apiKey: string;
  /** Where the key files are; a temporary one is removed by `close`. */
  readonly keyFilesFolder: string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts an emulator in this process: on free ports of 127.0.0.1, without RTMP ingest and log.
 * @param options.variables `EMULATOR_…` that replace these.
 * @throws Error for a variable that is wrong or unknown, and if a port is taken.
 */
export async function startEmulator({
  variables = {},
}: {
  readonly variables?: Variables;
} = {}): Promise<RunningEmulator> {
  const config = readEmulatorConfig({ ...EMULATOR, ...variables });
  const [unknown] = config.unknownVariables;
  if (unknown !== undefined) throw new Error(`Unknown variable ${unknown}`);
  const folder = await newFolder();
  const wallClock = () => new Date();
  const log = createLog(config.logLevel, process.stdout, wallClock);
  const own = { wallClock, now: () => performance.now(), newId: () => randomUUID(), newBytes: randomBytes };
  const start = async () => {
    const tls = config.tls && (await openPlatformTls(config.tls, { log, clock: wallClock }));
    const seeds = { ...config, uploadsFolder: variables.EMULATOR_UPLOADSFOLDER ?? folder };
    return startPlatform(seeds, dependenciesOf(log, __dirname, own), tls);
  };
  const { url, controlUrl, stop } = await start().catch(async (thrown: unknown) => {
    await remove(folder);
    throw thrown;
  });
  const call = controlOf(controlUrl);
  const [siteId = ''] = config.siteIds;
  return {
    url,
    controlUrl,
    folder,
    siteId,
    apiSecret: config.apiSecret,
    client: config.client,
    clock: {
      now: async () => new Date((await call<{ now: string }>('GET', '/clock')).now),
      advance: async (seconds) =>
        new Date((await call<{ now: string }>('POST', '/clock', { advance_seconds: seconds })).now),
    },
    faults: {
      add: async (fault) => void (await call('POST', '/faults', fault)),
      list: async () => (await call<{ faults: ActiveFault[] }>('GET', '/faults')).faults,
      clear: () => call('DELETE', '/faults'),
    },
    encoder: {
      connect: (streamKey) => call('POST', '/encoder/connect', { stream_key: streamKey }),
      disconnect: (streamKey) => call('POST', '/encoder/disconnect', { stream_key: streamKey }),
    },
    async requests(filter = {}) {
      const given = Object.entries(filter).filter(([, value]) => value !== undefined);
      const query = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      return (await call<{ requests: ReceivedRequest[] }>('GET', `/requests?${query.join('&')}`)).requests;
    },
    deliveries: async () => (await call<{ deliveries: Delivery[] }>('GET', '/deliveries')).deliveries,
    state: ({ reveal = false } = {}) => call('GET', `/state?reveal=${reveal}`),
    restore: (state) => call('PUT', '/state', state),
    reset: () => call('POST', '/reset'),
    ...closedBy(() => stop(GRACE_MS), folder),
  };
}

/**
 * Starts the sidecar of the package `packager-drm-api` on a free port of 127.0.0.1, with its own API key.
 * @param options.emulator whose key provider and configuration it asks; without one, keys come with requests.
 * @param options.variables `PACKAGERDRMAPI_…` that replace these; paths but that of the key folder are absolute.
 * @throws Error for an unknown variable, with its last lines if it does not start, or if the package is not installed.
 */
export async function startSidecar({
  emulator,
  variables = {},
}: {
  readonly emulator?: Pick<RunningEmulator, 'url'>;
  readonly variables?: Variables;
} = {}): Promise<RunningSidecar> {
  const folder = await newFolder();
  const programs = new Programs({ ownGroups: false });
  const ending = closedBy(() => programs.stop(), folder);
  // The program runs in another folder.
  const keyFilesFolder = resolve(variables.PACKAGERDRMAPI_KEYFILESPATH || join(folder, 'keys'));
  const used = {
    PACKAGERDRMAPI_HOST: '127.0.0.1',
    PACKAGERDRMAPI_PORT: '0',
    PACKAGERDRMAPI_APIKEY: randomUUID(),
    ...(emulator && {
      PACKAGERDRMAPI_GRANDCENTRALURL: `${emulator.url}/config/v1/clients`,
      PACKAGERDRMAPI_KEYPROVIDERURL: `${emulator.url}/keyprovider`,
    }),
    ...variables,
    PACKAGERDRMAPI_KEYFILESPATH: keyFilesFolder,
    // Its address is in the log, which nobody else reads.
    PACKAGERDRMAPI_LOGLEVEL: 'info',
  };
  const listening = new Promise<string>((listens, reject) => {
    const onLine = (line: string) => {
      const [, unknown] = UNKNOWN.exec(line) ?? [];
      if (unknown !== undefined) reject(new Error(`Unknown variable ${unknown}`));
      const [, url] = LISTENING.exec(line) ?? [];
      if (url !== undefined) sidecar.ready(`${url}/readyz`).then(() => listens(url), reject);
    };
    const args = [ENDS_WITH_PARENT, productProgram('sidecar')];
    const sidecar = programs.start({ name: 'sidecar', args, variables: used, onLine });
    sidecar.ended.then((how) => reject(new Error(how)));
  });
  const url = await listening.catch(async (thrown: unknown) => {
    await ending.close();
    throw thrown;
  });
  return { url, apiKey: used.PACKAGERDRMAPI_APIKEY, keyFilesFolder, ...ending };
}

/** For Node: the program ends when this process does, also by a signal, which runs no listener here. */
const ENDS_WITH_PARENT = `--import=data:text/javascript,setInterval(()=>process.ppid===${process.pid}||process.kill(process.pid),500).unref()`;

function controlOf(controlUrl: string) {
  return async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const json = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await fetch(controlUrl + path, { method, ...json });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`The control port answered ${response.status} to ${method} ${path}: ${text}`);
    return JSON.parse(text || 'null');
  };
}

function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'packager-drm-'));
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 10 });
}

function closedBy(stop: () => Promise<void>, folder: string) {
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= stop().finally(() => remove(folder));
    return closed;
  };
  return { close, [Symbol.asyncDispose]: close };
}
