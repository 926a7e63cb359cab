import { isUtf8 } from 'node:buffer';
import { type Dirent, lstatSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ListedKeyFile } from '../../api/answers';
import { MAX_PARTS, parseStreamId, type StreamId } from '../../api/stream-id';
import type { KeyFileSummary } from '../../drm/check/key-file-text';
import { HttpError, systemCode } from '../../http/errors';
import { yieldToEventLoop } from '../../http/semaphore';
import { inSubFolder, keyFilePath } from '../storage/key-file-store';
import { type FoundFile, readSmallFile, rootFolder } from '../storage/open-file';

type Summarise = (text: string) => KeyFileSummary;

/** A key file has about 1 KiB; a megabyte would hold up all others. */
const MAX_BYTES = 64 * 1024;
// Another file in the place of a key file must not swell the page.
const MAX_FAULTS = 20;
const MAX_CONTENT_ID = 400;

/**
 * Undefined: the file is gone by now, or is a link, a folder or a device. An unreadable one has that as its fault. @throws
 * the system's error when a sub-folder may not be entered.
 */
export function describeKeyFile(
  folder: string,
  streamId: StreamId,
  summarise: Summarise,
): ListedKeyFile | undefined {
  try {
    const at = keyFilePath(folder, streamId);
    return inSubFolder(rootFolder(folder), at, (path) => describe(path, streamId, summarise));
  } catch (thrown) {
    if (isGone(thrown) || thrown instanceof HttpError) return undefined;
    throw thrown;
  }
}

function describe(path: string, streamId: StreamId, summarise: Summarise): ListedKeyFile | undefined {
  const stat = lstatSync(path);
  const summary =
    stat.size > MAX_BYTES
      ? unreadable('too_large', 'The file is too large for a key file.')
      : summaryOf(path, summarise);
  if (!summary) return undefined;
  const { parts, keyId, contentId, faults } = summary;
  return {
    streamid: streamId,
    modified: stat.mtime.toISOString(),
    size: stat.size,
    parts: [...parts],
    key_id: keyId ?? null,
    content_id: contentId?.slice(0, MAX_CONTENT_ID) ?? null,
    faults: faults
      .slice(0, MAX_FAULTS)
      .map(({ severity, code, description }) => ({ severity, code, description })),
  };
}

function summaryOf(path: string, summarise: Summarise): KeyFileSummary | undefined {
  let found: FoundFile | undefined;
  try {
    found = readSmallFile(path);
  } catch (thrown) {
    const code = systemCode(thrown);
    // Too many open files is no property of this one.
    if (code === undefined || code === 'EMFILE' || code === 'ENFILE') throw thrown;
    return unreadable('unreadable', `The file cannot be read (${code}). Check its owner and its mode.`);
  }
  if (found?.kind !== 'file') return undefined;
  if (!isUtf8(found.bytes)) return unreadable('not_utf8', 'The file is not UTF-8. Write the key file again.');
  return summarise(found.bytes.toString('utf8'));
}

function unreadable(code: string, description: string): KeyFileSummary {
  return {
    parts: [],
    keyId: undefined,
    contentId: undefined,
    faults: [{ severity: 'error', code, description }],
  };
}

/** Less than a millisecond's work. */
const NAMES_PER_TURN = 1000;

/** Sorted. Passes over links, devices, names that are no stream ids, and (`onUnreadable`) unreadable sub-folders. */
export async function listStreamIds(
  root: string,
  onUnreadable: (subFolder: string, code: string) => void = () => undefined,
): Promise<StreamId[]> {
  const found: StreamId[] = [];
  const visit = async (parts: readonly string[]): Promise<void> => {
    for (const [at, entry] of (await readFolder(root, parts, onUnreadable)).entries()) {
      if (at % NAMES_PER_TURN === 0) await yieldToEventLoop();
      const name = entry.isFile() ? (KEY_FILE.exec(entry.name)?.[1] ?? '') : entry.name;
      const parsed = parseStreamId([...parts, name].join('/'));
      if (!parsed.ok) continue;
      if (entry.isFile()) found.push(parsed.value);
      else if (entry.isDirectory() && parts.length + 1 < MAX_PARTS) await visit([...parts, name]);
    }
  };
  await visit([]);
  return found.sort();
}

const KEY_FILE = /^(.+)\.key$/;

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
        // A sub-folder like lost+found must not fail the list of all streams.
        onUnreadable(parts.join('/'), code);
        return [];
      }
      if (!isGone(thrown)) throw thrown;
      // Where the file system reports no type of an entry, Node asks for it: the entry may be gone by then.
      if (tries < TRIES) continue;
      if (parts.length === 0) throw thrown;
      return [];
    }
  }
}

function isGone(thrown: unknown): boolean {
  const code = systemCode(thrown);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
