import { join, resolve } from 'node:path';
import type { ListedKeyFile } from '../../api/answers';
import { parseStreamId } from '../../api/stream-id';
import type { Checked } from '../../drm/bytes';
import { sentenceOf } from '../../drm/finding';
import { count } from '../../terminal/text';
import { EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readStreamIds } from '../manifest/read-manifest';
import type { Options } from '../options';
import { checkHlsSettings, checkStreaming, needsCmafLines, type Setting } from './application';
import { type Check, error, ok, type Section, someOf, warning } from './finding';
import { fleetSection } from './fleet';
import { type ApplicationFile, DEFAULT_KEY_DIR, readNamedStreams, readPackager } from './installation';
import { type CheckedKeyFile, CLASH_CODES, checkCmafLines, checkKeyFiles } from './key-files';
import { checkNames, isGroupName, keyFileIdOf, readKeyFolder } from './key-folder';
import { renderReport, reportDocument, reportRows, summaryOf } from './report';
import {
  checkAccess,
  findPackagerUser,
  identityOf,
  type Machine,
  type PackagerUser,
  THIS_MACHINE,
} from './rights';
import { askSidecar, checkSidecar, compareFolders, type SidecarState } from './sidecar';
import { checkGivenStreams, checkNamedStreams, groupNames, streamNames } from './streams';

export type DoctorOptions = Options & { readonly packager: string; readonly application?: readonly string[] };

/** @throws CliError when the folder is no installation, or a named application or user isn't there. */
export async function doctor(
  context: CliContext,
  options: DoctorOptions,
  machine = THIS_MACHINE,
): Promise<void> {
  const { out } = context;
  const manifest = options.manifest ?? options.lineup;
  if (options.csv && out.json) throw usageError('Give --csv or --json, not both.');
  checkOptions(options);
  const given = [
    ...(options.streams ?? []),
    ...(manifest === undefined ? [] : readStreamIds(context, manifest)),
  ];
  const packager = resolve(context.cwd, options.packager);
  const files = await readPackager(packager);
  if ('problem' in files)
    throw usageError(
      files.isAbsent
        ? `${packager} is not a packager's installation: it has no conf folder.`
        : `${join(packager, 'conf')} ${files.problem.description}: ${files.todo}.`,
    );
  const applications = chosen(files.applications, options.application, packager);
  const user = await userOf(packager, options.user, machine);
  const sidecar = await askSidecar(() => context.sidecar());
  const folders: JudgedFolder[] = [];
  for (const path of new Set(applications.flatMap(({ keyDir }) => (keyDir.ok ? [keyDir.value] : [])))) {
    const readers = applications.filter(({ keyDir }) => keyDir.ok && keyDir.value === path);
    folders.push(await judgeFolder(path, readers, sidecar, user));
  }
  const joined = folders.flatMap(({ section, hasJoinedFleet }) => (hasJoinedFleet ? [section.subject] : []));
  const sections: Section[] = [
    {
      kind: 'sidecar',
      subject: sidecar.address ?? 'none',
      note: 'the sidecar',
      checks: checkSidecar(sidecar),
    },
    ...fleetSection(sidecar.fleet, joined),
    ...applications.map((application) => applicationSection(application, files.streamerDefaults, folders)),
    ...folders.map(({ section }) => section),
  ];
  if (given.length > 0) {
    const checks = checkGivenStreams(given, new Set(folders.flatMap(({ streams }) => streams)));
    sections.push({ kind: 'streams', subject: count(given.length, 'stream'), note: 'named by you', checks });
  }
  const head = { packager, user, sidecar };
  if (out.json) out.document(reportDocument(head, sections));
  else if (options.csv) out.write(reportRows(sections));
  else out.write(renderReport(head, sections, out));
  if (summaryOf(sections).faults > 0) context.endWith(EXIT.failed);
}

/** A malformed stream id would be reported as missing. */
function checkOptions({ application, streams }: DoctorOptions): void {
  if (application?.length === 0) throw usageError('--application names none.');
  if (streams?.length === 0) throw usageError('--streams names none.');
  for (const name of streams ?? []) {
    const parsed = parseStreamId(name);
    if (!parsed.ok) throw usageError(`--streams ${name}: ${sentenceOf(parsed.problem)}`);
  }
}

function chosen(all: readonly ApplicationFile[], named: readonly string[] | undefined, packager: string) {
  if (all.length === 0)
    throw usageError(`${packager} has no application: no conf/<application>/Application.xml.`);
  const names = all.map(({ name }) => name);
  const unknown = named?.find((wanted) => !names.includes(wanted));
  if (unknown !== undefined)
    throw usageError(`${packager} has no application ${unknown}. It has: ${names.join(', ')}.`);
  return all.filter(({ name }) => named?.includes(name) ?? true);
}

async function userOf(packager: string, named: string | undefined, machine: Machine): Promise<PackagerUser> {
  if (named === undefined) return findPackagerUser(packager, machine);
  const identity = await identityOf(machine, named);
  if (!identity) throw usageError(`This machine has no user ${named}.`);
  return { identity, because: 'named by --user' };
}

