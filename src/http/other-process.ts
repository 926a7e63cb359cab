import { systemCode } from './errors';

/** Whether a process with this number runs on this machine, under any user. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return systemCode(thrown) !== 'ESRCH';
  }
}
