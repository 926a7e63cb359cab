import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { count, shellWord } from '../../terminal/text';
import { type Check, error, ok, someOf } from './finding';

export interface Identity {
  readonly name: string;
  readonly uid: number;
  /** The main group and all others. */
  readonly gids: readonly number[];
}

/** The rights of a file or folder, as `stat` gives them. */
export interface Rights {
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

const READ = 4;
const ENTER = 1;

/** Whether a user has a right, by the mode alone: access-control lists are not seen. */
export function hasRight({ uid, gids }: Identity, rights: Rights, right: number): boolean {
  if (uid === 0) return true;
  if (uid === rights.uid) return ((rights.mode >> 6) & right) === right;
  if (gids.includes(rights.gid)) return ((rights.mode >> 3) & right) === right;
  return (rights.mode & right) === right;
}

/** Checks whether the packager's user can open the key folder `path` and its files, and how to open them. */
export function checkAccess(
  identity: Identity,
  path: string,
  folders: readonly Rights[],
  files: readonly Rights[],
): Check[] {
  const isAbove = (folder: Rights) => relative(path, folder.path).split('/')[0] === '..';
  const closedFolders = folders.filter((folder) => !hasRight(identity, folder, ENTER));
  const closed = (code: string, message: string, [todo, command]: Todo) =>
    error(code, `${identity.name} may not ${message}`, todo, { command });
  const findings = closedFolders
    .filter(isAbove)
    .map((folder) =>
      closed('folder_closed', `enter ${shownRights(folder)}`, parentFolderRemedy(identity, folder)),
    );
  const inside = closedFolders.filter((folder) => !isAbove(folder));
  const unreadable = files.filter((file) => !hasRight(identity, file, READ));
  const opened = keyFolderRemedy(identity, path);
  const list = (rights: readonly Rights[]) =>
    someOf(rights.map((one) => shownRights({ ...one, path: relative(path, one.path) || one.path })));
  if (inside.length > 0) {
    const todo: Todo = unreadable.length > 0 ? ['the next line corrects this as well'] : opened;
    findings.push(closed('folder_closed', `enter ${list(inside)}`, todo));
  }
  if (unreadable.length > 0) {
    const message = `read ${unreadable.length} of ${files.length} key files: ${list(unreadable)}`;
    findings.push(closed('file_unreadable', message, opened));
  }
  if (findings.length > 0) return findings;
  const read =
    files.length === 0
      ? '; there is no key file to read yet'
      : ` and read ${count(files.length, 'key file')}`;
  return [ok('access', `${identity.name} may enter the folder${read}`)];
}

type Todo = readonly [todo: string, command?: string];

/** The command that opens a key folder with all below, also for new files: its folders pass their group on. */
function keyFolderRemedy({ name, gids: [group] }: Identity, folder: string): Todo {
  if (group === undefined) return [groupsUnknown(name)];
  const path = shellWord(folder);
  return [
    'run as root (new files get the group, too; keep PACKAGERDRMAPI_KEYFILEMODE at 0640)',
    `find ${path} -type d -exec chgrp ${group} {} + -exec chmod ug+x,g+s {} + && find ${path} -type f -name '*.key' -exec chgrp ${group} {} + -exec chmod ug+r {} +`,
  ];
}

function parentFolderRemedy({ name, uid, gids }: Identity, folder: Rights): Todo {
  const path = shellWord(folder.path);
  if (uid === folder.uid) return ['run as root', `chmod u+x ${path}`];
  const [group] = gids;
  if (group === undefined) return [groupsUnknown(name)];
  const change = gids.includes(folder.gid) ? '' : `chgrp ${group} ${path} && `;
  return ['run as root', `${change}chmod g+x ${path}`];
}

const groupsUnknown = (name: string) =>
  `no account of this machine says which groups ${name} has: start the packager and leave --user out, or let --user name an account`;

function shownRights({ path, mode, uid, gid }: Rights): string {
  return `${path} (${(mode & 0o7777).toString(8).padStart(4, '0')} ${uid}:${gid})`;
}

export interface Machine {
  readonly proc: string;
  /** The user of a name, or of a number in digits; undefined when there is none. */
  readonly findUser: (user: string) => Promise<Identity | undefined>;
}

const run = promisify(execFile);

/** This machine. Accounts come from `id`, which knows those of a directory service, too. */
export const THIS_MACHINE: Machine = {
  proc: '/proc',
  findUser: async (user) => {
    const id = async (option: string) => (await run('id', [option, '--', user])).stdout.trim();
    try {
      const [name, uid, gids] = await Promise.all([id('-un'), id('-u'), id('-G')]);
      return { name, uid: Number(uid), gids: gids.split(' ').map(Number) };
    } catch {
      return undefined;
    }
  },
};

/** The user of a name or number; undefined for a name without an account on this machine. */
export async function identityOf(machine: Machine, user: string): Promise<Identity | undefined> {
  return /^\d{1,10}$/.test(user) ? identityOfUid(machine, Number(user)) : machine.findUser(user);
}

async function identityOfUid({ findUser }: Machine, uid: number): Promise<Identity> {
  return (await findUser(String(uid))) ?? { name: `uid ${uid}`, uid, gids: [] };
}

export interface PackagerUser {
  readonly identity: Identity;
  readonly because: string;
}

/** Finds the packager's user: by its process, or else by the owner of its programs or, without them, of its `conf`. */
export async function findPackagerUser(packager: string, machine: Machine): Promise<PackagerUser> {
  const running = await findProcess(machine);
  if (running) return running;
  const programs = join(packager, 'bin');
  const path = existsSync(programs) ? programs : join(packager, 'conf');
  const identity = await identityOfUid(machine, (await stat(path)).uid);
  return { identity, because: `assumed: it owns ${path}, and no packager is running here` };
}

async function findProcess(machine: Machine): Promise<PackagerUser | undefined> {
  const { proc } = machine;
  const ids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const id of ids) {
    const command = await textOf(join(proc, id, 'cmdline'));
    if (!command?.includes('com.wowza') || !/(?:^|\/)java$/.test(command.split('\0')[0] ?? '')) continue;
    const status = await textOf(join(proc, id, 'status'));
    const effective = (name: string) => status?.match(new RegExp(`^${name}:\\s+\\d+\\s+(\\d+)`, 'm'))?.[1];
    const [uid, gid] = [effective('Uid'), effective('Gid')];
    if (uid === undefined || gid === undefined) continue;
    const more = status?.match(/^Groups:[ \t]*([\d ]*)$/m)?.[1] ?? '';
    const gids = [gid, ...more.split(' ').filter((one) => one !== '')].map(Number);
    const { name } = await identityOfUid(machine, Number(uid));
    return { identity: { name, uid: Number(uid), gids }, because: `process ${id} runs as it` };
  }
  return undefined;
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
