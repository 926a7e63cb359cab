import { relative } from 'node:path';
import type { FolderIdentity, ListedKeyFile } from '../../api/answers';
import type { Problem } from '../../http/errors';
import { count } from '../../terminal/text';
import { answerOrError, CliError, EXIT } from '../cli-error';
import { listPages, type SidecarApi } from '../client';
import { type Check, error, ok, someOf, warning } from './finding';
import type { FleetStatus } from './fleet';
import type { FolderEntry, KeyFolder } from './key-folder';

export type AskedSidecar = Pick<SidecarApi, 'address' | 'list' | 'ready'> & {
  readonly fleet: Pick<SidecarApi['fleet'], 'status'>;
};

export interface SidecarState {
  address?: string;
  /** Why it isn't ready to write; none when it is, undefined when it could not be asked. */
  notReady?: readonly Problem[];
  /** The folder that it writes in; undefined when it didn't say. */
  folder?: FolderIdentity | undefined;
  warnings: readonly Problem[];
  listed?: readonly ListedKeyFile[];
  /** undefined: it was not asked. */
  fleet?: FleetStatus;
  /** Why it could not be asked. */
  problems: readonly Problem[];
}

/** `find` may throw when no sidecar is named. */
export async function askSidecar(find: () => AskedSidecar): Promise<Readonly<SidecarState>> {
  const state: SidecarState = { warnings: [], problems: [] };
  try {
    const sidecar = find();
    state.address = sidecar.address;
    const ready = await answerOrError(sidecar.ready());
    if (ready instanceof CliError) {
      if (ready.exitCode !== EXIT.failed) throw ready;
      state.notReady = ready.problems;
    } else {
      state.notReady = [];
      state.folder = ready.folder;
      state.warnings = ready.warnings ?? [];
    }
    const listed: ListedKeyFile[] = [];
    for await (const { keyfiles } of listPages(sidecar)) listed.push(...keyfiles);
    state.listed = listed;
    const fleet = await answerOrError(sidecar.fleet.status());
    if (!(fleet instanceof CliError)) state.fleet = { answer: fleet, problems: [] };
    else if (fleet.exitCode === EXIT.interrupted) throw fleet;
    else state.fleet = { problems: fleet.problems.filter(({ code }) => !NO_FLEET.has(code)) };
  } catch (thrown) {
    if (!(thrown instanceof CliError) || thrown.exitCode === EXIT.interrupted) throw thrown;
    state.problems = thrown.problems;
  }
  return state;
}

/** The codes of a sidecar without a fleet; a former version knows of none. */
const NO_FLEET: ReadonlySet<string> = new Set(['fleet_not_configured', 'not_a_sidecar']);

const TODOS: Readonly<Record<string, string>> = {
  usage: 'give the address and the API key of the sidecar',
  sidecar_unreachable: 'start the sidecar, or correct its address',
  not_a_sidecar: 'correct the address with --url or PACKAGERDRM_URL, or the proxy in front of the sidecar',
  unauthorized: 'give an API key of this sidecar with --key-file or PACKAGERDRM_APIKEY',
  forbidden: 'give an API key that may list key files, with --key-file or PACKAGERDRM_APIKEY',
  too_many_attempts: 'wait, give the right API key',
};

export function checkSidecar({ notReady, listed, problems, warnings }: SidecarState): Check[] {
  return [
    ...problems.map(({ code, description }) =>
      error(
        code.startsWith('sidecar_') ? code : `sidecar_${code}`,
        description,
        `${TODOS[code] ?? 'correct this'}, and run this again; the packager's part is checked anyway`,
      ),
    ),
    ...(notReady?.length === 0 ? [ok('sidecar_ready', 'The sidecar is ready to write key files')] : []),
    ...(notReady ?? []).map(({ code, description }) =>
      error(
        'sidecar_not_ready',
        `The sidecar is not ready (${code}): ${description}`,
        'correct this first: no key file is written',
      ),
    ),
    ...warnings.map(({ code, description }) =>
      warning(`sidecar_${code}`, description, 'correct this, and restart the sidecar'),
    ),
    ...(listed ? [ok('sidecar_list', `It lists ${count(listed.length, 'key file')}`)] : []),
  ];
}

