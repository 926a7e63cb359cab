import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Identity } from './access-rights';
import { type Accounts, parseAccounts } from './accounts';

/** Where a machine keeps its accounts and processes. */
export interface MachinePaths {
  readonly passwd: string;
  readonly group: string;
  readonly proc: string;
}

/** Who the packager runs as, and what says so. */
export interface PackagerUser {
  readonly identity: Identity;
  readonly because: string;
}

/** The mark of the packager's Java process on its command line. */
const PROCESS_MARK = 'com.wowza';

export async function readAccounts({ passwd, group }: MachinePaths): Promise<Accounts> {
  const [users, groups] = await Promise.all([textOf(passwd), textOf(group)]);
  return parseAccounts(users ?? '', groups ?? '');
}

/** Finds whom the packager runs as: by its process, or else by the owner of its programs. */
export async function findPackagerUser(
  packager: string,
  accounts: Accounts,
  { proc }: MachinePaths,
): Promise<PackagerUser | undefined> {
  const running = await findProcess(proc, accounts);
  if (running) return running;
  for (const folder of ['bin', 'conf']) {
    const path = join(packager, folder);
    const stats = await stat(path).catch(() => undefined);
    if (stats)
      return {
        identity: accounts.identity(stats.uid),
        because: `assumed: it owns ${path}, and no packager is running here`,
      };
  }
  return undefined;
}

async function findProcess(proc: string, accounts: Accounts): Promise<PackagerUser | undefined> {
  const ids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const id of ids) {
    const command = await textOf(join(proc, id, 'cmdline'));
    if (!command?.includes(PROCESS_MARK) || !/(?:^|\/)java$/.test(command.split('\0')[0] ?? '')) continue;
    const status = await textOf(join(proc, id, 'status'));
    const effective = (name: string) => status?.match(new RegExp(`^${name}:\\s+\\d+\\s+(\\d+)`, 'm'))?.[1];
    const [uid, gid] = [effective('Uid'), effective('Gid')];
    if (uid === undefined || gid === undefined) continue;
    const more = status?.match(/^Groups:[ \t]*([\d ]*)$/m)?.[1] ?? '';
    const gids = [gid, ...more.split(' ').filter((one) => one !== '')].map(Number);
    const { name } = accounts.identity(Number(uid));
    return { identity: { name, uid: Number(uid), gids }, because: `process ${id} runs as it` };
  }
  return undefined;
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
