import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import { listPages } from '../list-pages';
import type { SidecarApi } from '../sidecar-api';
import type { ListedKeyFile } from '../sidecar-wire';

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
