#!/usr/bin/env node
import { randomBytes, randomUUID } from 'node:crypto';
import { config as loadDotenv } from 'dotenv';
import { createLog } from '../../http/log';
import { answerHelp, configOrExit, runAsProcess } from '../../http/server';
import { readEmulatorConfig } from './config';
import { openPlatformTls } from './own-certificates';
import { dependenciesOf, startEmulator } from './start-emulator';

const page = 'docs/emulator.md';
const GRACE_MS = 10_000;
const LOG_BATCH_MS = 10;

answerHelp(page);
loadDotenv({ quiet: true });
const config = configOrExit(page, () => readEmulatorConfig(process.env));
const wallClock = () => new Date();
const log = createLog(config.logLevel, process.stdout, wallClock, LOG_BATCH_MS);

async function start() {
  const own = { wallClock, now: () => performance.now(), newId: () => randomUUID(), newBytes: randomBytes };
  const tls = config.tls && (await openPlatformTls(config.tls, { log, clock: wallClock }));
  const { stop } = await startEmulator(config, dependenciesOf(log, __dirname, own), tls);
  return { stop: () => stop(GRACE_MS) };
}

void runAsProcess({ name: 'emulator', page, log, start });
