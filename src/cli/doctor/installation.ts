import { readdir, readFile, stat } from 'node:fs/promises';
import { isAbsolute, join, normalize } from 'node:path';
import { type Checked, refused } from '../../drm/bytes';
import type { Problem } from '../../drm/finding';
import { readSmil } from '../../drm/smil';
import { systemCode } from '../../http/errors';
import { statsOf } from '../input';
import { readApplicationSettings, readStreamerDefaults, type Setting } from './application';
import type { NamedStreams } from './streams';

export type ApplicationFile = Awaited<ReturnType<typeof readApplication>>;

const APPLICATION_XML = 'Application.xml';
/** The packager's own reader may accept more, such as a DOCTYPE. */
const NOT_READ =
  'change the file so that it can be checked; it is not known whether the packager can read it';

export async function readPackager(packager: string) {
  const configured = await foldersIn(join(packager, 'conf')).catch((thrown) => unread(thrown));
  if ('problem' in configured) return configured;
  const own: string[] = [];
  for (const name of configured) {
    const failure = await stat(join(packager, 'conf', name, APPLICATION_XML)).catch((thrown) => thrown);
    if (systemCode(failure) !== 'ENOENT') own.push(name);
  }
  const folders = await foldersIn(join(packager, 'applications')).catch(() => undefined);
  const names = [...new Set([...own, ...(folders ?? [])])].sort();
  const applications: ApplicationFile[] = [];
  for (const name of names) {
    const file = own.includes(name) ? `conf/${name}/${APPLICATION_XML}` : `conf/${APPLICATION_XML}`;
    applications.push(await readApplication(packager, name, file, folders?.includes(name) ?? true));
  }
  const text = await readText(join(packager, 'conf/HTTPStreamers.xml'));
  const defaults: Checked<readonly Setting[]> = text.ok ? readStreamerDefaults(text.value) : text;
  const isAbsent = !text.ok && text.isAbsent;
  return { applications, streamerDefaults: isAbsent ? ({ ok: true, value: [] } as const) : defaults };
}

async function readApplication(packager: string, name: string, file: string, hasFolder: boolean) {
  const text = await readText(join(packager, file));
  const settings = text.ok ? readApplicationSettings(text.value) : text;
  const { storageDir = DEFAULT_STORAGE_DIR, keyDir = DEFAULT_KEY_DIR } = settings.ok ? settings.value : {};
  const content = resolvePath(storageDir, packager, name);
  return {
    name,
    file,
    settings,
    /** The remedy for settings that can't be read. */
    todo: text.ok ? NOT_READ : text.todo,
    /** Whether it has its folder in `applications`, without which the packager does not know it. */
    hasFolder,
    /** Where it looks for key files, without variables. */
    keyDir: settings.ok ? resolvePath(keyDir, packager, name) : settings,
    /** Where its `.smil` and `.stream` files may lie. */
    contentFolders: [
      ...(content.ok ? [content.value] : []),
      join(packager, 'applications', name),
      join(packager, 'conf', name),
    ],
  };
}

export async function readNamedStreams(folders: readonly string[]) {
  const groups: NamedStreams['groups'][number][] = [];
  const streamFiles = new Set<string>();
  const notRead: { what: string; todo: string }[] = [];
  for (const folder of new Set(folders)) {
    const entries = await readdir(folder).catch((thrown) => unread(thrown));
    if ('problem' in entries) {
      // An application need not have each folder.
      const what = `${folder} ${entries.problem.description}`;
      if (!entries.isAbsent) notRead.push({ what, todo: entries.todo });
      continue;
    }
    for (const name of entries.filter((each) => /\.(?:smil|stream)$/i.test(each)).sort()) {
      if (!statsOf({ cwd: folder }, name)?.isFile()) continue;
      if (/\.stream$/i.test(name)) streamFiles.add(name);
      if (!/\.smil$/i.test(name)) continue;
      const file = join(folder, name);
      const text = await readText(file);
      const members = text.ok ? readSmil(text.value) : text;
      const todo = text.ok ? 'correct the file' : text.todo;
      if (members.ok) groups.push({ file, members: members.value.map((stream) => stream.name) });
      else notRead.push({ what: `${file} ${members.problem.description}`, todo });
    }
  }
  return { groups, streamFiles: [...streamFiles], unread: notRead };
}

async function foldersIn(path: string): Promise<string[]> {
  const names = await readdir(path);
  return names.filter((name) => !name.startsWith('.') && statsOf({ cwd: path }, name)?.isDirectory());
}

export const DEFAULT_KEY_DIR = `\${com.wowza.wms.context.VHostConfigHome}/keys`;
const DEFAULT_STORAGE_DIR = `\${com.wowza.wms.context.VHostConfigHome}/content`;

/** Fills in the packager's variables. The folder of the default virtual host is the installation itself. */
function resolvePath(text: string, packager: string, application: string): Checked<string> {
  const values: Readonly<Record<string, string>> = {
    'com.wowza.wms.AppHome': packager,
    'com.wowza.wms.ConfigHome': packager,
    'com.wowza.wms.context.VHost': '_defaultVHost_',
    'com.wowza.wms.context.VHostConfigHome': packager,
    'com.wowza.wms.context.Application': application,
    'com.wowza.wms.context.ApplicationInstance': '_definst_',
  };
  const unknown: string[] = [];
  const path = text.replaceAll(/\$\{([^}]*)\}/g, (variable, name: string) => {
    const value = values[name];
    if (value === undefined) unknown.push(variable);
    return value ?? '';
  });
  const names = unknown.join(', ');
  if (unknown.length > 0)
    return refused('unknown_variable', `holds ${names}, which is not a variable of an Application.xml`);
  const relative = 'is a relative path, which depends on the folder the packager was started in';
  if (!isAbsolute(path)) return refused('relative_path', relative);
  return { ok: true, value: normalize(path).replace(/(?<=.)\/$/, '') };
}

export interface Unread {
  readonly ok: false;
  readonly problem: Problem;
  readonly todo: string;
  readonly isAbsent: boolean;
}

/** Describes a failed call of the file system; throws other errors. */
export function unread(thrown: unknown, absent = 'make it'): Unread {
  const code = systemCode(thrown);
  if (code === undefined) throw thrown;
  const isAbsent = code === 'ENOENT' || code === 'ENOTDIR';
  const [name, description, todo] = isAbsent
    ? ['absent', 'is not there', absent]
    : isDenied(thrown)
      ? ['denied', `may not be read by you (${code})`, 'run this as root']
      : ['unreadable', `can't be read (${code})`, 'find out why, and run this again'];
  return { ...refused(name, description), todo, isAbsent };
}

export function isDenied(thrown: unknown): boolean {
  const code = systemCode(thrown);
  return code === 'EACCES' || code === 'EPERM';
}

/** Reads a text in UTF-8, or in UTF-16 when its first bytes say so, as an XML reader does. */
async function readText(path: string): Promise<{ readonly ok: true; readonly value: string } | Unread> {
  try {
    const bytes = await readFile(path);
    const mark = bytes.toString('hex', 0, 2);
    const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
    return { ok: true, value: new TextDecoder(encoding).decode(bytes) };
  } catch (thrown) {
    return unread(thrown);
  }
}
