import { EventEmitter, once } from 'node:events';
import { Writable } from 'node:stream';
import request from 'supertest';
import { createEmulatorApp } from '../../src/emulator/app';
import type { Client } from '../../src/emulator/clients';
import { readEmulatorConfig } from '../../src/emulator/config';
import { createContext } from '../../src/emulator/context';
import type { Environment } from '../../src/kernel/config';
import { createLog } from '../../src/kernel/log';
import { listen } from '../../src/kernel/server';

export interface TestEmulator {
  readonly url: string;
  readonly port: number;
  /** The seeded client. */
  readonly client: Client;
  /** Sends requests without a credential. */
  readonly stranger: ReturnType<typeof request>;
  /** Sends requests with the seeded client's API key. */
  readonly api: ReturnType<typeof request.agent>;
  /** The log as written, at level `debug`, once it has this many lines. */
  logOf(lines: number): Promise<string>;
}

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** Starts an emulator on a free port of loopback, with a fixed clock and counted request ids; it is stopped after the test. */
export async function startEmulator(env: Environment = {}): Promise<TestEmulator> {
  const config = readEmulatorConfig(env);
  const { stream, logOf } = captureLines();
  const clock = () => new Date('2030-01-01T00:00:00.000Z');
  let ids = 0;
  const newId = () => {
    ids += 1;
    return `request-${ids}`;
  };
  const surroundings = { log: createLog('debug', stream, clock), clock, now: () => 0, newId };
  const app = createEmulatorApp(createContext(config, surroundings));
  const { url, port, stop } = await listen(app, '127.0.0.1', 0);
  cleanups.push(() => stop(0));
  return {
    url,
    port,
    client: config.client,
    stranger: request(url),
    api: request.agent(url).set('API-KEY', config.client.apiKey),
    logOf,
  };
}

/** A line is written after its request has been answered: a test that reads the log waits for its lines. */
function captureLines(): { stream: Writable; logOf: (lines: number) => Promise<string> } {
  let text = '';
  const written = new EventEmitter();
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk);
      written.emit('lines');
      done();
    },
  });
  const logOf = async (lines: number) => {
    while (text.split('\n').length - 1 < lines) await once(written, 'lines');
    return text;
  };
  return { stream, logOf };
}
