import { join, resolve } from 'node:path';
import { parseStreamId } from '../../api/stream-id';
import type { Checked } from '../../drm/bytes';
import { sentenceOf } from '../../drm/finding';
import { EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readStreamIds } from '../manifest/read-manifest';
import { diagnose, type Examined, type ExaminedFolder } from './diagnose';
import {
  type ApplicationFile,
  DEFAULT_KEY_DIR,
  DEFAULT_STORAGE_DIR,
  readNamedStreams,
  readPackager,
  resolvePath,
} from './installation';
import { readKeyFolder } from './key-folder';
import { renderReport, reportDocument, reportRows, summaryOf } from './report';
import { findPackagerUser, identityOf, type Machine, type PackagerUser, THIS_MACHINE } from './rights';
import { type AskedSidecar, askSidecar } from './sidecar';

export interface DoctorOptions {
  readonly packager: string;
  readonly application?: readonly string[];
  readonly streams?: readonly string[];
  readonly manifest?: string;
  readonly lineup?: string;
  readonly user?: string;
  readonly csv?: boolean;
}

/** `doctor`: checks a packager's installation against the sidecar, and says what to change where. */
export async function doctor(
  context: CliContext,
  options: DoctorOptions,
  machine = THIS_MACHINE,
): Promise<void> {
  const { out } = context;
  const manifest = options.manifest ?? options.lineup;
  if (options.csv && out.json) throw usageError('Give --csv or --json, not both.');
  checkNames(options);
  const given = [
    ...(options.streams ?? []),
    ...(manifest === undefined ? [] : readStreamIds(context, manifest)),
  ];
  const examined = await examine({
    packager: resolve(context.cwd, options.packager),
    applications: options.application,
    user: options.user,
    given,
    sidecar: () => context.sidecar(),
    machine,
  });
  const sections = diagnose(examined);
  if (out.json) out.document(reportDocument(examined, sections));
  else if (options.csv) out.write(reportRows(sections));
  else out.write(renderReport(examined, sections, out));
  if (summaryOf(sections).faults > 0) context.endWith(EXIT.failed);
}

/** A malformed stream id would be reported as missing. */
function checkNames({ application, streams }: DoctorOptions): void {
  if (application?.length === 0) throw usageError('--application names none.');
  if (streams?.length === 0) throw usageError('--streams names none.');
  for (const name of streams ?? []) {
    const parsed = parseStreamId(name);
    if (!parsed.ok) throw usageError(`--streams ${name}: ${sentenceOf(parsed.problem)}`);
  }
}

interface Examination {
  readonly packager: string;
  /** Names of applications; all when undefined. */
  readonly applications: readonly string[] | undefined;
  readonly user: string | undefined;
  readonly given: readonly string[];
  readonly sidecar: () => AskedSidecar;
  readonly machine: Machine;
}

/**
 * Reads the packager's installation, asks the sidecar, and writes nothing.
 * @throws CliError when the folder is no installation, or an application or user that is named isn't there.
 */
async function examine(examination: Examination): Promise<Examined> {
  const { packager, given } = examination;
  const files = await readPackager(packager);
  if ('problem' in files) {
    const conf = join(packager, 'conf');
    throw usageError(
      files.isAbsent
        ? `${packager} is not a packager's installation: it has no conf folder.`
        : `${conf} ${files.problem.description}: ${files.todo}.`,
    );
  }
  const applications = chosen(files.applications, examination).map((application) => ({
    ...application,
    keyDir: keyDirOf(application, packager),
  }));
  const user = await userOf(examination);
  const state = await askSidecar(examination.sidecar);
  const paths = [...new Set(applications.flatMap(({ keyDir }) => (keyDir?.ok ? [keyDir.value] : [])))];
  const keyFolders: ExaminedFolder[] = [];
  for (const path of paths) {
    const readers = applications.filter(({ keyDir }) => keyDir?.ok && keyDir.value === path);
    const disk = await readKeyFolder(path);
    const named = await readNamedStreams(readers.flatMap((reader) => contentFolders(reader, packager)));
    keyFolders.push({ path, applications: readers.map(({ name }) => name), disk, named });
  }
  const { streamerDefaults } = files;
  return {
    packager,
    applications,
    streamerDefaults,
    keyFolders,
    sidecar: state,
    user,
    given,
  };
}

function chosen(
  all: readonly ApplicationFile[],
  { applications, packager }: Examination,
): readonly ApplicationFile[] {
  if (all.length === 0)
    throw usageError(`${packager} has no application: no conf/<application>/Application.xml.`);
  const unknown = applications?.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined) {
    const names = all.map(({ name }) => name).join(', ');
    throw usageError(`${packager} has no application ${unknown}. It has: ${names}.`);
  }
  return all.filter(({ name }) => applications?.includes(name) ?? true);
}

async function userOf({ user, packager, machine }: Examination): Promise<PackagerUser | undefined> {
  if (user === undefined) return findPackagerUser(packager, machine);
  const identity = await identityOf(machine, user);
  if (!identity) throw usageError(`This machine has no user ${user}.`);
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
