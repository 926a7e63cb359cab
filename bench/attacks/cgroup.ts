import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from './waiting';

const ROOT = '/sys/fs/cgroup';
/** What a container gets that is run as the page tells. */
const MANIFEST = 'docs/kubernetes.yaml';
const CPU_PERIOD_US = 100_000;
const CPU_QUOTA_US = 50_000;

/** The memory that the manifest gives the sidecar, in MiB. */
export function memoryLimitMiB(): number {
  const [, mebibytes] = /limits:.*\bmemory: (\d+)Mi\b/.exec(readFileSync(MANIFEST, 'utf8')) ?? [];
  if (mebibytes === undefined) throw new Error(`${MANIFEST} names no limit of memory in Mi`);
  return Number(mebibytes);
}

/** A control group with the memory of a container, and half a core. */
export interface Cgroup {
  /** The files that a process writes its id to, to be in the group. */
  readonly joins: readonly string[];
  /** The most memory that the group has held, page cache counted, in MiB. */
  peakMiB(): number;
  /** How many processes the system has killed for want of memory. */
  oomKills(): number;
  /** Removes the group, which must be empty. */
  remove(): Promise<void>;
}

/** Makes a control group. @throws the system's error when this process may not. */
export function createCgroup(): Cgroup {
  const name = `packager-drm-api-attack-${process.pid}`;
  const bytes = memoryLimitMiB() * 1024 * 1024;
  return existsSync(join(ROOT, 'cgroup.controllers')) ? createUnified(name, bytes) : createFirst(name, bytes);
}

function createUnified(name: string, bytes: number): Cgroup {
  const folder = join(ROOT, name);
  writeFileSync(join(ROOT, 'cgroup.subtree_control'), '+memory +cpu');
  const group = made([folder]);
  group.set(folder, 'memory.max', bytes);
  group.setIfThere(folder, 'memory.swap.max', 0);
  group.set(folder, 'cpu.max', `${CPU_QUOTA_US} ${CPU_PERIOD_US}`);
  return {
    ...group,
    peakMiB: () => Number(read(folder, 'memory.peak')) / 1024 / 1024,
    oomKills: () => Number(/^oom_kill (\d+)/m.exec(read(folder, 'memory.events'))?.[1]),
  };
}

function createFirst(name: string, bytes: number): Cgroup {
  const memory = join(ROOT, 'memory', name);
  const cpu = join(ROOT, 'cpu', name);
  const group = made([memory, cpu]);
  group.set(memory, 'memory.limit_in_bytes', bytes);
  group.setIfThere(memory, 'memory.memsw.limit_in_bytes', bytes);
  group.set(cpu, 'cpu.cfs_period_us', CPU_PERIOD_US);
  group.set(cpu, 'cpu.cfs_quota_us', CPU_QUOTA_US);
  return {
    ...group,
    peakMiB: () => Number(read(memory, 'memory.max_usage_in_bytes')) / 1024 / 1024,
    oomKills: () => Number(/^oom_kill (\d+)/m.exec(read(memory, 'memory.oom_control'))?.[1]),
  };
}

const read = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8');

function made(folders: readonly string[]) {
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  const set = (folder: string, file: string, value: number | string) =>
    writeFileSync(join(folder, file), `${value}`);
  return {
    joins: folders.map((folder) => join(folder, 'cgroup.procs')),
    set,
    setIfThere(folder: string, file: string, value: number) {
      if (existsSync(join(folder, file))) set(folder, file, value);
    },
    async remove() {
      for (const folder of folders) await removeWhenEmpty(folder);
    },
  };
}

/** A process that has ended is in its group for some moments yet. */
async function removeWhenEmpty(folder: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    try {
      rmdirSync(folder);
      return;
    } catch {
      await sleep(100);
    }
  }
  console.error(`${folder} could not be removed; remove it with rmdir`);
}
