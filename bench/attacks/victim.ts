import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, createReadStream, mkdirSync, openSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { API_KEY } from '../load';
import { followed, residentMiB } from '../processes';
import type { Cgroup } from './cgroup';
import { ask, type Target } from './rightful';
import { sleep } from './waiting';

export interface Victim extends Target {
  readonly child: ChildProcess;
  readonly log: string;
  /** Resolves when the process has ended, with its exit code or signal. */
  readonly ended: Promise<string>;
  /** How it ended; undefined: it runs. */
  ending(): string | undefined;
}

export interface VictimOptions {
  /** The folder of the build, which holds `sidecar/main.js`. */
  readonly dist: string;
  /** Where key files and log go. */
  readonly folder: string;
  /** The folder of the certificates; undefined: plain HTTP. */
  readonly certificates: string | undefined;
  readonly cgroup: Cgroup | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** Joins the control groups, whose files come before the separator, and becomes the program after it. */
const JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 97; shift; done; shift; exec "$@"';

/** Starts a sidecar, its log in a file, and waits until it answers. */
export async function startVictim({
  dist,
  folder,
  certificates,
  cgroup,
  env,
}: VictimOptions): Promise<Victim> {
  const port = await freePort();
  const keys = join(folder, 'keys');
  mkdirSync(keys, { recursive: true });
  const log = join(folder, 'sidecar.log');
  const output = openSync(log, 'a');
  const tls = certificates && {
    PACKAGERDRMAPI_TLSCERT: join(certificates, 'server.pem'),
    PACKAGERDRMAPI_TLSKEY: join(certificates, 'server-key.pem'),
  };
  const program = [process.execPath, join(dist, 'sidecar/main.js')];
  const child = followed(
    spawn('/bin/sh', ['-c', JOIN, 'sh', ...(cgroup?.joins ?? []), '--', ...program], {
      // A .env of the current folder is not for this sidecar.
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        PACKAGERDRMAPI_HOST: '127.0.0.1',
        PACKAGERDRMAPI_PORT: `${port}`,
        PACKAGERDRMAPI_APIKEY: API_KEY,
        PACKAGERDRMAPI_KEYFILESPATH: keys,
        ...tls,
        ...env,
      },
      stdio: ['ignore', output, output],
    }),
  );
  closeSync(output);
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const victim = {
    port,
    authority: certificates && join(certificates, 'authority.pem'),
    child,
    log,
    ended,
    ending: () => child.signalCode ?? (child.exitCode === null ? undefined : `exit code ${child.exitCode}`),
  };
  await untilReady(victim);
  return victim;
}

async function untilReady(victim: Victim): Promise<void> {
  const begun = performance.now();
  while ((await ask(victim, { path: '/readyz', from: '127.0.0.1' })).outcome !== 'served') {
    const ending = victim.ending();
    if (ending)
      throw new Error(`the sidecar ended with ${ending}; is there a build in the folder of --dist?`);
    if (performance.now() - begun > 20_000) throw new Error('the sidecar did not answer in 20 s');
    await sleep(10);
  }
}

/** Samples a process's resident memory every 100 ms; the function it answers ends that and answers the peak in MiB. */
export function followMemory({ child }: Victim): () => number {
  let peak = 0;
  const sample = () => {
    try {
      const now = residentMiB(child);
      if (now > peak) peak = now;
    } catch {
      // The process has ended.
    }
  };
  const timer = setInterval(sample, 100);
  return () => {
    sample();
    clearInterval(timer);
    return peak;
  };
}

export const logBytes = ({ log }: Victim) => statSync(log).size;

/** Counts the lines of a log behind its first `from` bytes, by level and message. */
export async function countLines({ log }: Victim, from: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const line of createInterface({ input: createReadStream(log, { start: from }) })) {
    const kind = kindOf(line);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

function kindOf(line: string): string {
  try {
    const { level = 'no level', message = 'no message', audit, action, result } = JSON.parse(line);
    return audit ? `audit: ${action} ${result}` : `${level}: ${message}`;
  } catch {
    return 'not JSON';
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
