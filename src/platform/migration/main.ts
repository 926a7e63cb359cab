#!/usr/bin/env node
import { join } from 'node:path';
import { commandRun } from '../../terminal/output';
import { runMigrate } from './command/program';

async function main(): Promise<void> {
  const run = commandRun(join(__dirname, '../../package.json'));
  process.exitCode = await runMigrate({ ...run, env: process.env });
}

void main();
