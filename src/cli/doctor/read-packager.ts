import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Checked, fault } from '../../drm/bytes';
import { readSmil } from '../../drm/smil';
import { systemCode } from '../../kernel/errors';
import {
  type ApplicationSettings,
  readApplicationSettings,
  readStreamerDefaults,
  type Setting,
} from './application-settings';
import type { NamedStreams } from './known-streams';

/** An application of the packager. */
export interface ApplicationFile {
  readonly name: string;
  /** The configuration it runs with, below the installation. */
  readonly file: string;
  readonly settings: Checked<ApplicationSettings>;
  /** Whether it has its folder in `applications`, without which the packager does not know it. */
  readonly hasFolder: boolean;
}

export interface PackagerFiles {
  readonly applications: readonly ApplicationFile[];
  /** What `conf/HTTPStreamers.xml` gives the HLS streamer of all applications. */
  readonly streamerDefaults: Checked<readonly Setting[]>;
}

const APPLICATION_XML = 'Application.xml';

/** Reads the configuration of a packager's installation; undefined when there is none in the folder. */
export async function readPackager(packager: string): Promise<PackagerFiles | undefined> {
  const configured = await foldersIn(join(packager, 'conf'));
  if (!configured) return undefined;
  const own: string[] = [];
  for (const name of configured) {
    if (await exists(join(packager, 'conf', name, APPLICATION_XML))) own.push(name);
  }
  const folders = await foldersIn(join(packager, 'applications'));
  const names = [...new Set([...own, ...(folders ?? [])])].sort();
  const applications: ApplicationFile[] = [];
  for (const name of names) {
    const file = own.includes(name) ? `conf/${name}/${APPLICATION_XML}` : `conf/${APPLICATION_XML}`;
    const text = await readText(join(packager, file));
    const settings = text.ok ? readApplicationSettings(text.value) : text;
    applications.push({ name, file, settings, hasFolder: folders?.includes(name) ?? true });
  }
  const defaults = await readText(join(packager, 'conf/HTTPStreamers.xml'));
  const streamerDefaults = defaults.ok
    ? readStreamerDefaults(defaults.value)
    : { ok: true as const, value: [] };
  return { applications, streamerDefaults };
}

/** Reads which streams the `.smil` and `.stream` files of some folders name, and which of those files can't be read. */
export async function readNamedStreams(
  folders: readonly string[],
): Promise<NamedStreams & { readonly unreadable: readonly string[] }> {
  const groups: { file: string; members: string[] }[] = [];
  const streamFiles = new Set<string>();
  const unreadable: string[] = [];
  for (const folder of new Set(folders)) {
    for (const name of (await filesIn(folder)).sort()) {
      if (/\.stream$/i.test(name)) streamFiles.add(name);
      if (!/\.smil$/i.test(name)) continue;
      const file = join(folder, name);
      const text = await readText(file);
      const members = text.ok ? readSmil(text.value) : text;
      if (members.ok) groups.push({ file, members: members.value });
      else unreadable.push(`${file} ${members.fault}`);
    }
  }
  return { groups, streamFiles: [...streamFiles], unreadable };
}

async function readText(path: string): Promise<Checked<string>> {
  try {
    return { ok: true, value: await readFile(path, 'utf8') };
  } catch (thrown) {
    const code = systemCode(thrown);
    return fault(code === 'ENOENT' ? 'is not there' : `can’t be read (${code ?? 'unknown error'})`);
  }
}

async function foldersIn(path: string): Promise<string[] | undefined> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    const found: string[] = [];
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolder(join(path, entry.name)))))
        found.push(entry.name);
    }
    return found;
  } catch {
    return undefined;
  }
}

async function filesIn(path: string): Promise<string[]> {
  try {
    return (await readdir(path, { withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (thrown) => systemCode(thrown) !== 'ENOENT',
  );
}
