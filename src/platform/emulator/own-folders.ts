import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { isRunning } from '../../http/other-process';

const MACHINE = hostname().replaceAll(/[^\w.]/g, '_');
/** What this process has made. In a container, the process before had the same number. */
const OWN = new Set<string>();

/** Makes a folder of this process, whose name has machine and process: those of a killed process can be found. */
export function makeOwnFolder(parent: string, kind: string): string {
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, `emulator-${kind}-${MACHINE}-${process.pid}-`));
  OWN.add(folder);
  return folder;
}

/** The folders of processes of this machine that have ended without deleting them. @throws the system's error */
export function leftOverFolders(parent: string, kind: string): string[] {
  const prefix = `emulator-${kind}-${MACHINE}-`;
  return readdirSync(parent, { withFileTypes: true }).flatMap((entry) => {
    const { name } = entry;
    const [pid] = (name.startsWith(prefix) && /^\d+(?=-)/.exec(name.slice(prefix.length))) || [];
    const path = join(parent, name);
    if (pid === undefined || !entry.isDirectory() || OWN.has(path)) return [];
    return Number(pid) !== process.pid && isRunning(Number(pid)) ? [] : [path];
  });
}
