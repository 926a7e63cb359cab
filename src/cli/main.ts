#!/usr/bin/env node
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { commandRun } from '../terminal/output';
import { runCli } from './run';

/** Far more than any manifest and the newest segments of it need. */
const SANDBOX = { program: join(__dirname, 'stream-test.js'), processorSeconds: 60, heapMib: 512 };

async function main(): Promise<void> {
  process.exitCode = await runCli({
    ...commandRun(join(__dirname, '../../package.json')),
    env: process.env,
    now: () => new Date(),
    random: (size) => crypto.getRandomValues(Buffer.alloc(size)),
    wait: (ms, signal) => setTimeout(ms, undefined, { signal }).catch(() => undefined),
    sandbox: SANDBOX,
  });
}

void main();
