import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { afterTest } from './after-test';
import { until } from './until';

export const DIST = resolve(__dirname, '../../dist');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type BuiltProgram = ReturnType<typeof runScript>;

export interface Options {
  readonly args?: readonly string[];
  /** All its variables: nothing of this process's own reaches it. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** In place of this process's user and group. */
  readonly uid?: number;
  readonly gid?: number;
}

/** Bundles a script of this folder for `runScript`, and answers where it lies. */
export function bundledScript(name: string): string {
  const outfile = join(DIST, 'test', `${name}.js`);
  const entryPoints = [join(__dirname, `${name}.ts`)];
  buildSync({ entryPoints, outfile, bundle: true, platform: 'node', target: 'node20' });
  return outfile;
}

/** Runs a script in a Node process of its own; it is killed after the test. */
export function runScript(path: string, { args = [], ...options }: Options) {
  const child = spawn(process.execPath, [path, ...args], {
    env: {},
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  let over = false;
  const watchers = new Set<() => void>();
  const changed = () => {
    for (const look of watchers) look();
  };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    changed();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => {
      over = true;
      changed();
      resolve({ code, signal, stdout, stderr });
    });
  });
  afterTest(() => {
    child.kill('SIGKILL');
    return ended;
  });
  /** Resolves when its standard output matches. Rejects with all output when it ends before. */
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(stdout);
        if (!found && !over) return;
        watchers.delete(look);
        if (found) resolve(found);
        else reject(new Error(`${path} ended before it wrote ${pattern}:\n${stdout}${stderr}`));
      };
      watchers.add(look);
      look();
    });
  return {
    /** Resolves when the program has ended and all it wrote is read. */
    ended,
    /** Its standard output so far. */
    stdout: () => stdout,
    until,
    send: (signal: NodeJS.Signals) => void child.kill(signal),
  };
}

const DEFAULTS = {
  sidecar: { PACKAGERDRMAPI_HOST: '127.0.0.1', PACKAGERDRMAPI_PORT: '0' },
  emulator: {
    EMULATOR_HOST: '127.0.0.1',
    EMULATOR_PORT: '0',
    EMULATOR_CONTROL_PORT: '0',
    EMULATOR_RTMP_PORT: 'off',
  },
  packager: { PACKAGER_PORT: '0' },
};

/** Starts a built program on a free port of loopback, and answers when it listens, with the address to call. */
export async function startBuilt(
  name: 'sidecar' | 'emulator' | 'packager',
  { env = {}, cwd, dist = DIST }: Options & { readonly dist?: string },
): Promise<BuiltProgram & { url: string }> {
  const program = runScript(join(dist, name, 'main.js'), { cwd, env: { ...DEFAULTS[name], ...env } });
  const [, url = ''] = await program.until(/"message":"listening".*"url":"([^"]+)"/);
  return { ...program, url };
}

/** Waits until a sidecar answers 200 to `/readyz`. */
export const untilReady = (url: string): Promise<void> =>
  until(async () => (await fetch(`${url}/readyz`)).status === 200);
