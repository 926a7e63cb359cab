import { basename, dirname } from 'node:path';
import { count } from '../output';
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

/** Checks that the packager's user can open the files: `folders` are the key folder and all above it. */
export function checkAccess(
  identity: Identity,
  folders: readonly Rights[],
  files: readonly Rights[],
  names: Names,
): Finding[] {
  const closed = folders.filter((folder) => !may(identity, folder, ENTER));
  const group = names.group(identity.gids[0] ?? identity.uid);
  if (closed.length > 0) {
    return closed.map((folder) =>
      fault(
        'folder_closed',
        `${identity.name} may not enter ${shownRights(folder, names)}`,
        `chgrp ${group} ${folder.path} && chmod g+x ${folder.path}`,
      ),
    );
  }
  const unreadable = files.filter((file) => !may(identity, file, READ));
  const [first] = unreadable;
  if (first) {
    const folder = dirname(first.path);
    return [
      fault(
        'file_unreadable',
        `${identity.name} may not read ${unreadable.length} of ${files.length} key files: ${someOf(unreadable.map((file) => shownRights({ ...file, path: basename(file.path) }, names)))}`,
        `cd ${folder} && chgrp ${group} . *.key && chmod g+r *.key && chmod g+s . (new files get the group then; keep PACKAGERDRMAPI_KEYFILEMODE at 0640)`,
      ),
    ];
  }
  const read =
    files.length === 0
      ? '; there is no key file to read yet'
      : ` and read ${count(files.length, 'key file')}`;
  return [ok('access', `${identity.name} may enter the folder${read}`)];
}

function shownRights({ path, mode, uid, gid }: Rights, names: Names): string {
  return `${path} (${(mode & 0o7777).toString(8).padStart(4, '0')} ${names.user(uid)}:${names.group(gid)})`;
}
