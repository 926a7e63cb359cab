import { existsSync, readdirSync, readFileSync } from 'node:fs';

export const PROCESS_KINDS = [
  'sidecar',
  'emulator',
  'packager',
  'ffmpeg',
  'shaka-packager',
  'encoder',
] as const;
/** `ffmpeg` is what the packager pulls with. */
export type ProcessKind = (typeof PROCESS_KINDS)[number];

export interface WeighedProcess {
  readonly kind: ProcessKind;
  /** Of processor time, since its start. */
  readonly ticks: number;
  /** Its own memory, without what it shares with others. */
  readonly mib: number;
}

/** The processes that have a folder in their variables or arguments; of Linux alone. */
export function pidsOf(home: string): number[] {
  return (existsSync('/proc/self') ? readdirSync('/proc') : [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => ['environ', 'cmdline'].some((file) => (readProc(pid, file) ?? '').includes(home)));
}

/** Their memory and time. @param known returns the kind of some; the packager has started the others. */
export function weighed(home: string, known: (pid: number) => ProcessKind | undefined): WeighedProcess[] {
  return pidsOf(home).flatMap((pid): WeighedProcess[] => {
    const isShaka = /packager-[a-z]+-\w+$/.test(commandOf(pid)?.split(' ')[0] ?? '');
    const kind = known(pid) ?? (isShaka ? 'shaka-packager' : 'ffmpeg');
    const fields = readProc(pid, 'stat')?.split(') ')[1]?.split(' ');
    const memory = readProc(pid, 'smaps_rollup') ?? '';
    const kib = [...memory.matchAll(/^Private_(?:Clean|Dirty): +(\d+)/gm)].map(([, text]) => Number(text));
    const mib = kib.reduce((sum, each) => sum + each, 0) / 1024;
    return fields ? [{ kind, ticks: Number(fields[11]) + Number(fields[12]), mib }] : [];
  });
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
function readProc(pid: number, file: string): string | undefined {
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
