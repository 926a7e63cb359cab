import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The command lines of the other processes whose variables or arguments name a folder; of Linux alone. */
export function processesNaming(folder: string): string[] {
  const pids = existsSync('/proc/self/environ') ? readdirSync('/proc') : [];
  return pids.flatMap((pid) => {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) return [];
    try {
      const [variables = '', words = ''] = ['environ', 'cmdline'].map((file) =>
        readFileSync(`/proc/${pid}/${file}`, 'utf8'),
      );
      return (variables + words).includes(folder) ? [words.replaceAll('\0', ' ').trim()] : [];
    } catch {
      return []; // it has ended, or is another user's
    }
  });
}
