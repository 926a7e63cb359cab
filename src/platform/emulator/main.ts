#!/usr/bin/env node
import { randomBytes, randomUUID } from 'node:crypto';
import { config as loadDotenv } from 'dotenv';
import { createLog } from '../../http/log';
import { answerHelp, configOrExit, runAsProcess } from '../../http/server';
import { readEmulatorConfig } from './config';
import { openPlatformTls } from './own-certificates';
import { startEmulator, surroundingsOf } from './start-emulator';

const VARIABLES = 'docs/emulator.md';
const GRACE_MS = 10_000;
const LOG_BATCH_MS = 10;

async function main(): Promise<void> {
  answerHelp(VARIABLES);
  loadDotenv({ quiet: true });
  const config = configOrExit(VARIABLES, () => readEmulatorConfig(process.env));
  const wallClock = () => new Date();
  const log = createLog(config.logLevel, process.stdout, wallClock, LOG_BATCH_MS);
  const own = { wallClock, now: () => performance.now(), newId: randomUUID, newBytes: randomBytes };
  const tls = config.tls && (await orExit(openPlatformTls(config.tls, { log, clock: wallClock })));
  const start = async () => {
    const { stop } = await orExit(startEmulator(config, surroundingsOf(log, __dirname, own), tls));
    return { stop: () => stop(GRACE_MS) };
  };
  void runAsProcess({ name: 'emulator', log, start });
}

/** Ends the process when the configuration names a file that cannot be used. */
async function orExit<Opened>(opening: Promise<Opened>): Promise<Opened> {
  const [opened] = await Promise.allSettled([opening]);
  return configOrExit(VARIABLES, () => {
    if (opened.status === 'rejected') throw opened.reason;
    return opened.value;
  });
}

void main();
