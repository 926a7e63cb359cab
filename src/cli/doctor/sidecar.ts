import { relative } from 'node:path';
import type { FolderIdentity } from '../../api/answers';
import type { ListedKeyFile } from '../../api/list';
import type { Problem } from '../../http/errors';
import { count } from '../../terminal/text';
import { CliError, EXIT } from '../cli-error';
import type { SidecarApi } from '../client';
import { listPages } from '../list-pages';
import { type Finding, fault, ok, someOf, warning } from './finding';
import type { FleetSaid } from './fleet';

/** What the doctor asks of a sidecar. */
export type AskedSidecar = Pick<SidecarApi, 'address' | 'list' | 'ready'> & {
  readonly fleet: Pick<SidecarApi['fleet'], 'status'>;
};

/** What a sidecar said of itself. */
export interface SidecarState {
  readonly address: string | undefined;
  /** Why it isn't ready to write; none when it is, undefined when it could not be asked. */
  readonly notReady: readonly Problem[] | undefined;
  /** The folder that it writes in; undefined when it didn't say. */
  readonly folder: FolderIdentity | undefined;
  /** All key files that it lists. */
  readonly listed: readonly ListedKeyFile[] | undefined;
  /** undefined: it was not asked. */
  readonly fleet: FleetSaid | undefined;
  /** Why it could not be asked. */
  readonly problems: readonly Problem[];
}

/** They are all kept in memory, unlike those of a list. */
const MAX_FILES = 2_000_000;

/** Asks a sidecar whether it is ready, and for all its key files. `find` may throw when none is named. */
export async function askSidecar(find: () => AskedSidecar): Promise<SidecarState> {
  let state: SidecarState = {
    address: undefined,
    notReady: undefined,
    folder: undefined,
    listed: undefined,
    fleet: undefined,
    problems: [],
  };
  try {
    const sidecar = find();
    state = { ...state, address: sidecar.address };
    state = { ...state, ...(await readiness(sidecar)) };
    state = { ...state, listed: await listAll(sidecar) };
    return { ...state, fleet: await askFleet(sidecar) };
  } catch (thrown) {
    if (!(thrown instanceof CliError) || thrown.exitCode === EXIT.interrupted) throw thrown;
    return { ...state, problems: thrown.problems };
  }
}

async function readiness(sidecar: AskedSidecar): Promise<Pick<SidecarState, 'notReady' | 'folder'>> {
  try {
    return { notReady: [], folder: await sidecar.ready() };
  } catch (thrown) {
    if (thrown instanceof CliError && thrown.exitCode === EXIT.failed)
      return { notReady: thrown.problems, folder: undefined };
    throw thrown;
  }
}

/** A sidecar of a former version knows of no fleet. */
const NO_FLEET: ReadonlySet<string> = new Set(['fleet_not_configured', 'not_a_sidecar']);

async function askFleet({ fleet }: AskedSidecar): Promise<FleetSaid> {
  try {
    return { answer: await fleet.status(), problems: [] };
  } catch (thrown) {
    if (!(thrown instanceof CliError) || thrown.exitCode === EXIT.interrupted) throw thrown;
    return { answer: undefined, problems: thrown.problems.filter(({ code }) => !NO_FLEET.has(code)) };
  }
}

async function listAll(sidecar: AskedSidecar): Promise<ListedKeyFile[]> {
  const all: ListedKeyFile[] = [];
  for await (const { keyfiles } of listPages(sidecar, { most: MAX_FILES })) all.push(...keyfiles);
  return all;
}

/** What to do about a sidecar that can't be asked, by the code of the problem. */
const TODOS: Readonly<Record<string, string>> = {
  usage: 'name the sidecar and its key as the sentence says',
  sidecar_unreachable: 'start the sidecar, or correct what the sentence names',
  not_a_sidecar: 'correct the address by --url or PACKAGERDRM_URL, or the proxy in front of the sidecar',
  unauthorized: 'give an API key of this sidecar by --key-file or PACKAGERDRM_APIKEY',
  forbidden: 'give an API key that may list key files, by --key-file or PACKAGERDRM_APIKEY',
  too_many_attempts: 'wait as long as the sentence says, give the right API key',
};

/** Checks that the sidecar can be asked, is ready to write. */
export function checkSidecar({ notReady, listed, problems }: SidecarState): Finding[] {
  const findings: Finding[] = problems.map(({ code, description }) =>
    fault(
      code.startsWith('sidecar_') ? code : `sidecar_${code}`,
      description,
      `${TODOS[code] ?? 'look into it'}, and run this again; the packager’s part is checked nevertheless`,
    ),
  );
  if (notReady?.length === 0) findings.push(ok('sidecar_ready', 'The sidecar is ready to write key files'));
  for (const { code, description } of notReady ?? []) {
    findings.push(
      fault(
        'sidecar_not_ready',
        `The sidecar is not ready (${code}): ${description}`,
        'correct this first: no key file is written',
      ),
    );
  }
  if (listed) findings.push(ok('sidecar_list', `It lists ${count(listed.length, 'key file')}`));
  return findings;
}

