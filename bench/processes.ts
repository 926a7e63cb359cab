import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';

/** The output of `npm run bench` and `npm run attacks`; both are run in the root of the repository. */
const DIST = resolve('dist');

const children = new Set<ChildProcess>();

/** Remembers a child process, so that it ends with this one. */
export function followed<Child extends ChildProcess>(child: Child): Child {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Ends every child process at once. */
export function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}

export interface Started {
  readonly url: string;
  readonly child: ChildProcess;
  /** Milliseconds from the start of the process to its first 200 at `readyPath`. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Starts a program on the given port, its log in a file, and waits until it answers. */
export async function start(
  script: string,
  env: Record<string, string>,
  readyPath: string,
  log = '/dev/null',
  mostMs = 20_000,
): Promise<Started> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const output = openSync(log, 'a');
  const ports = { BENCH_PORT: `${port}`, PACKAGERDRMAPI_PORT: `${port}`, EMULATOR_PORT: `${port}` };
  const begun = performance.now();
  const child = followed(
    spawn(process.execPath, [join(DIST, script)], {
      env: { PATH: process.env.PATH, NODE_ENV: 'production', ...ports, ...env },
      stdio: ['ignore', output, output],
    }),
  );
  closeSync(output);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  while (!(await answers(url + readyPath))) {
    if (child.exitCode !== null) throw new Error(`${script} ended with ${child.exitCode}; see ${log}`);
    const passedMs = performance.now() - begun;
    if (passedMs > mostMs) throw new Error(`${script} did not answer in ${mostMs / 1000} s; see ${log}`);
    // Questions must not be a load for a start that takes long.
    await new Promise((resolve) => setTimeout(resolve, Math.max(2, passedMs / 500)));
  }
  const readyMs = performance.now() - begun;
  const stop = () => {
    child.kill('SIGTERM');
    return ended;
  };
  return { url, child, readyMs, stop };
}

/** Resident memory of a process in MiB. */
export function residentMiB(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Maximum resident memory of a process, in MiB. */
export function peakMiB(child: ChildProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/** Processor time a process has used, in milliseconds. */
export function processorMs(child: ChildProcess): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Runs the bare durable loop and answers its writes per second and its median milliseconds a write. */
export function durableLoop(
  folder: string,
  body: string,
  concurrency: number,
  ms: number,
): Promise<{ perSecond: number; median: number }> {
  const env = {
    BENCH_FOLDER: folder,
    BENCH_BODY: body,
    BENCH_CONCURRENCY: `${concurrency}`,
    BENCH_MS: `${ms}`,
  };
  const child = followed(
    spawn(process.execPath, [join(DIST, 'bench/durable-loop.js')], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once('close', (code) =>
      code === 0 ? resolve(JSON.parse(text)) : reject(new Error(`the durable loop ended with ${code}`)),
    );
  });
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** A port of loopback that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
