import { randomBytes } from 'node:crypto';
import { join, relative } from 'node:path';
import fs from 'fs-extra';
import request from 'supertest';
import { listen } from '../../src/http/server';
import { createKeyRing } from '../../src/sidecar/api-key';
import { createSidecar, type SidecarDependencies } from '../../src/sidecar/app';
import { readSidecarConfig, type SidecarConfig } from '../../src/sidecar/config';
import { openAudit } from '../../src/sidecar/observe/audit';
import { afterTest, onceForAll, temporaryFolder } from './after-test';
import { API_KEY } from './api-key';
import { publicFolder } from './public-folder';
import { until } from './until';
import { writtenLog } from './written-log';

export { API_KEY } from './api-key';
export { errorBody } from './error-body';

export type LogEntry = Record<string, unknown>;

export type TestSidecar = Awaited<ReturnType<typeof startSidecar>>;

/** Starts a sidecar with a folder, a log and a port of its own; it is stopped and its folder removed after the test. */
export async function startSidecar(...given: Parameters<typeof startUnswept>) {
  const { sweep, ...sidecar } = await startUnswept(...given);
  await sweep();
  return sidecar;
}

/**
 * One for all tests of a file or `describe`, each of which finds its folder empty. All but `folder`, `port` and `url`
 * may be taken out of it before it is started. Its log can't be read: that would end it.
 */
export function sidecarForAll(overrides?: Partial<SidecarConfig>) {
  let sidecar: TestSidecar;
  const started = onceForAll(() => startSidecar(overrides));
  beforeEach(async () => {
    sidecar = await started();
    await fs.emptyDir(sidecar.folder);
  });
  const client = (name: 'api' | 'unauthenticated') => {
    const methods = (['get', 'head', 'post', 'put', 'delete'] as const).map((method) => [
      method,
      (path: string) => sidecar[name][method](path),
    ]);
    return Object.fromEntries(methods) as TestSidecar['api'];
  };
  return {
    api: client('api'),
    unauthenticated: client('unauthenticated'),
    batch: (body: object) => sidecar.batch(body),
    files: () => sidecar.files(),
    get folder() {
      return sidecar.folder;
    },
    get port() {
      return sidecar.port;
    },
    get url() {
      return sidecar.url;
    },
  };
}

/** The same before its clean-up at the start, which `sweep` does. */
export async function startUnswept(
  overrides: Partial<SidecarConfig> = {},
  clock = () => new Date(0),
  dependencies: Partial<SidecarDependencies> = {},
) {
  const folder = await temporaryFolder();
  let monotonic = 0;
  const { log, stream, text } = writtenLog(() => new Date(0));
  const config: SidecarConfig = {
    ...readSidecarConfig({ PACKAGERDRMAPI_APIKEY: API_KEY }, () => ''),
    keyFilesPath: folder,
    host: '127.0.0.1',
    port: 0,
    audit: 'off',
    logLevel: 'debug',
    ...overrides,
  };
  const audit = openAudit(config.audit, { log, clock, stdout: stream, batchMs: 0 });
  const keys = createKeyRing({ single: config.apiKey, file: config.apiKeysFile, log, intervalMs: 20 });
  const sidecar = createSidecar(config, {
    log,
    newId: countedIds(),
    random: randomBytes,
    now: () => monotonic,
    clock,
    findApiKey: keys.find,
    audit,
    version: '1.2.3',
    publicFolder: publicFolder('sidecar'),
    ...dependencies,
  });
  const { url, port, stop } = await listen(sidecar.handler, config.host, config.port, {
    connections: sidecar.connections,
  });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= (async () => {
      keys.close();
      await stop(0);
      await sidecar.close();
    })();
    return closed;
  };
  afterTest(close);
  const api = request.agent(url).set('x-api-key', API_KEY);
  const logText = async () => {
    await stop(0);
    // The audit writes its lines a timer later than the answer.
    if (config.audit === 'stdout') await until(() => audit.waiting() === 0);
    // The log passes its lines on at the end of a turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    return text();
  };
  return {
    url,
    port,
    sweep: sidecar.sweep,
    /** The key-file folder: temporary, removed after the test. */
    folder,
    /** A client that sends the API key. */
    api,
    /** Sends a batch, and answers the body of the answer. */
    batch: async (body: object) => (await api.post('/api/keyfiles').send(body).expect(200)).body,
    /** A client that sends none. */
    unauthenticated: request(url),
    /** How many connections are in each state. */
    counts: sidecar.connections.counts,
    /** Advances its monotonic clock, which is stopped otherwise. */
    advance(ms: number) {
      monotonic += ms;
    },
    /** Its request handler. */
    handler: sidecar.handler,
    /** What it has logged so far: the line of a request is written after its answer. */
    logged: text,
    /** Stops the sidecar before the test ends. */
    stop: close,
    /** Stops the sidecar, so that the last line is there, and answers the log as written at level `debug`. */
    logText,
    /** The same, line by line. */
    logEntries: async () =>
      (await logText())
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as LogEntry),
    /** The entries of the folder: the path and content of each file, the path and a mark of everything else. */
    files: () => filesUnder(folder),
  };
}

/** A file of API keys, as the configuration names it; removed after the test. */
export async function apiKeysFile(...keys: readonly object[]): Promise<{ apiKeysFile: string }> {
  const path = join(await temporaryFolder(), 'keys.json');
  await fs.writeJson(path, { keys }, { mode: 0o600 });
  return { apiKeysFile: path };
}

function countedIds(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;
  };
}

async function filesUnder(folder: string): Promise<Record<string, string>> {
  const entries = await fs.readdir(folder, { recursive: true, withFileTypes: true });
  const found = entries.map(async (entry): Promise<[string, string]> => {
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path);
    if (entry.isFile()) return [name, await fs.readFile(path, 'utf8')];
    if (entry.isSymbolicLink()) return [name, `link to ${await fs.readlink(path)}`];
    return [name, entry.isDirectory() ? 'folder' : 'other'];
  });
  return Object.fromEntries((await Promise.all(found)).sort());
}
