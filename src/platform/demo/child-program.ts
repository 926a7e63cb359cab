import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_WITHIN_MS = 15_000;
const STOP_WITHIN_MS = 12_000;
const ANSWER_WITHIN_MS = 2_000;
const POLL_MS = 50;
const LAST_LINES = 10;
/** Characters. */
const MAX_OUT = 1024 * 1024;

export type ChildProgram = ReturnType<typeof programOf>;

/** A program to start. It gets these variables only, nothing of the user's shell or `.env`. */
interface ProgramStart {
  readonly name: string;
  /** The path of a program; without one, Node, for which the first argument is the script. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
}

const running = new Map<Child, { readonly programs: Programs; readonly ended: Promise<string> }>();

/** A process that ends without stopping its programs leaves none behind. */
function killAll(): void {
  for (const child of running.keys()) child.kill();
}

/** All programs of a demo. Once they are being stopped, no other one starts. */
export class Programs {
  readonly #ownGroups: boolean;
  #isOver = false;

  /**
   * With groups of their own, a terminal's Ctrl-C reaches this process only, which then stops them in order: a second
   * signal would be a kill. Without, Ctrl-C ends them even if this process does not.
   */
  constructor({ ownGroups = true }: { readonly ownGroups?: boolean } = {}) {
    this.#ownGroups = ownGroups;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** @throws Error once the programs are being stopped. */
  start({ name, command = process.execPath, args, variables, onLine }: ProgramStart): ChildProgram {
    if (this.#isOver) throw new Error(`The ${name} is not started: the demo ends.`);
    const child = spawn(command, args, {
      // Where no `.env` lies.
      cwd: __dirname,
      env: variables,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: this.#ownGroups,
      windowsHide: true,
    });
    const program = programOf(name, child);
    if (onLine) createInterface(child.stdout).on('line', onLine);
    // One listener for all: Node warns of more than ten.
    if (running.size === 0) process.on('exit', killAll);
    running.set(child, { programs: this, ended: program.ended });
    program.ended.then(() => {
      running.delete(child);
      if (running.size === 0) process.off('exit', killAll);
    });
    return program;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    const own = [...running].filter(([, { programs }]) => programs === this);
    await Promise.all(own.map(([child, { ended }]) => stop(child, ended)));
  }
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

function programOf(name: string, child: Child) {
  const written = { out: '', err: '' };
  const keep = (stream: Readable, name: keyof typeof written) =>
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      written[name] = (written[name] + chunk).slice(-MAX_OUT);
    });
  keep(child.stdout, 'out');
  keep(child.stderr, 'err');
  const sentence = (how: string) => {
    const lines = `${written.out}\n${written.err}`.split('\n').filter((line) => line !== '');
    const last = lines.slice(-LAST_LINES).map((line) => `\n  ${line}`);
    return `The ${name} ${how}.${lines.length === 0 ? ' It said nothing.' : ` Its last lines:${last.join('')}`}`;
  };
  let isRunning = true;
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`can't be started: ${error.message}`));
    child.once('close', (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
  }).finally(() => {
    isRunning = false;
  });
  const ended = exited.then(sentence);
  return {
    ended,
    /** Its exit code, or null, and its standard output and error, when it has ended. */
    result: exited.then(() => ({ code: child.exitCode, ...written })),
    /** Resolves when the program answers its readiness path. @throws Error with its last lines when it does not. */
    async ready(url: string) {
      const deadline = AbortSignal.timeout(READY_WITHIN_MS);
      let answer = 'it was not asked';
      while (isRunning && !deadline.aborted) {
        const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
        const response = await fetch(url, { signal }).catch(() => undefined);
        if (response?.ok) return;
        answer = `${url} ${response ? `answered ${response.status} ${await response.text()}` : 'does not answer'}`;
        await sleep(POLL_MS);
      }
      if (!isRunning) throw new Error(await ended);
      throw new Error(sentence(`was not ready within ${READY_WITHIN_MS / 1000} s (${answer})`));
    },
  };
}

async function stop(child: Child, ended: Promise<string>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(kill);
}

/** Next to this program in a clone, else in the installed package. @throws Error with what to install. */
export function productProgram(house: 'sidecar' | 'cli'): string {
  const program = `${house}/main.js`;
  const built = join(__dirname, '..', program);
  if (existsSync(built)) return built;
  try {
    return createRequire(__filename).resolve(`packager-drm-api/dist/${program}`);
  } catch (cause) {
    throw new Error('The npm package packager-drm-api is not installed next to this one. Install it.', {
      cause,
    });
  }
}

const LOOPBACK = '127.0.0.1';
const TRIES = 100;

/** The first free port from `wanted` on that is not `promised`. @throws Error when a hundred are taken. */
export async function freePort(wanted: number, promised: ReadonlySet<number> = new Set()): Promise<number> {
  for (let port = wanted; port < wanted + TRIES; port += 1) {
    if (!promised.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`The ports ${wanted} to ${wanted + TRIES - 1} are all taken.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(true)));
  });
}
