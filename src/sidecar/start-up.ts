import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isIPv4 } from 'node:net';
import { dirname, join, resolve, sep } from 'node:path';
import { ConfigError } from '../http/config';
import { type Problem, systemCode, textProperty } from '../http/errors';
import type { Log } from '../http/log';
import { whyUnreadable } from '../http/watched-file';
import { type FindApiKey, MIN_CHARACTERS } from './api-key';
import { temporaryName } from './storage/durable-file';

const { R_OK, W_OK, X_OK } = constants;

/** @throws ConfigError that says why the file can't be read, and what to do. */
export function readSecret(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw new ConfigError([whyNotReadable(file) ?? whyUnreadable(thrown)]);
  }
}

/** `files` are paths by variable. @throws ConfigError that says of each why, and what to do. */
export function refuseUnreadable(files: Readonly<Record<string, string | undefined>>): void {
  const faults = Object.entries(files).flatMap(([variable, file]) => {
    const why = file === undefined ? undefined : whyNotReadable(file);
    return why === undefined ? [] : [`${variable}: ${why}`];
  });
  if (faults.length > 0) throw new ConfigError(faults);
}

/** Undefined if neither rights nor kind are the cause. */
function whyNotReadable(file: string): string | undefined {
  const closed = folderClosed(file);
  if (closed !== undefined) return deniedSentence('enter', closed, ENTER);
  if (statOf(file)?.isDirectory())
    return `${file} is a folder. Docker makes one where the file to mount is missing: remove it, make the file, and create the container again.`;
  if (!isDenied(file, R_OK)) return undefined;
  const { uid } = ids();
  const why = deniedSentence('read', file, `chown ${uid} and chmod 0400`);
  return `${why} A file that is mounted into a container, like a secret of compose, has the owner and mode that it has on the host: change them there.`;
}

/** Undefined if neither rights nor a file in its place are the cause. */
export function whyNotWritable(folder: string): string | undefined {
  if (statOf(folder)?.isDirectory() === false)
    return `${folder} is not a folder. Remove it, or set PACKAGERDRMAPI_KEYFILESPATH to the path of a folder.`;
  const closed = folderClosed(folder);
  if (closed !== undefined) return deniedSentence('enter', closed, ENTER);
  const found = nearestFolder(folder);
  if (!isClosed(found)) return undefined;
  if (found === resolve(folder)) return deniedSentence('write to', found, giveFolder());
  return deniedSentence(`make ${folder} in`, found, `make it, and ${giveFolder()}`);
}

/** The same from the system's error `thrown`, without paths: for callers from outside. */
export function whyDenied(thrown: unknown): string | undefined {
  const code = systemCode(thrown);
  const path = textProperty(thrown, 'path');
  if ((code !== 'EACCES' && code !== 'EPERM') || path === undefined) return undefined;
  const folder = dirname(path);
  const above = folderClosed(folder);
  if (above !== undefined) return deniedSentence('enter', above, ENTER, 'a folder above it');
  return isClosed(folder) ? deniedSentence('write to', folder, giveFolder(), 'it') : undefined;
}

/** The folder is not made: in place of a missing mount, its files would be lost with the container. @throws ConfigError. */
export function refuseCacheFolder(folder: string, keyFilesPath: string): void {
  const why = isIn(folder, keyFilesPath)
    ? `${folder} is in the key-file folder, which the packager reads. Give it a folder of its own.`
    : whyUnusable(folder);
  if (why !== undefined) throw new ConfigError([`PACKAGERDRMAPI_PROVIDERCACHE: ${why}`]);
}

function isIn(folder: string, other: string): boolean {
  return `${resolve(folder)}${sep}`.startsWith(`${resolve(other)}${sep}`);
}

function whyUnusable(folder: string): string | undefined {
  const { uid, gid } = ids();
  const give = `chown ${uid}:${gid} and chmod 0700`;
  const other = `${folder} is not a folder. Give the path of one.`;
  try {
    if (!statSync(folder).isDirectory()) return other;
    accessSync(folder, R_OK | W_OK | X_OK);
    return undefined;
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === 'ENOENT') return `the folder ${folder} is missing. Mount it, or make it as root: ${give}.`;
    if (code === 'ENOTDIR') return other;
    if (code === 'EROFS') return `the folder ${folder} is mounted read-only. Mount it read-write.`;
    return `this service runs as user ${uid}, group ${gid}, and may not write to the folder ${folder} (${code}). As root: ${give}.`;
  }
}

const ENTER = 'let its group enter, chgrp and chmod g+x, or everyone, chmod o+x';

function folderClosed(path: string): string | undefined {
  const above = dirname(resolve(path));
  const closed = above === resolve(path) ? undefined : folderClosed(above);
  return closed ?? (statOf(above)?.isDirectory() && isDenied(above, X_OK) ? above : undefined);
}

function isClosed(folder: string): boolean {
  return statOf(folder)?.isDirectory() === true && isDenied(folder, R_OK | W_OK | X_OK);
}

function giveFolder(): string {
  const { uid, gid } = ids();
  return `chown ${uid}:${gid} and chmod 0750 (docs/run-with-docker.md says how for a volume, and how it came by another owner). A folder of the packager stays its own: run this service as its user`;
}

function nearestFolder(path: string): string {
  const folder = resolve(path);
  return statOf(folder) || folder === dirname(folder) ? folder : nearestFolder(dirname(folder));
}

