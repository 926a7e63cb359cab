import { randomUUID } from 'node:crypto';
import { config as loadDotenv } from 'dotenv';
import { ConfigError } from '../kernel/config';
import { createLog } from '../kernel/log';
import { listen, runAsProcess } from '../kernel/server';
import { createEmulatorApp } from './app';
import { type EmulatorConfig, readEmulatorConfig } from './config';
import { createContext, type Surroundings } from './context';

const GRACE_MS = 10_000;

function main(): void {
  loadDotenv({ quiet: true });
  let config: EmulatorConfig;
  try {
    config = readEmulatorConfig(process.env);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    process.stderr.write(`${thrown.message}\nSee the table of variables in README.md.\n`);
    process.exit(2);
  }
  const clock = () => new Date();
  const log = createLog(config.logLevel, process.stdout, clock);
  const surroundings = { log, clock, now: () => performance.now(), newId: randomUUID };
  void runAsProcess({ name: 'emulator', log, start: () => start(config, surroundings) });
}

async function start(config: EmulatorConfig, surroundings: Surroundings) {
  const { log } = surroundings;
  for (const variable of config.unknownVariables) log.warn('unknown variable', { variable });
  const app = createEmulatorApp(createContext(config, surroundings));
  const server = await listen(app, config.host, config.port);
  log.info('listening', { service: 'emulator', url: server.url, client: config.client.name });
  return { stop: () => server.stop(GRACE_MS) };
}

main();
