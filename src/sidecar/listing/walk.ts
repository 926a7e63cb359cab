import { type Dir, type Dirent, lstatSync, opendirSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_PARTS, parseStreamId, type StreamId } from '../../api/stream-id';
import { systemCode } from '../../http/errors';
import type { Search } from './search';

/**
 * Goes through folders entry by entry, depth first, and answers at each step the stream id of a key file or undefined
 * for any other entry. It holds one open folder a level and nothing else, so that a step costs the same in a folder of
 * ten as in one of a million; `return()` closes them. Names that no stream id can have, links and devices are passed over.
 */
export type Walk = Generator<StreamId | undefined, void, void>;

/** `onUnreadable` hears of each sub-folder that this process may not read; it is passed over. */
export function* walk(root: string, searches: readonly Search[], onUnreadable: OnUnreadable): Walk {
  for (const { folder, beginnings } of searches) {
    const fits = (name: string) => beginnings.some((beginning) => name.startsWith(beginning));
    yield* walkFolder(root, folder === '' ? [] : folder.split('/'), fits, onUnreadable);
  }
}

type OnUnreadable = (subFolder: string, code: string) => void;

const EXTENSION = '.key';

function* walkFolder(
  root: string,
  parts: readonly string[],
  fits: (name: string) => boolean,
  onUnreadable: OnUnreadable,
): Walk {
  const folder = openFolder(root, parts, onUnreadable);
  if (!folder) return;
  try {
    for (let entry = readEntry(folder); entry; entry = readEntry(folder)) {
      const way = entry.isFile() ? withoutExtension(entry.name) : entry.name;
      const parsed = fits(way) ? parseStreamId([...parts, way].join('/')) : undefined;
      yield parsed?.ok && entry.isFile() ? parsed.value : undefined;
      if (parsed?.ok && entry.isDirectory() && parts.length + 1 < MAX_PARTS) {
        yield* walkFolder(root, [...parts, way], () => true, onUnreadable);
      }
    }
  } finally {
    folder.closeSync();
  }
}

/** The last part of the stream id whose key file has this name; empty, which no stream id has, for another file. */
function withoutExtension(name: string): string {
  return name.endsWith(EXTENSION) ? name.slice(0, -EXTENSION.length) : '';
}

/** Undefined for a sub-folder that is gone, that is none, or that this process may not read. */
function openFolder(root: string, parts: readonly string[], onUnreadable: OnUnreadable): Dir | undefined {
  // One entry at a time: names that wait in a buffer, maybe for minutes, would be older than they need to be.
  const options = { bufferSize: 1 };
  if (parts.length === 0) return opendirSync(root, options);
  try {
    if (!areFolders(root, parts)) return undefined;
    const path = join(root, ...parts);
    // What may be listed but not entered is of no use.
    lstatSync(`${path}/.`);
    return opendirSync(path, options);
  } catch (thrown) {
    if (isGone(thrown)) return undefined;
    const code = systemCode(thrown);
    if (code !== 'EACCES' && code !== 'EPERM') throw thrown;
    // A disk's lost+found, say, must not take the list of all other streams with it.
    onUnreadable(parts.join('/'), code);
    return undefined;
  }
}

/** Whether a thrown error says that a file or folder is not, or no longer, there. */
export function isGone(thrown: unknown): boolean {
  const code = systemCode(thrown);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/**
 * Whether the sub-folders on a way are folders and no links, all of them.
 * @throws the system's error when one may not be entered.
 */
export function areFolders(root: string, parts: readonly string[]): boolean {
  let path = root;
  for (const part of parts) {
    path = join(path, part);
    if (!lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
  }
  return true;
}

function readEntry(folder: Dir): Dirent | null {
  for (;;) {
    try {
      return folder.readSync();
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
      // Where the file system doesn't tell an entry's type, Node asks for it, and the entry may be gone by then.
      if (Reflect.get(Object(thrown), 'syscall') !== 'lstat') return null;
    }
  }
}
