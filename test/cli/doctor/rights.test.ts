import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import { checkAccess, type Identity, identityOf, may, THIS_MACHINE } from '../../../src/cli/doctor/rights';
import { applicationXml, install, KEY_FILE } from './installation';
import { lineOf, runDoctor, sectionsOf, sidecarOn, troubles } from './run-doctor';

const UID = process.getuid?.() ?? 0;
const GID = process.getgid?.() ?? 0;

/** A machine on which the files' owner is `files`; `wowza` is another, `member` and `mate` are in the files' group. */
const ACCOUNTS = {
  accounts: [
    { name: 'files', uid: UID, gids: [GID] },
    { name: 'wowza', uid: 54321, gids: [54321] },
    { name: 'member', uid: 54322, gids: [54322, GID] },
    { name: 'mate', uid: 54323, gids: [GID] },
  ],
};
const OWNED = `${UID}:${GID}`;

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
  [0o005, 'another user', { name: 's', uid: 7, gids: [7] }, true, true],
  [0o770, 'another user', { name: 's', uid: 7, gids: [7] }, false, false],
  [0o000, 'root', { name: 'root', uid: 0, gids: [0] }, true, true],
])('works out of mode %o what %s may do', (mode, _who, identity, read, enter) => {
  const rights = { path: '/x', mode: 0o100000 + mode, uid: 1000, gid: 1000 };
  expect([may(identity, rights, 4), may(identity, rights, 1)]).toEqual([read, enter]);
});

test('names the file that the packager may not read, with mode and owner, and what to do', async () => {
  const packager = await install();
  await fs.chmod(join(packager, 'keys/news_720p.key'), 0o640);
  const found = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found.map((one) => [lineOf(one), one.command])).toEqual([
    [
      `fault file_unreadable: wowza may not read 1 of 3 key files: news_720p.key (0640 ${OWNED}) → run as root (new files get the group, too; keep PACKAGERDRMAPI_KEYFILEMODE at 0640)`,
      "find keys -type d -exec chgrp 54321 {} + -exec chmod ug+x,g+s {} + && find keys -type f -name '*.key' -exec chgrp 54321 {} + -exec chmod ug+r {} +",
    ],
  ]);
  expect(await troubles(packager, ['--user', 'member'], ACCOUNTS)).toEqual([]);
});

test.each([
  ['the key folder', 'keys', 0o750, `keys (0750 ${OWNED})`, /^find keys -type d -exec chgrp 54321 /],
  ['a folder above it', '.', 0o700, ` (0700 ${OWNED})`, /^chgrp 54321 .* && chmod g\+x /],
])('names %s when the packager may not enter it', async (_which, path, mode, shown, command) => {
  const packager = await install();
  await fs.chmod(join(packager, path), mode);
  const found = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found).toEqual([expect.objectContaining({ severity: 'fault', code: 'folder_closed' })]);
  expect(found[0]?.message).toContain(shown);
  expect(found[0]?.command).toMatch(command);
});

test('gives commands that correct it all in one round, with sub-folders, whatever the folders are called', async () => {
  const odd = "v $(touch broken) it's";
  const keyDir = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/${odd}/keys</KeyDir>`;
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', { keyDir, storageDir: '/no/content' }),
    [`${odd}/keys/a.key`]: KEY_FILE,
    [`${odd}/keys/live/b.key`]: KEY_FILE,
    [`${odd}/keys/live/deep/c.key`]: KEY_FILE,
  });
  const keys = join(packager, odd, 'keys');
  for (const path of ['a.key', 'live/b.key', 'live/deep/c.key']) await fs.chmod(join(keys, path), 0o600);
  for (const path of ['live/deep', 'live', '..']) await fs.chmod(join(keys, path), 0o700);
  const sidecar = () => sidecarOn(keys);
  const seen = () =>
    troubles(packager, ['--application', 'live', '--user', 'mate'], { ...ACCOUNTS, sidecar });
  const found = await seen();
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['folder_closed', `mate may not enter ${odd} (0700 ${OWNED})`],
    ['folder_closed', `mate may not enter live (0700 ${OWNED}), live/deep (0700 ${OWNED})`],
    [
      'file_unreadable',
      `mate may not read 3 of 3 key files: a.key (0600 ${OWNED}), live/b.key (0600 ${OWNED}), live/deep/c.key (0600 ${OWNED})`,
    ],
  ]);
  const sections = await sectionsOf(packager, ['--application', 'live', '--user', 'mate'], {
    ...ACCOUNTS,
    sidecar,
  });
  for (const { command } of sections.flatMap(({ findings }) => findings)) {
    if (command !== undefined) execFileSync('sh', ['-c', command], { cwd: packager });
  }
  expect(await seen()).toEqual([]);
  expect(await fs.pathExists(join(packager, 'broken'))).toBe(false);
  expect((await fs.stat(join(keys, 'live/deep'))).mode & 0o2000).toBe(0o2000);
});

test('gives no command where the groups of the packager are not known, since none would help', async () => {
  const packager = await install();
  await fs.chmod(join(packager, 'keys/news_720p.key'), 0o600);
  const [found] = await troubles(packager, ['--user', '4242'], { accounts: [] });
  expect(found && lineOf(found)).toBe(
    `fault file_unreadable: uid 4242 may not read 1 of 3 key files: news_720p.key (0600 ${OWNED}) → no account of this machine says which groups uid 4242 has: start the packager and leave --user out, or let --user name an account`,
  );
  expect(found?.command).toBeUndefined();
});

test('names the folder above the target of a link', async () => {
  const packager = await install();
  await fs.move(join(packager, 'keys'), join(packager, 'vault/keys'));
  await fs.symlink(join(packager, 'vault/keys'), join(packager, 'keys'));
  await fs.chmod(join(packager, 'vault'), 0o700);
  const found = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['folder_closed', `wowza may not enter vault (0700 ${OWNED})`],
  ]);
});

test.each([
  ['no process of it runs', { '78/cmdline': 'java\0-jar\0other.jar\0', '78/status': 'Uid:\t1\t1\n' }],
  [
    'an editor is on its files',
    { '79/cmdline': 'vi\0com.wowza.txt\0', '79/status': 'Uid:\t1\t1\nGid:\t1\t1\n' },
  ],
])('takes the owner of its programs for whom the packager runs as when %s', async (_how, proc) => {
  const { stdout } = await runDoctor(await install(), [], { ...ACCOUNTS, proc });
  expect(stdout).toContain('runs as    files (assumed: it owns ');
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

test('knows the accounts of this machine, by name and by number', async () => {
  const root = { name: 'root', uid: 0, gids: expect.arrayContaining([0]) };
  expect(await identityOf(THIS_MACHINE, 'root')).toEqual(root);
  expect(await identityOf(THIS_MACHINE, '0')).toEqual(root);
  expect(await identityOf(THIS_MACHINE, '4294967')).toEqual({ name: 'uid 4294967', uid: 4294967, gids: [] });
  for (const name of ['no-such-user-here', '--help', ''])
    expect(await identityOf(THIS_MACHINE, name)).toBeUndefined();
});

test('opens with the owner’s rights what the packager owns', () => {
  const uid = 54321;
  const folder = { path: '/w', mode: 0o40060, uid, gid: 7 };
  const file = { path: '/w/k/a.key', mode: 0o100040, uid, gid: 7 };
  const found = checkAccess(
    { name: 'wowza', uid, gids: [7] },
    { path: '/w/k', folders: [folder], files: [file] },
  );
  expect(found.map(({ command }) => command)).toEqual([
    'chmod u+x /w',
    expect.stringContaining('chmod ug+r'),
  ]);
});
