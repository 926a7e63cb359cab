import { join } from 'node:path';
import type { Checked } from '../../drm/bytes';
import type { Names } from './access-rights';
import type { Setting } from './application-settings';
import { type AskedSidecar, askSidecar, type SidecarState } from './ask-sidecar';
import { findPackagerUser, type MachinePaths, type PackagerUser, readAccounts } from './packager-user';
import { DEFAULT_KEY_DIR, DEFAULT_STORAGE_DIR, resolvePath } from './path-variables';
import { foldersAbove, type KeyFolder, readKeyFolder } from './read-key-folder';
import { type ApplicationFile, type FoundStreams, readNamedStreams, readPackager } from './read-packager';
import type { Unread } from './read-text';
import type { FolderEvidence } from './same-folder';
import { findTouchedFolder } from './watch-folder';

export interface ExaminedApplication extends ApplicationFile {
  /** Where it looks for key files, without variables; undefined when its configuration can't be read. */
  readonly keyDir: Checked<string> | undefined;
}

export interface ExaminedFolder {
  readonly path: string;
  /** The applications that read it. */
  readonly applications: readonly string[];
  readonly disk: KeyFolder | Unread;
  readonly named: FoundStreams;
  readonly probed: FolderEvidence['probed'];
}

/** All that the doctor judges by. */
export interface Examined {
  readonly packager: string;
  readonly applications: readonly ExaminedApplication[];
  readonly streamerDefaults: Checked<readonly Setting[]>;
  readonly keyFolders: readonly ExaminedFolder[];
  readonly sidecar: SidecarState;
  readonly user: PackagerUser | undefined;
  readonly names: Names;
  /** Streams that the user named. */
  readonly given: readonly string[];
}

export interface Examination {
  readonly packager: string;
  /** Names of applications; all when undefined. */
  readonly applications: readonly string[] | undefined;
  readonly user: string | undefined;
  readonly given: readonly string[];
  readonly sidecar: () => AskedSidecar;
  readonly machine: MachinePaths;
  readonly pause: (ms: number) => Promise<void>;
}

/** The user called for something that isn't there; its message says what. */
export class NothingToExamine extends Error {}

/**
 * Reads the packager's installation, asks the sidecar, and writes nothing.
 * @throws NothingToExamine when the folder is no installation, or an application or user that is named isn't there.
 */
export async function examine(examination: Examination): Promise<Examined> {
  const { packager, machine, given, pause } = examination;
  const files = await readPackager(packager);
  if ('fault' in files) {
    const conf = join(packager, 'conf');
    throw new NothingToExamine(
      files.isAbsent
        ? `${packager} is no packager's installation: it has no conf folder.`
        : `${conf} ${files.fault.sentence}: ${files.todo}.`,
    );
  }
  const accounts = await readAccounts(machine);
  const applications = chosen(files.applications, examination).map((application) => ({
    ...application,
    keyDir: keyDirOf(application, packager),
  }));
  const user = await userOf(examination, accounts);
  const state = await askSidecar(examination.sidecar);
  const paths = [...new Set(applications.flatMap(({ keyDir }) => (keyDir?.ok ? [keyDir.value] : [])))];
  const keyFolders: ExaminedFolder[] = [];
  for (const path of paths) {
    const readers = applications.filter(({ keyDir }) => keyDir?.ok && keyDir.value === path);
    const disk = await readKeyFolder(path);
    const probed = await probe(disk, state, examination.sidecar, pause);
    const named = await readNamedStreams(readers.flatMap((reader) => contentFolders(reader, packager)));
    keyFolders.push({ path, applications: readers.map(({ name }) => name), disk, named, probed });
  }
  const { streamerDefaults } = files;
  return {
    packager,
    applications,
    streamerDefaults,
    keyFolders,
    sidecar: state,
    user,
    names: accounts,
    given,
  };
}

function chosen(
  all: readonly ApplicationFile[],
  { applications, packager }: Examination,
): readonly ApplicationFile[] {
  if (all.length === 0)
    throw new NothingToExamine(`${packager} has no application: no conf/<application>/Application.xml.`);
  const unknown = applications?.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined) {
    const names = all.map(({ name }) => name).join(', ');
    throw new NothingToExamine(`${packager} has no application ${unknown}. It has: ${names}.`);
  }
  return all.filter(({ name }) => applications?.includes(name) ?? true);
}

async function userOf(
  { user, packager, machine }: Examination,
  accounts: Awaited<ReturnType<typeof readAccounts>>,
): Promise<PackagerUser | undefined> {
  if (user === undefined) return findPackagerUser(packager, accounts, machine);
  const identity = accounts.find(user);
  if (!identity) throw new NothingToExamine(`This machine has no user ${user}.`);
  return { identity, because: 'named by --user' };
}

function keyDirOf({ name, settings }: ApplicationFile, packager: string): Checked<string> | undefined {
  return settings.ok ? resolvePath(settings.value.keyDir ?? DEFAULT_KEY_DIR, packager, name) : undefined;
}

/** Where an application's `.smil` and `.stream` files may lie. */
function contentFolders({ name, settings }: ApplicationFile, packager: string): string[] {
  const storageDir = settings.ok ? (settings.value.storageDir ?? DEFAULT_STORAGE_DIR) : DEFAULT_STORAGE_DIR;
  const content = resolvePath(storageDir, packager, name);
  return [
    ...(content.ok ? [content.value] : []),
    join(packager, 'applications', name),
    join(packager, 'conf', name),
  ];
}

/** A probe looks at each of them several times. */
const MAX_WATCHED = 200;

async function probe(
  disk: ExaminedFolder['disk'],
  { notReady }: SidecarState,
  find: () => AskedSidecar,
  pause: (ms: number) => Promise<void>,
): Promise<FolderEvidence['probed']> {
  if ('fault' in disk || notReady === undefined || notReady.length > 0) return 'unknown';
  const folders = [disk.realPath, ...disk.subFolders.slice(0, MAX_WATCHED), ...foldersAbove(disk.realPath)];
  try {
    const path = await findTouchedFolder(folders, () => find().ready(), pause);
    return path === undefined ? 'none' : { path };
  } catch {
    // It was ready a moment ago; the list has the word then.
    return 'unknown';
  }
}
