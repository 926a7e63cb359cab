import { accessSync, constants, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from '../http/config';
import { systemCode } from '../http/errors';
import { whyUnreadable } from '../http/watched-file';

const { R_OK, W_OK, X_OK } = constants;

/** Reads the file of a container secret. @throws ConfigError that says why it can't be read, and what to do. */
export function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw new ConfigError([whyNotReadable(file) ?? whyUnreadable(thrown)]);
  }
}

/**
 * Refuses files that this service may not read. `files` are paths by the variable that names them.
 * @throws ConfigError that says of each why, and what to do.
 */
export function refuseUnreadable(files: Readonly<Record<string, string | undefined>>): void {
  const faults = Object.entries(files).flatMap(([variable, file]) => {
    const why = file === undefined ? undefined : whyNotReadable(file);
    return why === undefined ? [] : [`${variable}: ${why}`];
  });
  if (faults.length > 0) throw new ConfigError(faults);
}

/** Why a file that is there can't be read, and what to do; undefined when neither its rights nor its kind are why. */
export function whyNotReadable(file: string): string | undefined {
  const closed = folderClosed(file);
  if (closed !== undefined) return mayNot('enter', closed, ENTER);
  if (look(file)?.isDirectory())
    return `${file} is a folder. Docker makes one where the file to mount is missing: remove it, make the file, and make the container anew.`;
  if (!isDenied(file, R_OK)) return undefined;
  const { uid } = ids();
  const why = mayNot('read', file, `chown ${uid} and chmod 0400`);
  return `${why} A file that is mounted into a container, like a secret of compose, has the owner and mode that it has on the host: change them there.`;
}

/** Why this service may not write to a folder, and what to do; undefined when rights are not what is wrong with it. */
export function whyNotWritable(folder: string): string | undefined {
  const closed = folderClosed(folder);
  if (closed !== undefined) return mayNot('enter', closed, ENTER);
  const found = nearestFolder(folder);
  if (!isClosed(found)) return undefined;
  if (found === resolve(folder)) return mayNot('write to', found, giveFolder());
  return mayNot(`make ${folder} in`, found, `make it, and ${giveFolder()}`);
}

/**
 * The same of the folder of a file that could not be written, for callers from outside: without paths. `thrown` is the
 * system's error.
 */
export function whyDenied(thrown: unknown): string | undefined {
  const code = systemCode(thrown);
  const path = typeof thrown === 'object' && thrown !== null && 'path' in thrown ? thrown.path : undefined;
  if ((code !== 'EACCES' && code !== 'EPERM') || typeof path !== 'string') return undefined;
  const folder = dirname(path);
  const above = folderClosed(folder);
  if (above !== undefined) return mayNot('enter', above, ENTER, 'a folder above it');
  return isClosed(folder) ? mayNot('write to', folder, giveFolder(), 'it') : undefined;
}

const ENTER = 'let its group enter, chgrp and chmod g+x, or everybody, chmod o+x';

/** A folder on the way to a path that this service may not enter. */
function folderClosed(path: string): string | undefined {
  const above = dirname(resolve(path));
  if (above !== resolve(path)) {
    const closed = folderClosed(above);
    if (closed !== undefined) return closed;
  }
  return look(above)?.isDirectory() && isDenied(above, X_OK) ? above : undefined;
}

/** Whether this service may not make files in a folder. */
function isClosed(folder: string): boolean {
  return look(folder)?.isDirectory() === true && isDenied(folder, R_OK | W_OK | X_OK);
}

function giveFolder(): string {
  const { uid, gid } = ids();
  return `chown ${uid}:${gid} and chmod 0750 (docs/run-with-docker.md says how for a volume, and how it came by another owner)`;
}

function nearestFolder(path: string): string {
  const folder = resolve(path);
  return look(folder) || folder === dirname(folder) ? folder : nearestFolder(dirname(folder));
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function isDenied(path: string, rights: number): boolean {
  try {
    accessSync(path, rights);
    return false;
  } catch (thrown) {
    return systemCode(thrown) === 'EACCES' || systemCode(thrown) === 'EPERM';
  }
}

function mayNot(doing: string, path: string, mend: string, shown = path): string {
  const { uid, gid } = ids();
  const owner = ownerOf(look(path));
  return `this service runs as user ${uid}, group ${gid}, and may not ${doing} ${shown}, ${owner}. As root: ${mend}.`;
}

function ownerOf(found: Stats | undefined): string {
  if (!found) return 'which has gone meanwhile';
  const { uid, gid, mode } = found;
  return `which belongs to user ${uid}, group ${gid} and has mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`;
}

/** Numbers, not names: a container and its host call them differently. */
function ids(): { uid: number; gid: number } {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}
