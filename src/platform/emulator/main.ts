#!/usr/bin/env node
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { config as loadDotenv } from 'dotenv';
import { createConnections } from '../../http/connections';
import { createLog } from '../../http/log';
import { createRefusalLog } from '../../http/refusal-log';
import { configOrExit, listen, runAsProcess } from '../../http/server';
import type { Tls } from '../../http/tls';
import { createEmulatorApp } from './app';
import { type EmulatorConfig, readEmulatorConfig } from './config';
import { createContext, type EmulatorContext, type Surroundings } from './context';
import { createControlApp } from './control/app';
import { startRtmpIngest } from './live/rtmp-ingest';
import { openPlatformTls } from './own-certificates';

const VARIABLES = 'docs/emulator.md';

const GRACE_MS = 10_000;
/** How long a file may take to come over a slow connection; one that comes to a halt is cut much earlier. */
const UPLOAD_MS = 24 * 60 * 60 * 1000;
const LOG_BATCH_MS = 10;
const LETTERS_AND_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Anybody on the machine may test a stream, a few at a time. */
const FENCE = { program: join(__dirname, 'stream-test.js'), processorSeconds: 20, heapMib: 192 };

async function main(): Promise<void> {
  loadDotenv({ quiet: true });
  const config = configOrExit(VARIABLES, () => readEmulatorConfig(process.env));
  const wallClock = () => new Date();
  const log = createLog(config.logLevel, process.stdout, wallClock, LOG_BATCH_MS);
  const surroundings = {
    log,
    wallClock,
    now: () => performance.now(),
    newId: randomUUID,
    newResourceId: () => randomText(8),
    newSecret: () => randomText(40),
    newBytes: randomBytes,
    publicFolder: join(__dirname, 'public'),
    fence: FENCE,
  };
  const tls = config.tls && (await tlsOrExit(openPlatformTls(config.tls, { log, clock: wallClock })));
  void runAsProcess({ name: 'emulator', log, start: () => start(config, surroundings, tls) });
}

async function tlsOrExit(opening: Promise<Tls>): Promise<Tls> {
  const [opened] = await Promise.allSettled([opening]);
  return configOrExit(VARIABLES, () => {
    if (opened.status === 'rejected') throw opened.reason;
    return opened.value;
  });
}

function randomText(length: number): string {
  return Array.from({ length }, () => LETTERS_AND_DIGITS[randomInt(LETTERS_AND_DIGITS.length)]).join('');
}

interface Running {
  stop(graceMs: number): Promise<void>;
}

async function start(config: EmulatorConfig, surroundings: Surroundings, tls: Tls | undefined) {
  const { log } = surroundings;
  for (const variable of config.unknownVariables) log.warn('unknown variable', { variable });
  const context = createContext(config, surroundings);
  const running: Running[] = [];
  // Both ports: a client that holds too many connections is named in the log.
  const follow = () =>
    createConnections({
      isProbe: ({ url }) => url === '/healthz',
      onRefused: createRefusalLog(log),
    });
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
  return { stop: () => stopAll(context, running) };
}

/** Encoders, webhooks and delays don't hold up the end; requests under way are answered. */
async function stopAll(context: EmulatorContext, running: readonly Running[]): Promise<void> {
  const { broadcast, webhooks, uploads, faults, packaging } = context;
  broadcast.reset();
  webhooks.stop();
  faults.clear();
  await Promise.all(running.map((each) => each.stop(GRACE_MS)));
  await packaging.stop();
  uploads.reset();
}

void main();