function statOf(path: string): Stats | undefined {
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

function deniedSentence(doing: string, path: string, remedy: string, shown = path): string {
  const { uid, gid } = ids();
  const owner = ownerOf(statOf(path));
  return `this service runs as user ${uid}, group ${gid}, and may not ${doing} ${shown}, ${owner}. As root: ${remedy}.`;
}

function ownerOf(found: Stats | undefined): string {
  if (!found) return 'which is gone now';
  const { uid, gid, mode } = found;
  return `which belongs to user ${uid}, group ${gid} and has mode ${octal(mode)}`;
}

/** Numbers, because a container and its host have different names for them. */
function ids(): { uid: number; gid: number } {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** Every API key that README.md, docs, .env.example and docker-compose.yml show: anyone knows them. */
const DOCUMENTED_KEYS: readonly string[] = [
  'demo-sidecar-api-key',
  'demo-packager-api-key',
  'demo-api-key',
  'change-me-to-a-long-random-key',
  '5c0d7c1f6f1f4a37b0c8c4c6a6f0a9d2',
  'f3d2b7a09e1c4d58a6b7c8d9e0f1a2b3',
  '0b8e4a6d2f7c4b1e9d3a5f6c7b8a9e01',
];

interface Reach {
  readonly apiKey: string | undefined;
  readonly host: string;
  readonly demo: boolean;
}

/**
 * Keeps documented keys from opening a service that others can reach: on a non-loopback address they refuse the start,
 * and one that comes into the file later is no key. Elsewhere they are logged.
 * @throws ConfigError that names each such key and what to do.
 */
export function guardDocumentedKeys(find: FindApiKey, reach: Reach, log: Log): FindApiKey {
  const { apiKey, host, demo } = reach;
  const held = DOCUMENTED_KEYS.flatMap((key) => {
    const name = find(key)?.name;
    return name === undefined ? [] : [{ key, name }];
  });
  if (demo || isLoopback(host)) {
    for (const { name } of held)
      log.warn('this API key is in the documentation, so anyone knows it; set your own', { name });
    return find;
  }
  const inFile = (name: string) => `PACKAGERDRMAPI_APIKEYS_FILE: the key ${name} ${documentedKeyFault(host)}`;
  if (held.length > 0) {
    throw new ConfigError(
      held.map(({ key, name }) =>
        key === apiKey ? `PACKAGERDRMAPI_APIKEY: the key ${documentedKeyFault(host)}` : inFile(name),
      ),
    );
  }
  const reported = new Set<string>();
  return (given) => {
    const found = find(given);
    if (found === undefined || typeof given !== 'string' || !DOCUMENTED_KEYS.includes(given)) return found;
    if (!reported.has(given)) {
      reported.add(given);
      log.error('an API key from the documentation is not accepted', { fault: inFile(found.name) });
    }
    return undefined;
  };
}

export function warningOfShortKey({ apiKey, host }: Omit<Reach, 'demo'>): Problem | undefined {
  if (apiKey === undefined || apiKey.length >= MIN_CHARACTERS || isLoopback(host)) return undefined;
  return {
    code: 'short_api_key',
    description: `The API key of PACKAGERDRMAPI_APIKEY has fewer than ${MIN_CHARACTERS} characters, and ${host} can be reached from other machines. Set a longer one: openssl rand -hex 32.`,
  };
}

export function warningOfNewFolder(keyFilesPath: string): Problem {
  return {
    code: 'key_folder_made',
    description: `The key-file folder ${keyFilesPath} was missing at the start and was made. If the packager reads another folder, or a mount is missing, correct PACKAGERDRMAPI_KEYFILESPATH or the mount.`,
  };
}

/**
 * Of the file systems of Windows and macOS, and shares of them: found with an empty file. None where no file can be
 * made, which `/readyz` reports.
 */
export function warningsOfFileSystem(folder: string, mode: number, newId: () => string): Problem[] {
  const name = temporaryName(newId());
  const path = join(folder, name);
  try {
    writeFileSync(path, '', { flag: 'wx', mode });
    chmodSync(path, mode);
    const kept = statSync(path).mode;
    const foldsCase = existsSync(join(folder, name.toUpperCase()));
    rmSync(path);
    const modeFault = {
      code: 'mode_not_kept',
      description: `The file system of the key-file folder keeps no modes: key files have ${octal(kept)} in place of ${octal(mode)}, which decides who can read content keys. Mount it with the right mode (for 0640 fmask=0137, of CIFS file_mode=0640), or set PACKAGERDRMAPI_KEYFILEMODE=${octal(kept & 0o666)}.`,
    };
    return [...(((kept ^ mode) & 0o666) === 0 ? [] : [modeFault]), ...(foldsCase ? [CASE_FAULT] : [])];
  } catch {
    return [];
  }
}

const CASE_FAULT: Problem = {
  code: 'case_not_kept',
  description:
    'The file system of the key-file folder takes capitals and small letters for the same: the streams Live and live have one key file, and an API key for one of them reaches it. Use no stream ids that differ in that alone.',
};

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}

function documentedKeyFault(host: string): string {
  return `is in the documentation; on ${host} anyone could read content keys with it. Set one of your own: openssl rand -hex 32. This one is for loopback (PACKAGERDRMAPI_HOST=127.0.0.1; in compose, no SIDECAR_PUBLISH); PACKAGERDRMAPI_DEMO=true allows it for a demo that no one else can reach`;
}

/** Also takes an IPv6 address in square brackets. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'));
}
