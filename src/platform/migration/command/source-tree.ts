import type { Dirent } from 'node:fs';
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../../http/errors';
import { type FoundCall, UnreadableInput } from '../read-calls/found-call';
import { type LanguageName, languageOfFile, loadLanguage } from '../read-calls/kind';
import { findCalls, mayCallV1 } from '../read-calls/source';

/** Programs of others, and what is no program. */
const SKIPPED = new Set([
  'node_modules',
  '.git',
  '.hg',
  '.svn',
  'bower_components',
  '__pycache__',
  '.venv',
  'venv',
]);
/** A larger file is no program that somebody wrote. */
const MAX_FILE = 2 * 1024 * 1024;

/** So many files that can't be read are named. */
const MAX_TOLD = 20;

/** What was found in a folder. */
interface TreeSummary {
  readonly files: number;
  /** What was left out, in words. */
  readonly leftOut: readonly string[];
}

/** Reads the programs below a folder. Symbolic links are not followed: they could lead out of it, or in a circle. */
export async function readTree(
  folder: string,
  shown: string,
  onCall: (call: FoundCall, file: string) => void,
  interrupted: AbortSignal,
): Promise<TreeSummary> {
  const waiting = [{ path: folder, name: shown }];
  const unread: string[] = [];
  let files = 0;
  let huge = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    interrupted.throwIfAborted();
    const { path, name } = next;
    const folders: { path: string; name: string }[] = [];
    for (const entry of await entriesOf(path, name, unread)) {
      const below = { path: join(path, entry.name), name: join(name, entry.name) };
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(below);
      const language = entry.isFile() ? languageOfFile(entry.name) : undefined;
      if (!language) continue;
      const text = await textOf(below.path, below.name, unread);
      if (text === 'huge') huge += 1;
      if (text === undefined || text === 'huge') continue;
      files += 1;
      try {
        for (const call of await callsIn(text.text, language)) onCall(call, below.name);
      } catch (thrown) {
        if (!(thrown instanceof UnreadableInput)) throw thrown;
        unread.push(`${below.name} ${thrown.message} and left out`);
      }
    }
    // The last is taken first, and the report is in the order of the names.
    waiting.push(...folders.reverse());
  }
  const leftOut = [
    ...(huge > 0 ? [`${huge} larger than ${MAX_FILE / 1024 / 1024} MiB left out`] : []),
    ...unread.slice(0, MAX_TOLD),
    ...(unread.length > MAX_TOLD ? [`${unread.length - MAX_TOLD} more can't be read`] : []),
  ];
  return { files, leftOut };
}

async function callsIn(text: string, language: LanguageName): Promise<FoundCall[]> {
  return mayCallV1(text) ? findCalls(text, await loadLanguage(language)) : [];
}

async function entriesOf(path: string, name: string, unread: string[]): Promise<Dirent[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    unread.push(`${name} can't be read`);
    return [];
  }
}

async function textOf(
  path: string,
  name: string,
  unread: string[],
): Promise<{ readonly text: string } | 'huge' | undefined> {
  try {
    if ((await lstat(path)).size > MAX_FILE) return 'huge';
    const bytes = await readFile(path);
    return bytes.subarray(0, 8192).includes(0) ? undefined : { text: bytes.toString() };
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    unread.push(`${name} can't be read`);
    return undefined;
  }
}
