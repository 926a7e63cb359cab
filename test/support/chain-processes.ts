import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The processes that have a folder in their variables or arguments; of Linux alone. */
export function pidsOf(home: string): number[] {
  return (existsSync('/proc/self') ? readdirSync('/proc') : [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => ['environ', 'cmdline'].some((file) => (readProc(pid, file) ?? '').includes(home)));
}

/** Ends them at once. */
export function killAllOf(home: string): void {
  for (const pid of pidsOf(home))
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
}

/** Undefined when the process has ended meanwhile, or is another user's. */
export function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}

export function commandOf(pid: number): string | undefined {
  return readProc(pid, 'cmdline')?.replaceAll('\0', ' ').trim();
}

/** The command lines of the other processes that name a folder. */
export function processesNaming(folder: string): string[] {
  const pids = pidsOf(folder).filter((pid) => pid !== process.pid);
  return pids.flatMap((pid) => commandOf(pid) ?? []);
}
