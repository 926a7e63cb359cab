import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { count, shellWord } from '../output';
import { type Accounts, parseAccounts } from './accounts';
import { type Finding, fault, ok, someOf } from './finding';

/** Who the packager runs as. */
export interface Identity {
  readonly name: string;
  readonly uid: number;
  /** The main group and all others. */
  readonly gids: readonly number[];
}

/** The rights of a file or folder, as `stat` tells them. */
export interface Rights {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** The names behind the numbers. */
export interface Names {
  user(uid: number): string;
  group(gid: number): string;
}

const READ = 4;
const ENTER = 1;

/** Whether a user has a right, by the mode alone: what an access-control list adds or takes is not seen. */
export function may({ uid, gids }: Identity, rights: Rights, right: number): boolean {
  if (uid === 0) return true;
  if (uid === rights.uid) return ((rights.mode >> 6) & right) === right;
  if (gids.includes(rights.gid)) return ((rights.mode >> 3) & right) === right;
  return (rights.mode & right) === right;
}

/** A key folder and what lies on the way to its files. */
export interface GuardedFolder {
  readonly path: string;
  /** The folder itself, its sub-folders, and all folders above. */
  readonly folders: readonly Rights[];
  readonly files: readonly Rights[];
}

/** Checks that the packager's user can open the key files: all that is closed to it, with what opens it. */
export function checkAccess(identity: Identity, guarded: GuardedFolder, names: Names): Finding[] {
  const { path, folders, files } = guarded;
  const isAbove = (folder: Rights) => relative(path, folder.path).split('/')[0] === '..';
  const closed = folders.filter((folder) => !may(identity, folder, ENTER));
  const findings = closed.filter(isAbove).map((folder) => closedAbove(identity, folder, names));
  const inside = closed.filter((folder) => !isAbove(folder));
  const unreadable = files.filter((file) => !may(identity, file, READ));
  const opened = openedBy(identity, path, names);
  const list = (rights: readonly Rights[]) =>
    someOf(rights.map((one) => shownRights({ ...one, path: relative(path, one.path) || one.path }, names)));
  if (inside.length > 0) {
    const [todo, command] = unreadable.length > 0 ? ['the next line mends this, too'] : opened;
    findings.push(told('folder_closed', `${identity.name} may not enter ${list(inside)}`, todo, command));
  }
  if (unreadable.length > 0) {
    const message = `${identity.name} may not read ${unreadable.length} of ${files.length} key files: ${list(unreadable)}`;
    findings.push(told('file_unreadable', message, ...opened));
  }
  if (findings.length > 0) return findings;
  const read =
    files.length === 0
      ? '; there is no key file to read yet'
      : ` and read ${count(files.length, 'key file')}`;
  return [ok('access', `${identity.name} may enter the folder${read}`)];
}

type Todo = readonly [todo: string, command?: string];

function told(code: string, message: string, ...[todo, command]: Todo): Finding {
  return { ...fault(code, message, todo), ...(command !== undefined && { command }) };
}

/** What opens a key folder with all below, and keeps it open for files that come: its folders hand their group on. */
function openedBy(identity: Identity, folder: string, names: Names): Todo {
  if (identity.gids[0] === undefined) return groupsUnknown(identity);
  const [path, group] = [folder, names.group(identity.gids[0])].map(shellWord);
  return [
    'run as root (new files get the group, too; keep PACKAGERDRMAPI_KEYFILEMODE at 0640)',
    `find ${path} -type d -exec chgrp ${group} {} + -exec chmod ug+x,g+s {} + && find ${path} -type f -name '*.key' -exec chgrp ${group} {} + -exec chmod ug+r {} +`,
  ];
}

function closedAbove(identity: Identity, folder: Rights, names: Names): Finding {
  const message = `${identity.name} may not enter ${shownRights(folder, names)}`;
  const path = shellWord(folder.path);
  if (identity.uid === folder.uid) return told('folder_closed', message, 'run as root', `chmod u+x ${path}`);
  const [group] = identity.gids;
  if (group === undefined) return told('folder_closed', message, ...groupsUnknown(identity));
  const change = identity.gids.includes(folder.gid)
    ? ''
    : `chgrp ${shellWord(names.group(group))} ${path} && `;
  return told('folder_closed', message, 'run as root', `${change}chmod g+x ${path}`);
}

function groupsUnknown({ name }: Identity): Todo {
  return [
    `no account of this machine says which groups ${name} has: start the packager and leave --user out, or let --user name an account`,
  ];
}

function shownRights({ path, mode, uid, gid }: Rights, names: Names): string {
  return `${path} (${(mode & 0o7777).toString(8).padStart(4, '0')} ${names.user(uid)}:${names.group(gid)})`;
}

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