/** A key file as the disk has it; its id is its path below the key folder, without `.key`. */
interface FileOnDisk {
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
}

interface FolderEvidence {
  /** The key folder of the packager, without links. */
  readonly folder: string;
  /** This one, those above it and those below. */
  readonly places: readonly FolderPlace[];
  readonly files: readonly FileOnDisk[];
}

/** A folder of this machine. */
export interface FolderPlace extends FolderIdentity {
  readonly path: string;
}

interface FolderVerdict {
  readonly finding: Finding;
  /** What stands before a stream's name in its stream id, as `live/`; undefined when the folders aren't known to be one. */
  readonly prefix: string | undefined;
}

/**
 * Whether the packager's key folder is the one that the sidecar writes in: a folder has one device and inode, by
 * whatever path. On another host, or through a mount of another kind, it may have others.
 */
export function compareFolders(evidence: FolderEvidence, sidecar: SidecarState): FolderVerdict {
  const { folder, places } = evidence;
  const { folder: written, notReady } = sidecar;
  if (!written) {
    const isSilent = notReady?.length === 0;
    return unproven(
      warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known${isSilent ? ': it does not say where it writes' : ''}`,
        isSilent
          ? 'bring the sidecar up to date, and run this again'
          : 'let the sidecar answer, and run this again',
      ),
    );
  }
  const place = places.find(({ device, inode }) => device === written.device && inode === written.inode);
  if (!place) return unproven(elsewhere(evidence, written, sidecar));
  const prefix = relative(place.path, folder);
  if (prefix.startsWith('..')) {
    return unproven(
      fault(
        'sidecar_below',
        `The sidecar writes in ${place.path}, and the packager reads the folder above it`,
        'set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write',
        `<KeyDir>${place.path}</KeyDir>`,
      ),
    );
  }
  return proven(evidence, sidecar, prefix === '' ? '' : `${prefix}/`);
}

/** What it means that no folder here is the one that the sidecar writes in. */
function elsewhere(
  { folder, places }: FolderEvidence,
  written: FolderIdentity,
  { address = '' }: SidecarState,
): Finding {
  const here = places.find(({ path }) => path === folder);
  const isOtherMount = here?.inode === written.inode;
  if (isOtherMount || !isThisMachine(address)) {
    const why = isOtherMount
      ? 'it writes in a folder of the same inode on another device, as this one has through another mount (in a container, or over the network)'
      : 'its folder is none of this machine, or is seen through another mount (in a container, or over the network)';
    return warning(
      'same_folder_unknown',
      `Whether the sidecar writes here can’t be known from here: ${why}`,
      'run this on the sidecar’s host, or provision one stream: its key file must appear here',
    );
  }
  return fault(
    'other_folder',
    `The sidecar writes in another folder: device ${written.device}, inode ${written.inode}; this one is device ${here?.device}, inode ${here?.inode}`,
    'set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar’s',
    '<KeyDir>/the/folder/of/the/sidecar</KeyDir>',
  );
}

/** Whether an address leads to this machine whatever its network is; a container's port may be behind it. */
function isThisMachine(address: string): boolean {
  const host = URL.canParse(address) ? new URL(address).hostname : '';
  return host === 'localhost' || host === '[::1]' || /^127\./.test(host);
}

function proven({ files }: FolderEvidence, { listed = [] }: SidecarState, prefix: string): FolderVerdict {
  const ids = prefix === '' ? '' : `; stream ids begin with ${prefix}`;
  const same = `This is the sidecar’s folder, by device and inode${ids}`;
  const { agree, differ } = agreement(files, listed, prefix);
  if (differ.length > 0) {
    // The numbers may be the same by chance on a machine that is a copy of another.
    return {
      prefix,
      finding: warning(
        'lists_differ',
        `${same}. But its list and the folder differ on ${someOf(differ)}`,
        'run this again; if it stays so, a second folder is mounted over one of the two, or the sidecar is on another host',
      ),
    };
  }
  const agreed = agree > 0 ? `${same}, and the list agrees (${count(agree, 'key file')})` : same;
  return { prefix, finding: ok('same_folder', agreed) };
}

function unproven(finding: Finding): FolderVerdict {
  return { prefix: undefined, finding };
}

function agreement(files: readonly FileOnDisk[], listed: readonly ListedKeyFile[], prefix: string) {
  const onDisk = new Map(files.map((file) => [file.id, file]));
  const differ: string[] = [];
  let agree = 0;
  for (const { streamid, size, modified } of listed) {
    if (!streamid.startsWith(prefix)) continue;
    const file = onDisk.get(streamid.slice(prefix.length));
    if (file && file.size === size && isSameTime(file.mtimeMs, modified)) agree += 1;
    else differ.push(streamid);
  }
  return { agree, differ };
}

function isSameTime(mtimeMs: number, modified: string): boolean {
  return Math.abs(mtimeMs - Date.parse(modified)) <= (modified.includes('.') ? 1 : 1000);
}
