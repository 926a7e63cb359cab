import { relative } from 'node:path';
import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import { type ListedKeyFile, listPages, type SidecarApi } from '../client';
import { count } from '../output';
import { type Finding, fault, ok, someOf, warning } from './finding';

/** What the doctor asks of a sidecar. */
export type AskedSidecar = Pick<SidecarApi, 'address' | 'list' | 'ready'>;

/** What a sidecar said of itself. */
export interface SidecarState {
  readonly address: string | undefined;
  /** Why it isn't ready to write; none when it is, undefined when it could not be asked. */
  readonly notReady: readonly Problem[] | undefined;
  /** All key files that it lists. */
  readonly listed: readonly ListedKeyFile[] | undefined;
  /** Why it could not be asked. */
  readonly problems: readonly Problem[];
}

/** They are all kept in memory, unlike those of a list. */
const MAX_FILES = 2_000_000;

/** Asks a sidecar whether it is ready, and for all its key files. `find` may throw when none is named. */
export async function askSidecar(find: () => AskedSidecar): Promise<SidecarState> {
  let state: SidecarState = { address: undefined, notReady: undefined, listed: undefined, problems: [] };
  try {
    const sidecar = find();
    state = { ...state, address: sidecar.address };
    state = { ...state, notReady: await readiness(sidecar) };
    return { ...state, listed: await listAll(sidecar) };
  } catch (thrown) {
    if (!(thrown instanceof CliError) || thrown.exitCode === EXIT.interrupted) throw thrown;
    return { ...state, problems: thrown.problems };
  }
}

async function readiness(sidecar: AskedSidecar): Promise<readonly Problem[]> {
  try {
    await sidecar.ready();
    return [];
  } catch (thrown) {
    if (thrown instanceof CliError && thrown.exitCode === EXIT.failed) return thrown.problems;
    throw thrown;
  }
}

async function listAll(sidecar: AskedSidecar): Promise<ListedKeyFile[]> {
  const all: ListedKeyFile[] = [];
  for await (const { keyfiles } of listPages(sidecar, { most: MAX_FILES })) all.push(...keyfiles);
  return all;
}

/** What mends the way to a sidecar, by the code of the problem. */
const TODOS: Readonly<Record<string, string>> = {
  usage: 'name the sidecar and its key as the sentence says',
  sidecar_unreachable: 'start the sidecar, or correct what the sentence names',
  not_a_sidecar:
    'correct the address by --url or PACKAGERDRM_URL, or the proxy that stands before the sidecar',
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
      `${TODOS[code] ?? 'look into it'}, and run this again; the packager’s part is checked all the same`,
    ),
  );
  if (notReady?.length === 0) findings.push(ok('sidecar_ready', 'The sidecar is ready to write key files'));
  for (const { code, description } of notReady ?? []) {
    findings.push(
      fault(
        'sidecar_not_ready',
        `The sidecar is not ready (${code}): ${description}`,
        'mend this first: no key file is written',
      ),
    );
  }
  if (listed) findings.push(ok('sidecar_list', `It lists ${count(listed.length, 'key file')}`));
  return findings;
}

