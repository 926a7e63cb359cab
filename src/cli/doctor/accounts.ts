import type { Identity, Names } from './rights';

interface Account {
  readonly name: string;
  readonly id: number;
  /** Of a user: the main group. */
  readonly group: number;
  /** Of a group: its members. */
  readonly members: readonly string[];
}

/** The users and groups of a machine. */
export interface Accounts extends Names {
  /** Who has a name, or a number written in digits; undefined when nobody has it. */
  find(user: string): Identity | undefined;
  identity(uid: number): Identity;
}

/** Reads the texts of `/etc/passwd` and `/etc/group`. */
export function parseAccounts(passwd: string, group: string): Accounts {
  const users = rowsOf(passwd, 4).map(([name = '', , uid, gid]) => account(name, uid, gid));
  const groups = rowsOf(group, 3).map(([name = '', , gid, members = '']) =>
    account(
      name,
      gid,
      gid,
      members.split(',').filter((member) => member !== ''),
    ),
  );
  const identityOf = ({ name, id, group: main }: Account): Identity => ({
    name,
    uid: id,
    gids: [main, ...groups.filter(({ members }) => members.includes(name)).map(({ id: gid }) => gid)],
  });
  const byId = (list: readonly Account[], id: number) => list.find((one) => one.id === id);
  const identity = (uid: number) => {
    const user = byId(users, uid);
    return user ? identityOf(user) : { name: `uid ${uid}`, uid, gids: [] };
  };
  return {
    user: (uid) => byId(users, uid)?.name ?? String(uid),
    group: (gid) => byId(groups, gid)?.name ?? String(gid),
    identity,
    find: (text) => {
      const user = users.find(({ name }) => name === text);
      if (user) return identityOf(user);
      return /^\d{1,10}$/.test(text) ? identity(Number(text)) : undefined;
    },
  };
}

function rowsOf(text: string, least: number): string[][] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((row) => row.length >= least);
}

function account(
  name: string,
  id: string | undefined,
  group: string | undefined,
  members: string[] = [],
): Account {
  return { name, id: Number(id), group: Number(group), members };
}
