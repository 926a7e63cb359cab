#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runMigrate } from './command/program';

async function main(): Promise<void> {
  const interrupt = new AbortController();
  process.on('SIGINT', () => {
    // The second time, the user doesn't want to wait for what is under way.
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
  });
  const { version } = JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8'));
  process.exitCode = await runMigrate({
    argv: process.argv.slice(2),
    version,
    env: process.env,
    cwd: process.cwd(),
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    interrupted: interrupt.signal,
  });
}

void main();
