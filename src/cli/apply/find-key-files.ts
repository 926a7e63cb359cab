import { readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CliContext } from '../context';
import { isKeyFileName } from '../key-file-input';

/** A key file that the user named, or that lies in a folder that he named. */
export interface FoundKeyFile {
  /** As a message names it. */
  readonly path: string;
  /** What its place says that the stream is called; it may be no stream id. */
  readonly streamId: string;
}

/** Something that was named, or found, and is no key file. */
export interface NotFound {
  readonly path: string;
  /** Goes on after the path. */
  readonly description: string;
}

/** Whether the user means key files, and no line-up. */
export function namesKeyFiles({ cwd }: Pick<CliContext, 'cwd'>, source: string): boolean {
  return isKeyFileName(source) || statsOf(resolve(cwd, source))?.isDirectory() === true;
}

export function isThere({ cwd }: Pick<CliContext, 'cwd'>, source: string): boolean {
  return statsOf(resolve(cwd, source)) !== undefined;
}

/**
 * The key files of folders, with those below them, and files, in the order of their names. A file in a sub-folder is of
 * the stream `sub/name`; one that is named itself is of the stream of its name. Links are followed.
 */
export function findKeyFiles(
  { cwd }: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
): { readonly found: readonly FoundKeyFile[]; readonly missing: readonly NotFound[] } {
  const found: FoundKeyFile[] = [];
  const missing: NotFound[] = [];

  const addFile = (path: string, streamId: string) => {
    const stats = statsOf(resolve(cwd, path));
    if (stats?.isFile()) found.push({ path, streamId: streamId.replace(/\.key$/i, '') });
    else missing.push({ path, description: stats ? 'is no file' : 'is not there, or can’t be read' });
  };

  const addFolder = (path: string, prefix: string, above: readonly string[]) => {
    let real: string;
    let names: readonly string[];
    try {
      real = realpathSync(resolve(cwd, path));
      names = readdirSync(real).sort();
    } catch {
      missing.push({ path, description: 'can’t be read; check who may read it' });
      return;
    }
    // A link to a folder above would have no end.
    if (above.includes(real)) return;
    for (const name of names) {
      // What begins with a dot is not read by a packager: such are files that are being written.
      if (name.startsWith('.')) continue;
      const inner = join(path, name);
      if (statsOf(resolve(cwd, inner))?.isDirectory())
        addFolder(inner, `${prefix}${name}/`, [...above, real]);
      else if (isKeyFileName(name)) addFile(inner, prefix + name);
    }
  };

  for (const source of sources) {
    const before = found.length + missing.length;
    if (statsOf(resolve(cwd, source))?.isDirectory()) addFolder(source, '', []);
    else addFile(source, source.split(/[\\/]/).at(-1) ?? source);
    if (found.length + missing.length === before)
      missing.push({ path: source, description: 'has no .key file in it' });
  }
  return { found, missing };
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
