import { existsSync } from 'node:fs';
import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FolderIdentity } from '../../api/answers';
import { FLEET_FOLDER } from '../../api/fleet';
import { parseStreamId } from '../../api/stream-id';
import { summariseKeyFile } from '../../drm/check/key-file-text';
import { systemCode } from '../../http/errors';
import { count } from '../../terminal/text';
import { MAX_KEY_FILE_BYTES } from '../key-files';
import { type Check, someOf, warning } from './finding';
import { isDenied, type Unread, unread } from './installation';
import { type CheckedKeyFile, readFileKeys } from './key-files';
import type { Rights } from './rights';

export type KeyFolder = Exclude<Awaited<ReturnType<typeof readKeyFolder>>, Unread>;

const KEY = '.key';
const MAX_DEPTH = 8;

/** Reads a key folder: names, sizes, times, rights, and each key file without its secrets. */
export async function readKeyFolder(folder: string) {
  try {
    // Without links on the way.
    const realPath = await realpath(folder);
    const entries: FolderEntry[] = [];
    const subFolders: string[] = [];
    await readInto(realPath, '', entries, subFolders);
    // The folder, its sub-folders and all above it.
    const places = await Promise.all([realPath, ...subFolders, ...foldersAbove(realPath)].map(readRights));
    // A sidecar keeps the ledger of a fleet there.
    const hasJoinedFleet = existsSync(join(realPath, FLEET_FOLDER));
    // And everything else on a user's way to it.
    const links = foldersAbove(folder).filter((path) => !places.some((place) => place.path === path));
    const rights = [...places, ...(await Promise.all(links.map(readRights)))];
    return { realPath, entries, places, rights, hasJoinedFleet };
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
  for (const found of await readdir(join(root, below), { withFileTypes: true })) {
    const path = below === '' ? found.name : `${below}/${found.name}`;
    const entry = await readEntry(root, path);
    if (entry) entries.push(entry);
    // The sidecar's own, which no other user may enter.
    if (!found.isDirectory() || path === FLEET_FOLDER || path.split('/').length > MAX_DEPTH) continue;
    subFolders.push(join(root, path));
    await readInto(root, path, entries, subFolders);
  }
}

/** Undefined when the file went away meanwhile. */
async function readEntry(root: string, path: string): Promise<FolderEntry | undefined> {
  const file = join(root, path);
  try {
    const stats = await lstat(file);
    const { size, mtimeMs, mode, uid, gid } = stats;
    const kind = stats.isFile() ? 'file' : stats.isSymbolicLink() ? 'link' : 'other';
    const content = kind === 'file' && path.endsWith(KEY) ? await readContent(file, size) : {};
    return { path, kind, size, mtimeMs, mode, uid, gid, ...content };
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

async function readContent(file: string, size: number): Promise<Pick<FolderEntry, 'summary' | 'keys'>> {
  if (size > MAX_KEY_FILE_BYTES) return faulty('too_large', 'The file is too large for a key file.');
  try {
    const text = await readFile(file, 'utf8');
    return { summary: summariseKeyFile(text), keys: readFileKeys(text) };
  } catch (thrown) {
    // The rights of the packager's user are checked by themselves.
    return isDenied(thrown) ? {} : faulty('unreadable', `The file ${unread(thrown).problem.description}.`);
  }
}

function faulty(code: string, description: string): Pick<FolderEntry, 'summary'> {
  return { summary: { parts: [], faults: [{ severity: 'error', code, description }] } };
}

async function readRights(path: string): Promise<Rights & FolderIdentity> {
  const { dev, ino, mode, uid, gid } = await stat(path, { bigint: true });
  const rights = { mode: Number(mode), uid: Number(uid), gid: Number(gid) };
  return { path, device: String(dev), inode: String(ino), ...rights };
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...foldersAbove(parent)];
}

export interface FolderEntry extends Pick<CheckedKeyFile, 'summary' | 'keys'> {
  /** Below the key folder, with slashes. */
  readonly path: string;
  /** `other` is a folder, a device, a pipe or a socket. */
  readonly kind: 'file' | 'link' | 'other';
  readonly size: number;
  readonly mtimeMs: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

const GROUP = /\.smil$|^(?:smil|ngrp):/i;

function streamIdOf({ path }: FolderEntry): string | undefined {
  const isHidden = path.split('/').some((part) => part.startsWith('.'));
  return path.endsWith(KEY) && !isHidden ? path.slice(0, -KEY.length) : undefined;
}

/** The stream id of a file that the packager can read: a file or a link. */
export function keyFileIdOf(entry: FolderEntry): string | undefined {
  return isFileOrLink(entry) ? streamIdOf(entry) : undefined;
}

/** Whether a key file is named after a group of streams: by a form of name that no stream has, or by a known group. */
export function isGroupName(id: string, groups: ReadonlySet<string>, streams: ReadonlySet<string>): boolean {
  return GROUP.test(id) || (groups.has(id) && !streams.has(id));
}

/** Finds files that the packager or the sidecar never reads. `groups` are the names of SMIL documents. */
export function checkNames(
  entries: readonly FolderEntry[],
  groups: ReadonlySet<string>,
  streams: ReadonlySet<string>,
): Check[] {
  const named = entries.filter(isFileOrLink);
  const ids = named.flatMap((entry) => streamIdOf(entry) ?? []);
  const isGroup = (id: string) => isGroupName(id, groups, streams);
  const paths = (found: (entry: FolderEntry) => boolean, among = named) =>
    among.filter(found).map(({ path }) => path);
  const rows: [names: readonly string[], code: string, text: string, todo: string][] = [
    [
      ids.filter(isGroup),
      'group_key_file',
      'named after a group, which the packager never reads',
      'give each member stream a key file (packager-drm apply takes the SMIL), and delete these',
    ],
    [
      paths((entry) => /\.key[^/]*$/i.test(entry.path) && streamIdOf(entry) === undefined),
      'wrong_suffix',
      'not named <stream>.key, so the packager never reads it',
      'rename to <stream>.key (lower case, nothing after it), or delete',
    ],
    [
      paths(({ path }) => /(?:^|\/)\.packagerdrmapi-[^/]*\.tmp$/.test(path)),
      'temporaries',
      'temporary of the sidecar, left over unless it is writing now',
      'restart the sidecar on this folder: it removes them at the start',
    ],
    [
      ids.filter((id) => !isGroup(id) && !parseStreamId(id).ok),
      'unmanageable_name',
      'a name that is not a stream id for the sidecar',
      'name streams with letters, digits and . _ - ~ @ +',
    ],
    [
      paths((entry) => entry.kind === 'link' && streamIdOf(entry) !== undefined),
      'link',
      'a link, which the packager follows and the sidecar does not',
      'put the file itself there, or provision the stream',
    ],
    [
      paths((entry) => !isFileOrLink(entry) && streamIdOf(entry) !== undefined, [...entries]),
      'not_a_file',
      'A folder or a pipe is in the place of a key file, so the sidecar refuses to write there',
      'remove it, or give it another name',
    ],
  ];
  return rows.flatMap(([names, code, text, todo]) => {
    const files = code === 'not_a_file' ? '' : `${count(names.length, 'file')}: `;
    return names.length === 0 ? [] : [warning(code, `${files}${text}: ${someOf(names)}`, todo)];
  });
}

function isFileOrLink({ kind }: FolderEntry): boolean {
  return kind === 'file' || kind === 'link';
}
