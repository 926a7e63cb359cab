import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fs from 'fs-extra';

/** Tests and benchmarks are run in the root of the repository. */
export const DIST = resolve('dist');
const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 20_000;
const POLL_MS = 50;

export type ProgramName = 'sidecar' | 'emulator' | 'packager';

interface Program {
  readonly url: string;
  readonly pid: number;
  /** Resolves when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** The built programs of a chain, each with a log in its folder. */
export class ChainPrograms {
  /** The last one of each name, also when it has ended. */
  readonly running = new Map<ProgramName, Program>();

  constructor(readonly home: string) {}

  log(name: ProgramName): string {
    return readFileSync(join(this.home, `${name}.log`), 'utf8');
  }

  /** @throws Error where it is not started. */
  get(name: ProgramName): Program {
    const program = this.running.get(name);
    if (!program) throw new Error(`The ${name} is not started.`);
    return program;
  }

  async start(name: ProgramName, env: Readonly<Record<string, string>>): Promise<Program> {
    const path = join(this.home, `${name}.log`);
    const before = fs.existsSync(path) ? this.log(name).length : 0;
    const log = openSync(path, 'a');
    const child: ChildProcess = spawn(process.execPath, [join(DIST, name, 'main.js')], {
      cwd: this.home,
      env: { PATH: process.env.PATH ?? '', HOME: this.home, ...env },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    let isOver = false;
    const ended = new Promise<void>((settle) =>
      child.once('close', () => {
        isOver = true;
        settle();
      }),
    );
    const program = {
      url: '',
      pid: child.pid ?? 0,
      end: (signal: NodeJS.Signals) => {
        if (!isOver) child.kill(signal);
        const tooLong = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
        return ended.finally(() => clearTimeout(tooLong));
      },
    };
    this.running.set(name, program);
    const url = await this.logged(name, /"message":"listening".*?"url":"([^"]+)"/, before, () => isOver);
    const started = { ...program, url };
    this.running.set(name, started);
    return started;
  }

  /** A part of a program's log. */
  async logged(name: ProgramName, pattern: RegExp, from = 0, isOver = () => false): Promise<string> {
    const deadline = Date.now() + READY_WITHIN_MS;
    for (;;) {
      const text = this.log(name).slice(from);
      const found = pattern.exec(text);
      if (found) return found[1] ?? '';
      if (isOver() || Date.now() > deadline) throw new Error(`The ${name} did not start:\n${text}`);
      await pause(POLL_MS);
    }
  }
}
