import type { Stats } from 'node:fs';
import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import { systemCode } from '../../http/errors';
import type { Rights } from './access-rights';
import { readFileKeys } from './key-clashes';
import type { EntryKind, FolderEntry } from './key-folder-names';
import { isDenied, type Unread, unread } from './read-text';

/** A key folder as it lies on the disk. */
export interface KeyFolder {
  /** Without links on the way. */
  readonly realPath: string;
  readonly entries: readonly FolderEntry[];
  /** The sub-folders, absolute. */
  readonly subFolders: readonly string[];
  /** The folder, its sub-folders and all that a user passes on the way to it. */
  readonly rights: readonly Rights[];
}

/** Larger than any key file; nothing of a larger file is read. */
const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 8;
const AT_ONCE = 64;

/** Reads a key folder: names, sizes, times, rights, and what each key file says without its secrets. */
export async function readKeyFolder(folder: string): Promise<KeyFolder | Unread> {
  try {
    const realPath = await realpath(folder);
    const entries: FolderEntry[] = [];
    const subFolders: string[] = [];
    await readInto(realPath, '', entries, subFolders);
    const above = new Set([...foldersAbove(folder), ...foldersAbove(realPath), realPath, ...subFolders]);
    const rights = await Promise.all([...above].map(rightsOf));
    return { realPath, entries, subFolders, rights };
  } catch (thrown) {
    return unread(thrown, `make it, or correct KeyDir: ${folder}`);
  }
}

async function readInto(
  root: string,
  below: string,
  entries: FolderEntry[],
  subFolders: string[],
): Promise<void> {
  const found = await readdir(join(root, below), { withFileTypes: true });
  // A folder counts only where a key file could stand.
  const files = found
    .filter((entry) => !entry.isDirectory() || entry.name.endsWith('.key'))
    .map(({ name }) => name);
  for (let at = 0; at < files.length; at += AT_ONCE) {
    const names = files.slice(at, at + AT_ONCE);
    const read = await Promise.all(
      names.map((name) => readEntry(root, below === '' ? name : `${below}/${name}`)),
    );
    entries.push(...read.filter((entry) => entry !== undefined));
  }
  for (const entry of found) {
    if (!entry.isDirectory() || below.split('/').length >= MAX_DEPTH) continue;
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    subFolders.push(join(root, path));
    await readInto(root, path, entries, subFolders);
  }
}

/** One file; undefined when it went away meanwhile. */
async function readEntry(root: string, path: string): Promise<FolderEntry | undefined> {
  const file = join(root, path);
  try {
    const stats = await lstat(file);
    const { size, mtimeMs, mode, uid, gid } = stats;
    const kind = kindOf(stats);
    const isKeyFile = kind === 'file' && path.endsWith('.key');
    const said = isKeyFile ? await readSaid(file, size) : UNKNOWN;
    return { path, kind, size, mtimeMs, mode, uid, gid, ...said };
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isFile()) return 'file';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isDirectory() ? 'folder' : 'other';
}

type Said = Pick<FolderEntry, 'summary' | 'keys'>;

const UNKNOWN: Said = { summary: undefined, keys: undefined };

/** What a key file says. */
async function readSaid(file: string, size: number): Promise<Said> {
  if (size > MAX_BYTES) return faulty('too_large', 'The file is too large for a key file.');
  try {
    const text = await readFile(file, 'utf8');
    return { summary: summariseKeyFile(text), keys: readFileKeys(text) };
  } catch (thrown) {
    // Who runs this need not be the packager's user; the rights of that one are checked by themselves.
    return isDenied(thrown) ? UNKNOWN : faulty('unreadable', `The file ${unread(thrown).fault.sentence}.`);
  }
}

function faulty(code: string, description: string): Said {
  const faults = [{ severity: 'error' as const, code, description }];
  return { summary: { parts: [], keyId: undefined, contentId: undefined, faults }, keys: undefined };
}

async function rightsOf(path: string): Promise<Rights> {
  const { mode, uid, gid } = await stat(path);
  return { path, mode, uid, gid };
}

/** The folders on the way to a path, the nearest first. */
export function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}
