import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { ConfigError } from '../../http/config';
import { createConnections } from '../../http/connections';
import { systemCode } from '../../http/errors';
import type { Log } from '../../http/log';
import { createRefusalLog } from '../../http/refusal-log';
import { listen } from '../../http/server';
import type { Tls } from '../../http/tls';
import { createEmulatorApp } from './app';
import type { EmulatorConfig } from './config';
import { createContext, type EmulatorContext } from './context';
import { createControlApp } from './control/app';
import { openStateFile } from './control/saved-state';
import type { EmulatorDependencies } from './dependencies';
import { startRtmpIngest } from './live/rtmp-ingest';
import { textOf } from './seeded-source';

/** How long a file may take to come over a slow connection; one that comes to a halt is cut much earlier. */
const UPLOAD_MS = 24 * 60 * 60 * 1000;

/** @param folder that of the built emulator, with its pages and the process that tests streams. */
export function dependenciesOf(
  log: Log,
  folder: string,
  own: Pick<EmulatorDependencies, 'wallClock' | 'now' | 'newId' | 'newBytes'>,
): EmulatorDependencies {
  return {
    ...own,
    log,
    newResourceId: () => textOf(own.newBytes(8)),
    newSecret: () => textOf(own.newBytes(40)),
    publicFolder: join(folder, 'public'),
    // Anybody on the machine may test a stream, a few at a time.
    sandbox: { program: join(folder, 'stream-test.js'), processorSeconds: 20, heapMib: 192 },
  };
}

interface Running {
  stop(graceMs: number): Promise<void>;
}

/** Resolves when the ports answer. Rejects with the system's error (`EADDRINUSE`) or a ConfigError. */
export async function startEmulator(
  config: EmulatorConfig,
  dependencies: EmulatorDependencies,
  tls: Tls | undefined,
) {
  const { log } = dependencies;
  for (const variable of config.unknownVariables) log.warn('unknown variable', { variable });
  requireFolder(config.uploadsFolder);
  const context = createContext(config, dependencies);
  const stateFile = config.stateFile === undefined ? undefined : openStateFile(context, config.stateFile);
  const running: Running[] = [];
  // Both ports: a client that holds too many connections is named in the log.
  const follow = () =>
    createConnections({
      isProbe: ({ url }) => url === '/healthz',
      onRefused: createRefusalLog(log),
    });
  try {
    const platform = await listen(createEmulatorApp(context), config.host, config.port, {
      tls,
      connections: follow(),
      requestTimeoutMs: UPLOAD_MS,
    });
    running.push(platform);
    log.info('listening', { service: 'emulator', url: platform.url, client: config.client.name });
    const control = await listen(createControlApp(context), config.controlHost, config.controlPort, {
      connections: follow(),
    });
    running.push(control);
    log.info('listening', { service: 'control', url: control.url });
    if (config.rtmpPort !== undefined) {
      const rtmp = await startRtmpIngest(context, { host: config.host, port: config.rtmpPort });
      running.push(rtmp);
      log.info('listening', { service: 'rtmp', port: rtmp.port });
    }
    return {
      url: platform.url,
      controlUrl: control.url,
      /** Requests that are under way have `graceMs` to be answered. */
      stop: (graceMs: number) => stopAll(context, running, { graceMs, stateFile }),
    };
  } catch (thrown) {
    // A port is taken: closes the others.
    await stopAll(context, running, { graceMs: 0, stateFile });
    throw thrown;
  }
}

/** @throws ConfigError when uploads cannot make a folder there. */
function requireFolder(folder: string): void {
  try {
    fs.ensureDirSync(folder);
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (thrown) {
    const why = `cannot be used (${systemCode(thrown)}); name a folder that this user may write`;
    throw new ConfigError([`EMULATOR_UPLOADSFOLDER: ${folder}: ${why}`]);
  }
}

/** Encoders, webhooks and delays don't delay the end; requests under way are answered. */
async function stopAll(
  context: EmulatorContext,
  running: readonly Running[],
  { graceMs, stateFile }: { readonly graceMs: number; readonly stateFile: { close(): void } | undefined },
): Promise<void> {
  const { clock, broadcast, webhooks, uploads, faults, packaging } = context;
  broadcast.reset(true);
  webhooks.stop();
  faults.letGo();
  await Promise.all(running.map((each) => each.stop(graceMs)));
  await packaging.stop();
  try {
    stateFile?.close();
  } finally {
    if (stateFile) uploads.end();
    else uploads.reset();
    // Its timers would keep the whole state in memory, for as long as an event may last.
    clock.reset();
  }
}
