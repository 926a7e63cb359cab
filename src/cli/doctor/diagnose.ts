import { join } from 'node:path';
import type { ListedKeyFile } from '../../api/list';
import type { Checked } from '../../drm/bytes';
import { count } from '../../terminal/text';
import { checkHlsSettings, checkStreaming, needsCmafLines, type Setting } from './application';
import { type Check, error, ok, type Section, someOf, warning } from './finding';
import { fleetSection } from './fleet';
import { type ApplicationFile, DEFAULT_KEY_DIR, type FoundStreams, type Unread } from './installation';
import {
  type CheckedKeyFile,
  CLASH_CODES,
  checkCmafLines,
  checkKeyClashes,
  checkKeyFiles,
  type KeyedFile,
} from './key-files';
import { checkNames, isGroupName, type KeyFolder, keyFileIdOf } from './key-folder';
import { checkAccess, type PackagerUser } from './rights';
import { checkSidecar, compareFolders, type SidecarState } from './sidecar';
import { checkGivenStreams, checkNamedStreams, groupNames, streamNames } from './streams';

interface ExaminedApplication extends ApplicationFile {
  /** Where it looks for key files, without variables; undefined when its configuration can't be read. */
  readonly keyDir: Checked<string> | undefined;
}

export interface ExaminedFolder {
  readonly path: string;
  readonly applications: readonly string[];
  readonly disk: KeyFolder | Unread;
  readonly named: FoundStreams;
}

export interface Examined {
  readonly packager: string;
  readonly applications: readonly ExaminedApplication[];
  readonly streamerDefaults: Checked<readonly Setting[]>;
  readonly keyFolders: readonly ExaminedFolder[];
  readonly sidecar: SidecarState;
  readonly user: PackagerUser | undefined;
  readonly given: readonly string[];
}

interface JudgedFolder {
  readonly section: Section;
  /** The prefix of a stream's name in its stream id, if it is known. */
  readonly prefix: string | undefined;
  readonly keyFiles: readonly CheckedKeyFile[];
}

/** Judges the examined parts: the sidecar, its fleet, each application, each key folder, and the streams that the user named. */
export function diagnose(examined: Examined): Section[] {
  const folders = examined.keyFolders.map((folder) => judgeFolder(folder, examined));
  const applications = examined.applications.map((application) =>
    applicationSection(application, examined, folders),
  );
  const sidecar: Section = {
    kind: 'sidecar',
    subject: examined.sidecar.address ?? 'none',
    note: 'the sidecar',
    checks: checkSidecar(examined.sidecar),
  };
  const joined = examined.keyFolders.flatMap(({ path, disk }) =>
    !('problem' in disk) && disk.hasJoinedFleet ? [path] : [],
  );
  return [
    sidecar,
    ...fleetSection(examined.sidecar.fleet, joined),
    ...applications,
    ...folders.map(({ section }) => section),
    ...givenSection(examined, folders),
  ];
}

function applicationSection(
  application: ExaminedApplication,
  { streamerDefaults }: Examined,
  folders: readonly JudgedFolder[],
): Section {
  const { name, file, settings, hasFolder, keyDir } = application;
  const checks: Check[] = [];
  if (!hasFolder) {
    checks.push(
      warning(
        'no_application_folder',
        `applications/${name} does not exist, so the packager does not start this application`,
        `make the folder applications/${name}, or delete conf/${name}`,
      ),
    );
  }
  if (!settings.ok) {
    checks.push(
      error('unreadable_configuration', `${file} ${settings.problem.description}`, application.todo),
    );
  } else {
    const hls = checkHlsSettings(settings.value, streamerDefaults.ok ? streamerDefaults.value : []);
    checks.push(...hls);
    if (!streamerDefaults.ok && hls.some(({ severity }) => severity === 'error')) {
      const message = `conf/HTTPStreamers.xml ${streamerDefaults.problem.description}, so its defaults are not checked`;
      checks.push(warning('unreadable_defaults', message, 'make it readable, or run this as root'));
    }
    checks.push(...checkStreaming(settings.value));
    const folder = keyDir?.ok ? folders.find(({ section }) => section.subject === keyDir.value) : undefined;
    if (folder && needsCmafLines(settings.value)) checks.push(checkCmafLines(folder.keyFiles));
    if (keyDir) checks.push(keyDirFinding(keyDir, settings.value.keyDir));
  }
  const inherited =
    file === `conf/${name}/Application.xml` ? '' : ', which it shares: it has none of its own';
  return { kind: 'application', subject: name, note: `${file}${inherited}`, checks };
}