/** A key file as the disk has it; its id is its path below the key folder, without `.key`. */
export interface FileOnDisk {
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** A key file as the sidecar lists it. */
export interface ListedFile {
  readonly streamid: string;
  readonly size: number;
  /** ISO 8601. */
  readonly modified: string;
}

export interface FolderEvidence {
  /** The key folder of the packager. */
  readonly folder: string;
  readonly files: readonly FileOnDisk[];
  /** What the sidecar lists; undefined when it gave no list. */
  readonly listed: readonly ListedFile[] | undefined;
  /**
   * The folder, among this one, those above and those below, that changed each time the sidecar was asked whether it
   * could write. `none`: it said yes and none of them changed. `unknown`: it didn't say yes.
   */
  readonly probed: { readonly path: string } | 'none' | 'unknown';
}

export interface FolderVerdict {
  readonly finding: Finding;
  /** What stands before a stream's name in its stream id, as `live/`; undefined when the folders aren't known to be one. */
  readonly prefix: string | undefined;
}

const MAX_PREFIXES = 50;

/** Whether the packager's key folder is the one that the sidecar writes in. */
export function compareFolders(evidence: FolderEvidence): FolderVerdict {
  const { folder, listed, probed } = evidence;
  if (typeof probed === 'object') {
    const prefix = relative(probed.path, folder);
    if (prefix.startsWith('..')) return below(probed.path);
    return proven(evidence, prefix === '' ? '' : `${prefix}/`);
  }
  const untraced = probed === 'none' ? '; what it writes to check its readiness does not show here' : '';
  if (!listed) {
    return unproven(
      warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known${untraced}`,
        'let the sidecar answer with its list, and run this again',
      ),
    );
  }
  const best = bestPrefix(evidence, listed);
  if (best.agree > 0) return byList(evidence, best);
  if (listed.length === 0 && evidence.files.length === 0) {
    return unproven(
      warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known: neither has a key file yet${untraced}`,
        'provision one stream, and run this again',
      ),
    );
  }
  const restricted = listed.length === 0 ? ' (or the API key may see none of them)' : '';
  return unproven(
    fault(
      'other_folder',
      `The sidecar writes in another folder: it lists ${count(listed.length, 'key file')}, none of which is here${restricted}`,
      'set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar’s',
      '<KeyDir>/the/folder/of/the/sidecar</KeyDir>',
    ),
  );
}

function proven({ files, listed }: FolderEvidence, prefix: string): FolderVerdict {
  const ids = prefix === '' ? '' : `; stream ids begin with ${prefix}`;
  const seen = `This is the sidecar’s folder: the trace of its readiness check shows here${ids}`;
  const { agree, differ } = agreement(files, listed ?? [], prefix);
  if (differ.length > 0) {
    return {
      prefix,
      finding: warning(
        'lists_differ',
        `${seen}. But its list and the folder differ on ${someOf(differ)}`,
        'run this again; if it stays so, a second folder is mounted over one of the two',
      ),
    };
  }
  return {
    prefix,
    finding: ok(
      'same_folder',
      agree > 0 ? `${seen}, and the list agrees (${count(agree, 'key file')})` : seen,
    ),
  };
}

function byList(
  { files, listed, probed }: FolderEvidence,
  { prefix, agree }: { readonly prefix: string; readonly agree: number },
): FolderVerdict {
  const { differ } = agreement(files, listed ?? [], prefix);
  const same = `${count(agree, 'key file')} here and of the sidecar agree in name, size and time`;
  if (probed === 'none') {
    return unproven(
      warning(
        'perhaps_a_copy',
        `${same}, but what the sidecar writes does not show here: a copy, or a network folder that shows changes late`,
        'provision one stream, and run this again: the new file must be here',
      ),
    );
  }
  if (differ.length > 0) {
    return unproven(
      warning(
        'lists_differ',
        `${same}, but not ${someOf(differ)}`,
        'run this again; if it stays so, one is a copy',
      ),
    );
  }
  return { prefix, finding: ok('same_folder', same) };
}

function below(path: string): FolderVerdict {
  return unproven(
    fault(
      'sidecar_below',
      `The sidecar writes in ${path}, and the packager reads the folder above it`,
      'set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write',
      `<KeyDir>${path}</KeyDir>`,
    ),
  );
}

function unproven(finding: Finding): FolderVerdict {
  return { prefix: undefined, finding };
}

function bestPrefix(
  { files }: FolderEvidence,
  listed: readonly ListedFile[],
): { prefix: string; agree: number } {
  const folders = listed.map(({ streamid }) => streamid.slice(0, streamid.lastIndexOf('/') + 1));
  const candidates = [...new Set(['', ...folders])].slice(0, MAX_PREFIXES);
  return candidates
    .map((prefix) => ({ prefix, agree: agreement(files, listed, prefix).agree }))
    .reduce((best, next) => (next.agree > best.agree ? next : best));
}

function agreement(files: readonly FileOnDisk[], listed: readonly ListedFile[], prefix: string) {
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