function applicationSection(
  { name, file, settings, todo, hasFolder, keyDir }: ApplicationFile,
  streamerDefaults: Checked<readonly Setting[]>,
  folders: readonly JudgedFolder[],
): Section {
  const checks: Check[] = [];
  if (!hasFolder)
    checks.push(
      warning(
        'no_application_folder',
        `applications/${name} does not exist, so the packager does not start this application`,
        `make the folder applications/${name}, or delete conf/${name}`,
      ),
    );
  if (!settings.ok)
    checks.push(error('unreadable_configuration', `${file} ${settings.problem.description}`, todo));
  else {
    const hls = checkHlsSettings(settings.value, streamerDefaults.ok ? streamerDefaults.value : []);
    checks.push(...hls);
    if (!streamerDefaults.ok && hls.some(({ severity }) => severity === 'error')) {
      const message = `conf/HTTPStreamers.xml ${streamerDefaults.problem.description}, so its defaults are not checked`;
      checks.push(warning('unreadable_defaults', message, 'make it readable, or run this as root'));
    }
    checks.push(...checkStreaming(settings.value));
    const folder = keyDir.ok ? folders.find(({ section }) => section.subject === keyDir.value) : undefined;
    if (folder && needsCmafLines(settings.value)) checks.push(checkCmafLines(folder.keyFiles));
    checks.push(keyDirFinding(keyDir, settings.value.keyDir));
  }
  const inherited =
    file === `conf/${name}/Application.xml` ? '' : ', which it shares: it has none of its own';
  return { kind: 'application', subject: name, note: `${file}${inherited}`, checks };
}

function keyDirFinding(keyDir: Checked<string>, text: string | undefined): Check {
  const isDefault = text === undefined ? ' (the default: no KeyDir)' : '';
  if (keyDir.ok) return ok('key_dir', `Key files are read from ${keyDir.value}${isDefault}`);
  const todo = 'change Root/Application/Streams/KeyDir to';
  const xml = `<KeyDir>${DEFAULT_KEY_DIR}</KeyDir>`;
  return error('key_dir', `KeyDir ${keyDir.problem.description}`, todo, { xml });
}

type JudgedFolder = Awaited<ReturnType<typeof judgeFolder>>;

async function judgeFolder(
  path: string,
  readers: readonly ApplicationFile[],
  sidecar: SidecarState,
  user: PackagerUser,
) {
  const note = `the key folder of ${someOf(readers.map(({ name }) => name))}`;
  const head = { kind: 'key_folder', subject: path, note } as const;
  const disk = await readKeyFolder(path);
  if ('problem' in disk) {
    const checks = [error('key_folder', `The key folder ${disk.problem.description}`, disk.todo)];
    return { section: { ...head, checks }, keyFiles: [], streams: [], hasJoinedFleet: false };
  }
  const { realPath, rights, hasJoinedFleet } = disk;
  const named = await readNamedStreams(readers.flatMap(({ contentFolders }) => contentFolders));
  const entries = disk.entries.flatMap((entry) => {
    const id = keyFileIdOf(entry);
    return id === undefined ? [] : [{ ...entry, id }];
  });
  const ids = entries.map(({ id }) => id);
  const files = entries.filter(({ kind }) => kind === 'file');
  const { check, prefix } = compareFolders(disk, files, sidecar);
  // For a file that the doctor may not read, the sidecar's list is used.
  const listed = new Map(prefix === undefined ? [] : sidecar.listed?.map((file) => [file.streamid, file]));
  const keyFiles = files.map(({ id, summary, keys }) =>
    summary ? { id, summary, keys } : fromListing(id, listed.get(`${prefix}${id}`)),
  );
  const [groups, streams] = [groupNames(named), streamNames(named)];
  const ofStreams = keyFiles.filter(({ id }) => !isGroupName(id, groups, streams));
  const guarded = files.map((file) => ({ ...file, path: join(realPath, file.path) }));
  const checks = [
    check,
    ...checkAccess(user.identity, realPath, rights, guarded),
    ...checkKeyFiles(ofStreams),
    ...checkNamedStreams(named, new Set(ids)),
    ...named.unread.map(({ what, todo }) =>
      warning('unreadable_smil', what, `${todo}: its streams are not checked`),
    ),
    ...checkNames(disk.entries, groups, streams),
  ];
  return {
    section: { ...head, checks },
    keyFiles,
    /** The streams that have a key file, by its path below the folder, and by their stream id if that is known. */
    streams: ids.flatMap((id) => [id, `${prefix ?? ''}${id}`]),
    hasJoinedFleet,
  };
}

/** A key file as the sidecar knows it. Its clashes are reported with those of the others, not as its own faults. */
function fromListing(id: string, listed: ListedKeyFile | undefined): CheckedKeyFile {
  if (!listed) return { id };
  const { parts, faults } = listed;
  return {
    id,
    summary: { parts, faults: faults.filter(({ code }) => !CLASH_CODES.has(code)) },
    reported: faults.map(({ code }) => code).filter((code) => CLASH_CODES.has(code)),
  };
}