function keyDirFinding(keyDir: Checked<string>, text: string | undefined): Check {
  if (keyDir.ok)
    return ok(
      'key_dir',
      `Key files are read from ${keyDir.value}${text === undefined ? ' (the default: no KeyDir)' : ''}`,
    );
  return error(
    'key_dir',
    `KeyDir ${keyDir.problem.description}`,
    'change Root/Application/Streams/KeyDir to',
    { xml: `<KeyDir>${DEFAULT_KEY_DIR}</KeyDir>` },
  );
}

function judgeFolder(folder: ExaminedFolder, { sidecar, user }: Examined): JudgedFolder {
  const { path, applications, disk, named } = folder;
  const note = `the key folder of ${someOf(applications)}`;
  if ('problem' in disk) {
    const checks = [error('key_folder', `The key folder ${disk.problem.description}`, disk.todo)];
    return {
      section: { kind: 'key_folder', subject: path, note, checks },
      prefix: undefined,
      keyFiles: [],
    };
  }
  const entries = disk.entries.flatMap((entry) => {
    const id = keyFileIdOf(entry);
    return id === undefined ? [] : [{ ...entry, id }];
  });
  const files = entries.filter(({ kind }) => kind === 'file');
  const { check, prefix } = compareFolders({ folder: disk.realPath, places: disk.places, files }, sidecar);
  // For a file that the doctor may not read, the sidecar's list is used.
  const listed = new Map(prefix === undefined ? [] : sidecar.listed?.map((file) => [file.streamid, file]));
  const keyFiles = files.map(({ id, summary, keys }) =>
    summary
      ? { id, summary, keys, shownKeyId: summary.keyId, reported: [] }
      : byWord(id, listed.get(`${prefix}${id}`)),
  );
  const rights = files.map((file) => ({ ...file, path: join(disk.realPath, file.path) }));
  const [groups, streams] = [groupNames(named), streamNames(named)];
  const ofStreams = keyFiles.filter(({ id }) => !isGroupName(id, groups, streams));
  const checks = [
    check,
    ...(user
      ? checkAccess(user.identity, { path: disk.realPath, folders: disk.rights, files: rights })
      : [warning('no_user', 'The user that the packager runs as is not known', 'give the user with --user')]),
    ...checkKeyFiles(ofStreams, checkKeyClashes(ofStreams)),
    ...checkNamedStreams(named, new Set(entries.map(({ id }) => id))),
    ...named.unread.map(({ what, todo }) =>
      warning('unreadable_smil', what, `${todo}: its streams are not checked`),
    ),
    ...checkNames(disk.entries, groups, streams),
  ];
  return { section: { kind: 'key_folder', subject: path, note, checks }, prefix, keyFiles };
}

/** A key file as the sidecar knows it. Its clashes are reported with those of the others, not as its own faults. */
function byWord(id: string, listed: ListedKeyFile | undefined): CheckedKeyFile & KeyedFile {
  if (!listed) return { id, summary: undefined, keys: undefined, shownKeyId: undefined, reported: [] };
  const { parts, faults } = listed;
  return {
    id,
    summary: { parts, faults: faults.filter(({ code }) => !CLASH_CODES.has(code)) },
    keys: undefined,
    shownKeyId: undefined,
    reported: faults.map(({ code }) => code).filter((code) => CLASH_CODES.has(code)),
  };
}

function givenSection({ given, keyFolders }: Examined, folders: readonly JudgedFolder[]): Section[] {
  if (given.length === 0) return [];
  const ids = keyFolders.flatMap(({ disk }, index) => {
    const prefix = folders[index]?.prefix ?? '';
    const found = 'problem' in disk ? [] : disk.entries.flatMap((entry) => keyFileIdOf(entry) ?? []);
    return found.flatMap((id) => [id, `${prefix}${id}`]);
  });
  const checks = checkGivenStreams(given, new Set(ids));
  return [{ kind: 'streams', subject: count(given.length, 'stream'), note: 'named by you', checks }];
}
