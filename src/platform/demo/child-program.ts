import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_WITHIN_MS = 15_000;
const STOP_WITHIN_MS = 12_000;
const ANSWER_WITHIN_MS = 2_000;
const POLL_MS = 50;
const LAST_LINES = 10;

/** A program that runs as a child process. */
export interface ChildProgram {
  /** Resolves when the program answers its readiness path. @throws Error with its last lines when it does not. */
  ready(url: string): Promise<void>;
  /** Resolves with a sentence when the program has ended, for whatever reason. */
  readonly ended: Promise<string>;
  /** Resolves with its exit code, or null, and what it wrote on standard output and error, when it has ended. */
  readonly result: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>;
}

/** What is started, with these variables and no others: nothing of the user's shell or `.env` reaches it. */
interface ProgramStart {
  readonly name: string;
  /** The path of a program; without one, Node, for which the first argument is the script. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** All programs of a demo. Once they are being stopped no other one starts, whoever was about to start it. */
export class Programs {
  readonly #running = new Map<ChildProgram, () => Promise<void>>();
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  /** @throws Error once the programs are being stopped. */
  start({ name, command = process.execPath, args, variables }: ProgramStart): ChildProgram {
    if (this.#isOver) throw new Error(`The ${name} is not started: the demo ends.`);
    const child = spawn(command, args, {
      // Where no `.env` lies.
      cwd: __dirname,
      env: variables,
      stdio: ['ignore', 'pipe', 'pipe'],
      // Its own process group: a terminal's Ctrl-C would reach it twice, once from here, and a second signal is a kill.
      detached: true,
      windowsHide: true,
    });
    const program = programOf(name, child);
    this.#running.set(program, () => stop(child, program.ended));
    program.ended.then(() => this.#running.delete(program));
    return program;
  }

  /** Asks every program to end, and ends those that do not. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all([...this.#running.values()].map((each) => each()));
  }
}

function programOf(name: string, child: ChildProcess): ChildProgram {
  const lastLines = collectLines(child);
  const written = { out: '', err: '' };
  child.stdout?.on('data', (chunk: string) => {
    written.out = (written.out + chunk).slice(-MAX_OUT);
  });
  child.stderr?.on('data', (chunk: string) => {
    written.err = (written.err + chunk).slice(-MAX_OUT);
  });
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`can't be started: ${error.message}`));
    child.once('close', (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
  });
  const ended = exited.then((how) => sentence(name, how, lastLines()));
  return {
    ended,
    result: exited.then(() => ({ code: child.exitCode, ...written })),
    ready: (url) => untilReady(name, url, ended, lastLines),
  };
}

/** Characters. */
const MAX_OUT = 1024 * 1024;

async function untilReady(
  name: string,
  url: string,
  ended: Promise<string>,
  lastLines: () => string[],
): Promise<void> {
  const deadline = AbortSignal.timeout(READY_WITHIN_MS);
  let failure: string | undefined;
  ended.then((how) => {
    failure = how;
  });
  let answer = 'it was not asked';
  while (!deadline.aborted) {
    answer = await ask(url);
    if (failure !== undefined) throw new Error(failure);
    if (answer === 'ready') return;
    await sleep(POLL_MS);
  }
  throw new Error(
    sentence(name, `was not ready within ${READY_WITHIN_MS / 1000} s (${answer})`, lastLines()),
  );
}

/** `ready`, or what the program answered in its place. */
async function ask(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    const text = await response.text();
    return response.ok ? 'ready' : `${url} answered ${response.status} ${text}`;
  } catch {
    return `${url} does not answer`;
  }
}

async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(kill);
}
function collectLines({ stdout, stderr }: ChildProcess): () => string[] {
  let text = '';
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = `${text}${chunk}`
        .split('\n')
        .slice(-LAST_LINES - 1)
        .join('\n');
    });
  }
  return () => text.split('\n').filter((line) => line !== '');
}

function sentence(name: string, how: string, lines: readonly string[]): string {
  const said =
    lines.length === 0
      ? ' It said nothing.'
      : ` Its last lines:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  return `The ${name} ${how}.${said}`;
}

const LOOPBACK = '127.0.0.1';
const TRIES = 100;

/**
 * The first port from `wanted` on that nothing listens on and that isn't `promised` to another program.
 * @throws Error when a hundred in a row are taken.
 */
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
