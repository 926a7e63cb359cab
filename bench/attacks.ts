import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { API_KEY } from './load';
import { freePort, residentMiB } from './processes';
import { BODY, pathOf } from './sidecar';

/**
 * Attacks a built sidecar: `node dist/bench/attacks.js [SECONDS] [DIST]`, in the root of the repository. Prints a row for
 * each attack, and ends with 1 if a bound does not hold. Where control groups can be written, the sidecar has 256 MiB and
 * half a core.
 */

interface Attack {
  readonly connections: number;
  readonly opening: string;
  /** How often the opening is sent. */
  readonly times?: number;
  /** Sent every 500 ms after that. */
  readonly drip?: string;
  readonly reads: boolean;
  /** Bound on the peak of memory, as a multiple of idle memory. */
  readonly mostMemory?: number;
}

const head = (start: string, ...lines: string[]) =>
  [`${start} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n');
const LARGEST = head('GET /docs/swagger-ui-bundle.js');
const body = head('POST /api/keyfile/x', 'x-api-key: wrong', 'Content-Length: 1000');

const ATTACKS: Readonly<Record<string, Attack>> = {
  silent: { connections: 512, opening: '', reads: true },
  'half-open': { connections: 512, opening: 'GET / HTTP/1.1\r\n', reads: true },
  dripping: { connections: 512, opening: 'GET / HTTP/1.1\r\nX-Drip: ', drip: 'a', reads: true },
  refused: { connections: 512, opening: 'NOT HTTP AT ALL\r\n\r\n', reads: false },
  'body-never-comes': { connections: 512, opening: body, reads: true },
  'pipelined-8x5000': { connections: 8, opening: LARGEST, times: 5000, reads: false, mostMemory: 1.7 },
  'pipelined-512x400': { connections: 512, opening: LARGEST, times: 400, reads: false, mostMemory: 1.7 },
};

const MOST_MS = 2000;
const GRACE_MS = 10_000;
const REOPENED_PER_SECOND = 200;
const MEMORY_MIB = 256;

/** Runs in a child process. A connection that the server ends is replaced; one that reads nothing, after 2 s. */
function attack({ connections, opening, times = 1, drip, reads }: Attack, port: number): void {
  let due = connections;
  const open = () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    if (reads) socket.resume();
    socket.on('connect', () => socket.write(opening.repeat(times)));
    const dripping = drip && setInterval(() => socket.write(drip), 500);
    const replacing = reads ? undefined : setTimeout(() => socket.resetAndDestroy(), 2000);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(dripping);
      clearTimeout(replacing);
      due += 1;
    });
  };
  while (due > 0) {
    due -= 1;
    open();
  }
  setInterval(() => {
    for (let count = Math.min(due, REOPENED_PER_SECOND / 20); count > 0; count -= 1) {
      due -= 1;
      open();
    }
  }, 50);
  process.on('disconnect', () => process.exit(0));
}

interface Tally {
  served: number;
  failed: number;
  longestMs: number;
}

/** Sends requests over connections of their own until `stop` is called. */
function client(port: number, localAddress: string, everyMs: number, path: string, method = 'GET') {
  const tally: Tally = { served: 0, failed: 0, longestMs: 0 };
  const once = () =>
    new Promise<void>((done) => {
      const begun = performance.now();
      const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
      const options = { host: '127.0.0.1', port, path, method, localAddress, headers, agent: false };
      const end = (ok: boolean) => {
        tally[ok ? 'served' : 'failed'] += 1;
        tally.longestMs = Math.max(tally.longestMs, performance.now() - begun);
        done();
      };
      const outgoing = request({ ...options, timeout: MOST_MS * 2 }, (response) => {
        response.resume().on('end', () => end(response.statusCode === 200));
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error('timeout')));
      outgoing.on('error', () => end(false));
      outgoing.end(method === 'POST' ? BODY : undefined);
    });
  let running = true;
  const run = async () => {
    while (running) {
      await once();
      await sleep(everyMs);
    }
  };
  const over = run();
  return async () => {
    running = false;
    await over;
    return tally;
  };
}

async function besiege(name: string, seconds: number, dist: string, groups: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'packager-drm-api-attacks-'));
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    PACKAGERDRMAPI_HOST: '127.0.0.1',
    PACKAGERDRMAPI_PORT: `${port}`,
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: join(folder, 'keys'),
  };
  mkdirSync(env.PACKAGERDRMAPI_KEYFILESPATH);
  // Joins the control groups and becomes the program.
  const join_ = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"';
  const program = [process.execPath, join(dist, 'sidecar/main.js')];
  const sidecar = spawn('/bin/sh', ['-c', join_, 'sh', ...groups, '--', ...program], {
    cwd: folder,
    env,
    stdio: 'ignore',
  });
  const ended = new Promise<string>((done) =>
    sidecar.on('exit', (code, signal) => done(`${signal ?? code}`)),
  );
  try {
    return await observe(name, seconds, { sidecar, ended, port });
  } finally {
    sidecar.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Victim {
  readonly sidecar: ChildProcess;
  readonly ended: Promise<string>;
  readonly port: number;
}

async function observe(name: string, seconds: number, { sidecar, ended, port }: Victim) {
  const warming = client(port, '127.0.0.2', 5, pathOf('stream'), 'POST');
  await sleep(3000);
  await warming();
  const idle = residentMiB(sidecar);
  let peak = 0;
  const sampling = setInterval(() => {
    if (sidecar.exitCode === null && sidecar.signalCode === null) peak = Math.max(peak, residentMiB(sidecar));
  }, 50);
  const attackers = fork(__filename, ['--attack', name, `${port}`]);
  const clients = [
    client(port, '127.0.0.2', 50, pathOf('stream')),
    client(port, '127.0.0.2', 200, pathOf('stream'), 'POST'),
    client(port, '127.0.0.3', 200, '/healthz'),
  ];
  await Promise.race([sleep(seconds * 1000), ended]);
  const [reads, writes, probes] = await Promise.all(clients.map((stop) => stop()));
  clearInterval(sampling);
  const begun = performance.now();
  sidecar.kill('SIGTERM');
  const ending = await Promise.race([ended, sleep(GRACE_MS + 2000).then(() => 'not at all')]);
  const stopMs = performance.now() - begun;
  attackers.kill('SIGKILL');
  const { mostMemory = Number.POSITIVE_INFINITY } = ATTACKS[name] ?? {};
  const tallies = [reads, writes, probes].filter((tally) => tally !== undefined);
  const isServed = tallies.every(
    ({ served, failed, longestMs }) => served > 0 && failed === 0 && longestMs < MOST_MS,
  );
  const holds = isServed && peak < mostMemory * idle && ending === '0' && stopMs < GRACE_MS + 1000;
  const cells = [
    name,
    ...tallies.map(({ served, failed, longestMs }) => `${served}/${failed} ${longestMs.toFixed(0)} ms`),
    `${idle.toFixed(0)} → ${peak.toFixed(0)} MiB (${(peak / idle).toFixed(2)})`,
    `${ending} in ${stopMs.toFixed(0)} ms`,
    holds ? 'holds' : 'DOES NOT HOLD',
  ];
  console.log(`| ${cells.join(' | ')} |`);
  return holds;
}

/** Makes a control group, of either version. @returns its folders; none where this process may not make them. */
function createGroup(): readonly string[] {
  const root = '/sys/fs/cgroup';
  const name = `packager-drm-api-attacks-${process.pid}`;
  const bytes = `${MEMORY_MIB * 1024 * 1024}`;
  const isUnified = existsSync(join(root, 'cgroup.controllers'));
  const memory = isUnified ? join(root, name) : join(root, 'memory', name);
  const cpu = isUnified ? memory : join(root, 'cpu', name);
  try {
    if (isUnified) writeFileSync(join(root, 'cgroup.subtree_control'), '+memory +cpu');
    for (const folder of [memory, cpu]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(memory, isUnified ? 'memory.max' : 'memory.limit_in_bytes'), bytes);
    if (isUnified) writeFileSync(join(cpu, 'cpu.max'), '50000 100000');
    else writeFileSync(join(cpu, 'cpu.cfs_quota_us'), '50000');
    return isUnified ? [memory] : [memory, cpu];
  } catch {
    return [];
  }
}

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

async function main([seconds = '5', dist = 'dist', ...only]: readonly string[]): Promise<void> {
  const groups = createGroup();
  const limits =
    groups.length > 0 ? `${MEMORY_MIB} MiB, half a core` : 'NO LIMITS: no control group can be made';
  console.log(`Node ${process.versions.node}, ${limits}, ${dist}\n`);
  console.log(
    '| Attack | GET served/failed, longest | POST | Probe | Memory | SIGTERM | |\n|---|---|---|---|---|---|---|',
  );
  for (const name of only.length > 0 ? only : Object.keys(ATTACKS))
    if (!(await besiege(name, Number(seconds), resolve(dist), groups))) process.exitCode = 1;
  await sleep(500);
  for (const folder of groups) rmdirSync(folder);
}

const [, , ...given] = process.argv;
const chosen = given[0] === '--attack' ? ATTACKS[given[1] ?? ''] : undefined;
if (chosen) attack(chosen, Number(given[2]));
else void main(given).then(() => process.exit());