/**
 * A folder has one device and inode by any path, but may have others on another host, or through a mount of
 * another kind. `prefix` is that of the stream ids, as `live/`; undefined when the folders may not be one.
 */
export function compareFolders(
  disk: Pick<KeyFolder, 'realPath' | 'places'>,
  files: readonly (Pick<FolderEntry, 'size' | 'mtimeMs'> & { readonly id: string })[],
  sidecar: SidecarState,
): { readonly check: Check; readonly prefix?: string } {
  const { realPath: folder, places } = disk;
  const { folder: written, notReady, listed = [] } = sidecar;
  if (!written) {
    const isSilent = notReady?.length === 0;
    return {
      check: warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known${isSilent ? ': it does not say where it writes' : ''}`,
        `${isSilent ? 'bring the sidecar up to date' : 'let the sidecar answer'}, and run this again`,
      ),
    };
  }
  const place = places.find(({ device, inode }) => device === written.device && inode === written.inode);
  if (!place) return { check: elsewhere(disk, written, sidecar) };
  const below = relative(place.path, folder);
  if (below.startsWith('..')) {
    const check = error(
      'sidecar_below',
      `The sidecar writes in ${place.path}, and the packager reads the folder above it`,
      'set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write',
      { xml: `<KeyDir>${place.path}</KeyDir>` },
    );
    return { check };
  }
  const prefix = below === '' ? '' : `${below}/`;
  const ids = prefix === '' ? '' : `; the prefix of the stream ids is ${prefix}`;
  const same = `This is the sidecar's folder, by device and inode${ids}`;
  const onDisk = new Map(files.map((file) => [file.id, file]));
  const here = listed.filter(({ streamid }) => streamid.startsWith(prefix));
  const differ = here.filter((one) => !isSameFile(onDisk.get(one.streamid.slice(prefix.length)), one));
  if (differ.length > 0) {
    // The numbers may be the same by chance on a machine that is a copy of another.
    const check = warning(
      'lists_differ',
      `${same}. But its list and the folder differ on ${someOf(differ.map(({ streamid }) => streamid))}`,
      'run this again; if nothing changes, a second folder is mounted over one of the two, or the sidecar is on another host',
    );
    return { prefix, check };
  }
  const agreed = here.length > 0 ? `${same}, and the list agrees (${count(here.length, 'key file')})` : same;
  return { prefix, check: ok('same_folder', agreed) };
}

function isSameFile(
  file: Pick<FolderEntry, 'size' | 'mtimeMs'> | undefined,
  { size, modified }: ListedKeyFile,
): boolean {
  if (!file || file.size !== size) return false;
  return Math.abs(file.mtimeMs - Date.parse(modified)) <= (modified.includes('.') ? 1 : 1000);
}

function elsewhere(
  { realPath, places }: Pick<KeyFolder, 'realPath' | 'places'>,
  written: FolderIdentity,
  { address = '' }: SidecarState,
): Check {
  const here = places.find(({ path }) => path === realPath);
  const isOtherMount = here?.inode === written.inode;
  if (isOtherMount || !isThisMachine(address)) {
    const why = isOtherMount
      ? 'it writes in a folder of the same inode on another device, as this one has through another mount (in a container, or over the network)'
      : 'its folder is not on this machine, or is seen through another mount (in a container, or over the network)';
    return warning(
      'same_folder_unknown',
      `Whether the sidecar writes here can't be known from here: ${why}`,
      "run this on the sidecar's host, or provision one stream: its key file must appear here",
    );
  }
  return error(
    'other_folder',
    `The sidecar writes in another folder: device ${written.device}, inode ${written.inode}; this one is device ${here?.device}, inode ${here?.inode}`,
    "set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar's",
    { xml: '<KeyDir>/the/folder/of/the/sidecar</KeyDir>' },
  );
}

/** Whether an address is of this machine; a container's port may be behind it. */
function isThisMachine(address: string): boolean {
  const host = URL.canParse(address) ? new URL(address).hostname : '';
  return host === 'localhost' || host === '[::1]' || /^127\./.test(host);
}
