import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_PARTS, parseStreamId, type StreamId } from '../../api/stream-id';
import { systemCode } from '../../http/errors';

/**
 * The streams that have a key file under a folder, sorted. Names that no stream id can have, links and devices are
 * passed over. `onUnreadable` is called with each sub-folder that this process may not read; it is passed over, too.
 */
export async function listStreamIds(
  root: string,
  onUnreadable: (subFolder: string, code: string) => void = () => undefined,
): Promise<StreamId[]> {
  const found: StreamId[] = [];
  const visit = async (parts: readonly string[]): Promise<void> => {
    for (const entry of await readFolder(root, parts, onUnreadable)) {
      const name = entry.isFile() ? withoutExtension(entry.name) : entry.name;
      const parsed = parseStreamId([...parts, name].join('/'));
      if (!parsed.ok) continue;
      if (entry.isFile()) found.push(parsed.value);
      else if (entry.isDirectory() && parts.length + 1 < MAX_PARTS) await visit([...parts, name]);
    }
  };
  await visit([]);
  return found.sort();
}

const EXTENSION = '.key';

/** The last part of the stream id whose key file has this name; empty, which no stream id has, for another file. */
function withoutExtension(name: string): string {
  return name.endsWith(EXTENSION) ? name.slice(0, -EXTENSION.length) : '';
}

const TRIES = 3;

/** Empty for a sub-folder that is gone, that is none, or that this process may not read. */
async function readFolder(
  root: string,
  parts: readonly string[],
  onUnreadable: (subFolder: string, code: string) => void,
): Promise<readonly Dirent[]> {
  const path = join(root, ...parts);
  for (let tries = 1; ; tries += 1) {
    try {
      // A folder that may be listed but not entered is of no use.
      await lstat(`${path}/.`);
      return await readdir(path, { withFileTypes: true });
    } catch (thrown) {
      const code = systemCode(thrown);
      if (parts.length > 0 && (code === 'EACCES' || code === 'EPERM')) {
        // A disk's lost+found, say, must not take the list of all other streams with it.
        onUnreadable(parts.join('/'), code);
        return [];
      }
      if (!isGone(thrown)) throw thrown;
      // Where the file system does not report an entry's type, Node asks for it, and the entry may be gone by then.
      if (tries < TRIES) continue;
      if (parts.length === 0) throw thrown;
      return [];
    }
  }
}

/** Whether a thrown error says that a file or folder is not, or no longer, there. */
export function isGone(thrown: unknown): boolean {
  const code = systemCode(thrown);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
