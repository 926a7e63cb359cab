import { join } from 'node:path';
import fs from 'fs-extra';
import { type Identity, may } from '../../../src/cli/doctor/access-rights';
import { parseAccounts } from '../../../src/cli/doctor/accounts';
import { install } from './installation';
import { runDoctor, troubles } from './run-doctor';

const UID = process.getuid?.() ?? 0;
const GID = process.getgid?.() ?? 0;

/** A machine on which the files' owner is `files`, in the group `media`; `wowza` is a stranger, `member` in the group. */
const ACCOUNTS = {
  passwd: `files:x:${UID}:${GID}:Files:/:/bin/sh\nwowza:x:54321:54321::/:/bin/false\nmember:x:54322:54322::/:/bin/false\n`,
  group: `media:x:${GID}:files,member\nwowza:x:54321:\n`,
};

const OWNER: Identity = { name: 'owner', uid: 1000, gids: [1000] };

test.each<[mode: number, who: string, identity: Identity, read: boolean, enter: boolean]>([
  [0o400, 'the owner', OWNER, true, false],
  [0o100, 'the owner', OWNER, false, true],
  [0o077, 'the owner, whom the rights of others do not help', OWNER, false, false],
  [0o040, 'a member', { name: 'm', uid: 7, gids: [7, 1000] }, true, false],
  [
    0o707,
    'a member, whom the rights of others do not help',
    { name: 'm', uid: 7, gids: [1000] },
    false,
    false,
  ],
  [0o005, 'a stranger', { name: 's', uid: 7, gids: [7] }, true, true],
  [0o770, 'a stranger', { name: 's', uid: 7, gids: [7] }, false, false],
  [0o000, 'root', { name: 'root', uid: 0, gids: [0] }, true, true],
])('works out of mode %o what %s may do', (mode, _who, identity, read, enter) => {
  const rights = { path: '/x', mode: 0o100000 + mode, uid: 1000, gid: 1000 };
  expect([may(identity, rights, 4), may(identity, rights, 1)]).toEqual([read, enter]);
});

test('names the file that the packager may not read, with mode and owner, and what to do', async () => {
  const packager = await install();
  await fs.chmod(join(packager, 'keys/news_720p.key'), 0o640);
  expect(await troubles(packager, ['--user', 'wowza'], ACCOUNTS)).toEqual([
    {
      about: 'keys',
      severity: 'fault',
      code: 'file_unreadable',
      message: 'wowza may not read 1 of 3 key files: news_720p.key (0640 files:media)',
      todo: `cd ${packager}/keys && chgrp wowza . *.key && chmod g+r *.key && chmod g+s . (new files get the group then; keep PACKAGERDRMAPI_KEYFILEMODE at 0640)`.replace(
        `${packager}/`,
        '',
      ),
    },
  ]);
  expect(await troubles(packager, ['--user', 'member'], ACCOUNTS)).toEqual([]);
});

test.each([
  ['the key folder', 'keys', 0o750, 'keys (0750 files:media)'],
  ['a folder above it', '.', 0o700, ' (0700 files:media)'],
])('names %s when the packager may not enter it', async (_which, path, mode, shown) => {
  const packager = await install();
  await fs.chmod(join(packager, path), mode);
  const found = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found).toEqual([expect.objectContaining({ severity: 'fault', code: 'folder_closed' })]);
  expect(found[0]?.message).toContain(shown);
  expect(found[0]?.todo).toMatch(/^chgrp wowza .* && chmod g\+x /);
});

test('names the folder above the target of a link', async () => {
  const packager = await install();
  await fs.move(join(packager, 'keys'), join(packager, 'vault/keys'));
  await fs.symlink(join(packager, 'vault/keys'), join(packager, 'keys'));
  await fs.chmod(join(packager, 'vault'), 0o700);
  const found = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['folder_closed', 'wowza may not enter vault (0700 files:media)'],
  ]);
});

test('says who owns a file when the machine has no such account', async () => {
  const packager = await install();
  await fs.chmod(join(packager, 'keys/news_720p.key'), 0o600);
  const [found] = await troubles(packager, ['--user', '4242'], { passwd: 'nobody:x:1:1::/:\n', group: '' });
  expect(found?.message).toBe(`uid 4242 may not read 1 of 3 key files: news_720p.key (0600 ${UID}:${GID})`);
});

test.each([
  [
    'its running process',
    {
      '77/cmdline': 'java\0-Dcom.wowza.wms.AppHome=/w\0com.wowza.wms.bootstrap.Bootstrap\0',
      '77/status': 'Name:\tjava\nUid:\t0\t54322\t0\t0\nGid:\t0\t54322\t0\t0\nGroups:\t4 5 \n',
    },
    'member (process 77 runs as it)',
  ],
  [
    'the owner of its programs when no process runs',
    { '78/cmdline': 'java\0-jar\0other.jar\0', '78/status': 'Uid:\t1\t1\n' },
    `files (assumed: it owns `,
  ],
  [
    'the owner of its programs when the process is an editor on its files',
    { '79/cmdline': 'vi\0com.wowza.txt\0', '79/status': 'Uid:\t1\t1\nGid:\t1\t1\n' },
    `files (assumed: it owns `,
  ],
])('finds out whom the packager runs as by %s', async (_how, proc, shown) => {
  const { stdout } = await runDoctor(await install(), [], { ...ACCOUNTS, proc });
  expect(stdout).toContain(`runs as    ${shown}`);
});

test('reads the groups that a process runs with, not those of the account', async () => {
  const proc = {
    '77/cmdline': '/usr/bin/java\0com.wowza.wms.bootstrap.Bootstrap\0',
    '77/status': 'Uid:\t9\t54322\t9\t9\nGid:\t9\t8\t9\t9\nGroups:\t4 5 \n',
  };
  const { stdout } = await runDoctor(await install(), ['--json'], { ...ACCOUNTS, proc });
  expect(JSON.parse(stdout).user).toEqual({
    name: 'member',
    uid: 54322,
    gids: [8, 4, 5],
    because: 'process 77 runs as it',
  });
});

test('takes neither comments nor broken rows for accounts', () => {
  const accounts = parseAccounts(
    '# a comment\nroot:x:0:0:root:/root:/bin/sh\n\nbroken:x\n',
    'root:x:0:\nvideo:x:44:root,me\n',
  );
  expect(accounts.find('root')).toEqual({ name: 'root', uid: 0, gids: [0, 44] });
  expect(accounts.find('broken')).toBeUndefined();
  expect(accounts.find('12')).toEqual({ name: 'uid 12', uid: 12, gids: [] });
});
