import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checked } from '../../drm/bytes';
import { readSmil } from '../../drm/smil';
import { systemCode } from '../../http/errors';
import {
  type ApplicationSettings,
  readApplicationSettings,
  readStreamerDefaults,
  type Setting,
} from './application-settings';
import type { NamedStreams } from './known-streams';
import { readText, type Unread, unread } from './read-text';

/** An application of the packager. */
export interface ApplicationFile {
  readonly name: string;
  /** The configuration it runs with, below the installation. */
  readonly file: string;
  readonly settings: Checked<ApplicationSettings>;
  /** What to do when the settings can't be read. */
  readonly todo: string;
  /** Whether it has its folder in `applications`, without which the packager does not know it. */
  readonly hasFolder: boolean;
}

export interface PackagerFiles {
  readonly applications: readonly ApplicationFile[];
  /** What `conf/HTTPStreamers.xml` gives the HLS streamer of all applications. */
  readonly streamerDefaults: Checked<readonly Setting[]>;
}

const APPLICATION_XML = 'Application.xml';
/** The packager's own reader may take what this one refuses, as a DOCTYPE. */
const NOT_READ =
  'change the file so that it can be checked; whether the packager reads it as it is, is not known here';

/** What `.smil` and `.stream` files name, and those of them that were not read. */
export interface FoundStreams extends NamedStreams {
  readonly unread: readonly { readonly what: string; readonly todo: string }[];
}

/** Reads the configuration of a packager's installation. */
export async function readPackager(packager: string): Promise<PackagerFiles | Unread> {
  let configured: string[];
  try {
    configured = await foldersIn(join(packager, 'conf'));
  } catch (thrown) {
    return unread(thrown);
  }
  const own: string[] = [];
  for (const name of configured) {
    if (await exists(join(packager, 'conf', name, APPLICATION_XML))) own.push(name);
  }
  const folders = await foldersIn(join(packager, 'applications')).catch(() => undefined);
  const names = [...new Set([...own, ...(folders ?? [])])].sort();
  const applications: ApplicationFile[] = [];
  for (const name of names) {
    const file = own.includes(name) ? `conf/${name}/${APPLICATION_XML}` : `conf/${APPLICATION_XML}`;
    const text = await readText(join(packager, file));
    const settings = text.ok ? readApplicationSettings(text.value) : text;
    const todo = text.ok ? NOT_READ : text.todo;
    applications.push({ name, file, settings, todo, hasFolder: folders?.includes(name) ?? true });
  }
  const defaults = await readText(join(packager, 'conf/HTTPStreamers.xml'));
  const streamerDefaults = defaults.ok
    ? readStreamerDefaults(defaults.value)
    : defaults.isAbsent
      ? { ok: true as const, value: [] }
      : defaults;
  return { applications, streamerDefaults };
}

/** Reads which streams the `.smil` and `.stream` files of some folders name, and which of those files can't be read. */
export async function readNamedStreams(folders: readonly string[]): Promise<FoundStreams> {
  const groups: { file: string; members: string[] }[] = [];
  const streamFiles = new Set<string>();
  const notRead: { what: string; todo: string }[] = [];
  for (const folder of new Set(folders)) {
    const names = await filesIn(folder).catch((thrown) => unread(thrown));
    if ('fault' in names) {
      notRead.push({ what: `${folder} ${names.fault.sentence}`, todo: names.todo });
      continue;
    }
    for (const name of names.sort()) {
      if (/\.stream$/i.test(name)) streamFiles.add(name);
      if (!/\.smil$/i.test(name)) continue;
      const file = join(folder, name);
      const text = await readText(file);
      const members = text.ok ? readSmil(text.value) : text;
      if (members.ok) groups.push({ file, members: members.value });
      else
        notRead.push({
          what: `${file} ${members.fault.sentence}`,
          todo: text.ok ? 'mend the file' : text.todo,
        });
    }
  }
  return { groups, streamFiles: [...streamFiles], unread: notRead };
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolder(join(path, entry.name)))))
      found.push(entry.name);
  }
  return found;
}

/** None when the folder is not there: an application need not have each. */
async function filesIn(path: string): Promise<string[]> {
  try {
    return (await readdir(path, { withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  } catch (thrown) {
    if (unread(thrown).isAbsent) return [];
    throw thrown;
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
