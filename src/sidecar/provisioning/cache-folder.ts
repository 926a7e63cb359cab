import { accessSync, constants, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import { ConfigError } from '../../http/config';
import { systemCode } from '../../http/errors';

const { R_OK, W_OK, X_OK } = constants;
const VARIABLE = 'PACKAGERDRMAPI_PROVIDERCACHE';

/**
 * Refuses a folder for the provider cache that can't be used. It is not made here: in the place of a mount that is
 * missing, what is kept would be gone with the container.
 * @throws ConfigError that says why, and what to do.
 */
export function refuseCacheFolder(folder: string, keyFilesPath: string): void {
  const why = isIn(folder, keyFilesPath)
    ? `${folder} is in the key-file folder, which the packager reads. Give it a folder of its own.`
    : whyUnusable(folder);
  if (why !== undefined) throw new ConfigError([`${VARIABLE}: ${why}`]);
}

function isIn(folder: string, other: string): boolean {
  return `${resolve(folder)}${sep}`.startsWith(`${resolve(other)}${sep}`);
}

function whyUnusable(folder: string): string | undefined {
  const { uid, gid } = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const give = `chown ${uid}:${gid} and chmod 0700`;
  try {
    if (!statSync(folder).isDirectory()) return `${folder} is no folder. Give the path of one.`;
    accessSync(folder, R_OK | W_OK | X_OK);
    return undefined;
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === 'ENOENT') return `the folder ${folder} is missing. Mount it, or make it as root: ${give}.`;
    if (code === 'EROFS') return `the folder ${folder} is mounted read-only. Mount it to be written to.`;
    return `this service runs as user ${uid}, group ${gid}, and may not write to the folder ${folder} (${code}). As root: ${give}.`;
  }
}
