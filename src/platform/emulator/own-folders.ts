import { mkdtempSync, readdirSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import fs from 'fs-extra';
import { systemCode } from '../../http/errors';

const MACHINE = hostname().replaceAll(/[^\w.]/g, '_');
/** The folders of this process: in a container, the process before had the same number. */
const OWN = new Set<string>();

/** Makes a folder of this process, whose name has machine and process: those of a killed process can be found. */
export function makeOwnFolder(parent: string, kind: string): string {
  fs.ensureDirSync(parent);
  const folder = mkdtempSync(join(parent, `emulator-${kind}-${MACHINE}-${process.pid}-`));
  OWN.add(folder);
  return folder;
}

/**
 * The folders of processes that have ended without deleting them. @throws the system's error
 * @param since a process of another machine counts as ended if its folder has not changed since: a recreated
 *   container has another host name, and the process numbers of another machine can't be checked.
 */
export function leftOverFolders(parent: string, kind: string, since = new Date(0)): string[] {
  const prefix = `emulator-${kind}-`;
  return readdirSync(parent, { withFileTypes: true }).flatMap((entry) => {
    const { name } = entry;
    const [, machine, pid] =
      (name.startsWith(prefix) && /^([\w.]+)-(\d+)-/.exec(name.slice(prefix.length))) || [];
    const path = join(parent, name);
    if (pid === undefined || !entry.isDirectory() || OWN.has(path)) return [];
    const isOver =
      machine === MACHINE
        ? Number(pid) === process.pid || !isRunning(Number(pid))
        : (statSync(path, { throwIfNoEntry: false })?.mtime ?? since) < since;
    return isOver ? [path] : [];
  });
}

/** Whether a process with this number runs on this machine, under any user. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return systemCode(thrown) !== 'ESRCH';
  }
}
