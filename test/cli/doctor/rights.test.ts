import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import type { ListedKeyFile } from '../../../src/api/answers';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import {
  checkAccess,
  hasRight,
  type Identity,
  identityOf,
  THIS_MACHINE,
} from '../../../src/cli/doctor/rights';
import { applicationXml, install, KEY_FILE, VOD } from './installation';
import { type DoctorSetting, lineOf, listed, runDoctor, sectionsOf, sidecarOn, troubles } from './run-doctor';

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
  [0o707, 'a member, as little', { name: 'm', uid: 7, gids: [1000] }, false, false],
  [0o005, 'another user', { name: 's', uid: 7, gids: [7] }, true, true],
  [0o770, 'another user', { name: 's', uid: 7, gids: [7] }, false, false],
  [0o000, 'root', { name: 'root', uid: 0, gids: [0] }, true, true],
])('works out of mode %o what %s may do', (mode, _who, identity, read, enter) => {
  const rights = { path: '/x', mode: 0o100000 + mode, uid: 1000, gid: 1000 };
  expect([hasRight(identity, rights, 4), hasRight(identity, rights, 1)]).toEqual([read, enter]);
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
  const args = ['--application', 'live', '--user', 'mate'];
  const seen = () => troubles(packager, args, { ...ACCOUNTS, sidecar });
  const found = await seen();
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['folder_closed', `mate may not enter ${odd} (0700 ${OWNED})`],
    ['folder_closed', `mate may not enter live (0700 ${OWNED}), live/deep (0700 ${OWNED})`],
    [
      'file_unreadable',
      `mate may not read 3 of 3 key files: a.key (0600 ${OWNED}), live/b.key (0600 ${OWNED}), live/deep/c.key (0600 ${OWNED})`,
    ],
  ]);
  const sections = await sectionsOf(packager, args, { ...ACCOUNTS, sidecar });
  for (const { command } of sections.flatMap(({ findings }) => findings))
    if (command !== undefined) execFileSync('sh', ['-c', command], { cwd: packager });
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
  const [found] = await troubles(packager, ['--user', 'wowza'], ACCOUNTS);
  expect(found?.message).toBe(`wowza may not enter vault (0700 ${OWNED})`);
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

test("opens with the owner's rights what the packager owns", () => {
  const uid = 54321;
  const folder = { path: '/w', mode: 0o40060, uid, gid: 7 };
  const file = { path: '/w/k/a.key', mode: 0o100040, uid, gid: 7 };
  const found = checkAccess({ name: 'wowza', uid, gids: [7] }, '/w/k', [folder], [file]);
  expect(found.map(({ command }) => command)).toEqual([
    'chmod u+x /w',
    expect.stringContaining('chmod ug+r'),
  ]);
});

describe('the key folder', () => {
  const HOME = `\${com.wowza.wms.context.VHostConfigHome}`;

  /** Two applications that read the same key folder of their own. */
  function reading(folder: string): Record<string, string> {
    const keyDir = `<KeyDir>${folder}</KeyDir>`;
    return {
      'conf/live/Application.xml': applicationXml('live', { keyDir }),
      'conf/vod/Application.xml': applicationXml('vod', { keyDir, ...VOD }),
    };
  }

  /** The line on whose folder it is. */
  async function verdicts(packager: string, setting: DoctorSetting) {
    const sections = await sectionsOf(packager, [], setting);
    const [first] = sections.filter(({ kind }) => kind === 'key_folder').map(({ findings }) => findings[0]);
    return first && lineOf(first).replaceAll(`${packager}/`, '');
  }

  const full = { code: 'insufficient_storage', description: 'The disk is full.' };
  const unready = () => Promise.reject(new CliError(EXIT.failed, full));

  test("knows that stream ids begin with a folder when the sidecar's is above", async () => {
    const packager = await install({
      ...reading(`${HOME}/keys/\${com.wowza.wms.context.Application}`),
      'keys/live/a.key': KEY_FILE,
      'keys/vod/b.key': KEY_FILE,
    });
    expect(await verdicts(packager, {})).toBe(
      "ok same_folder: This is the sidecar's folder, by device and inode; the prefix of the stream ids is live/, and the list agrees (1 key file)",
    );
  });

  test('finds a fault when the sidecar writes in a folder below', async () => {
    const packager = await install({ 'keys/live/a.key': KEY_FILE });
    const sidecar = () => sidecarOn(join(packager, 'keys/live'));
    expect(await verdicts(packager, { sidecar })).toBe(
      'fault sidecar_below: The sidecar writes in keys/live, and the packager reads the folder above it → set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write: <KeyDir>keys/live</KeyDir>',
    );
  });

  test('sees through a link to the folder', async () => {
    const packager = await install({ ...reading(`${HOME}/linked`) });
    await fs.ensureSymlink(join(packager, 'keys'), join(packager, 'linked'));
    expect(await verdicts(packager, {})).toMatch(/^ok same_folder: /);
  });

  /** Device and inode of a folder of an installation, as the sidecar says them. */
  async function identityOf(path: string) {
    const { dev, ino } = await fs.stat(path, { bigint: true });
    return { device: String(dev), inode: String(ino) };
  }

  test('finds a fault when the sidecar writes in a copy, though names, sizes and times agree', async () => {
    const packager = await install();
    const [keys, copy] = [join(packager, 'keys'), join(packager, 'copy')];
    await fs.copy(keys, copy, { preserveTimestamps: true });
    const [there, here] = [await identityOf(copy), await identityOf(keys)];
    expect(await verdicts(packager, { sidecar: () => sidecarOn(copy) })).toBe(
      `fault other_folder: The sidecar writes in another folder: device ${there.device}, inode ${there.inode}; this one is device ${here.device}, inode ${here.inode} → set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar's: <KeyDir>/the/folder/of/the/sidecar</KeyDir>`,
    );
  });

  const OTHER_MOUNT = 'as this one has through another mount (in a container, or over the network)';
  const FROM_HERE = "Whether the sidecar writes here can't be known from here:";
  const LOOK_THERE = "run this on the sidecar's host, or provision one stream: its key file must appear here";

  test.each([
    [
      'http://packager-2:9000',
      { device: '1', inode: '2' },
      `${FROM_HERE} its folder is not on this machine, or is seen through another mount (in a container, or over the network) → ${LOOK_THERE}`,
    ],
    [
      'http://127.0.0.1:9000',
      { device: '1' },
      `${FROM_HERE} it writes in a folder of the same inode on another device, ${OTHER_MOUNT} → ${LOOK_THERE}`,
    ],
    [
      'http://127.0.0.1:9000',
      undefined,
      'Whether the sidecar writes here is not known: it does not say where it writes → bring the sidecar up to date, and run this again',
    ],
    [
      'http://127.0.0.1:9000',
      'not ready',
      'Whether the sidecar writes here is not known → let the sidecar answer, and run this again',
    ],
  ])("says that it can't know whose folder it is when %s answers %j", async (address, folder, line) => {
    const packager = await install();
    const here = await identityOf(join(packager, 'keys'));
    const ready =
      typeof folder === 'string'
        ? unready
        : async () => ({ status: 'ready' as const, folder: folder && { ...here, ...folder } });
    const sidecar = () => sidecarOn(join(packager, 'keys'), { address, ready });
    expect(await verdicts(packager, { sidecar })).toBe(`warning same_folder_unknown: ${line}`);
  });

  /** The line on whose folder it is where the sidecar lists its files otherwise. */
  async function listedAs(pages: (keyfiles: ListedKeyFile[]) => ListedKeyFile[][]) {
    const packager = await install();
    const given = pages(await listed(join(packager, 'keys')));
    const list = async ({ cursor = '0' }: { cursor?: string | undefined }) => ({
      keyfiles: given[Number(cursor)] ?? [],
      cursor: Number(cursor) + 1 < given.length ? String(Number(cursor) + 1) : null,
    });
    return verdicts(packager, { sidecar: () => sidecarOn(join(packager, 'keys'), { list }) });
  }

  test.each([
    ['size', { size: 1 }],
    ['time', { modified: '2001-01-01T00:00:00.000Z' }],
    ['name', { streamid: 'another' }],
  ])('warns when the list and the folder differ by the %s of a file', async (_what, otherwise) => {
    const name = 'streamid' in otherwise ? 'another' : 'news_360p';
    expect(
      await listedAs((files) => [files.map((file, at) => (at === 1 ? { ...file, ...otherwise } : file))]),
    ).toBe(
      `warning lists_differ: This is the sidecar's folder, by device and inode. But its list and the folder differ on ${name} → run this again; if nothing changes, a second folder is mounted over one of the two, or the sidecar is on another host`,
    );
  });

  test('takes times in whole seconds for the same', async () => {
    const inSeconds = (file: ListedKeyFile) => ({ ...file, modified: file.modified.replace(/\.\d+Z/, 'Z') });
    expect(await listedAs((files) => [files.map(inSeconds)])).toMatch(/^ok same_folder: /);
  });

  test("reads every page of the sidecar's list", async () => {
    expect(await listedAs((files) => [files.slice(0, 1), files.slice(1)])).toContain(
      'the list agrees (3 key files)',
    );
  });

  test.each([
    ['news_360p.key', '', 'fault', 'key_file_faulty'],
    ['news_360p.key', `\ufeff${KEY_FILE}`, 'warning', 'key_file_doubtful'],
    ['news.smil.key', KEY_FILE, 'warning', 'group_key_file'],
    ['news.key', KEY_FILE, 'warning', 'group_key_file'],
    ['ngrp:news_all.key', KEY_FILE, 'warning', 'group_key_file'],
    ['radio.key.txt', KEY_FILE, 'warning', 'wrong_suffix'],
    ['radio.KEY', KEY_FILE, 'warning', 'wrong_suffix'],
    ['radio.key~', KEY_FILE, 'warning', 'wrong_suffix'],
    ['.radio.key.swp', KEY_FILE, 'warning', 'wrong_suffix'],
    ['.radio.key', KEY_FILE, 'warning', 'wrong_suffix'],
    ['.packagerdrmapi-00000000-1.tmp', KEY_FILE, 'warning', 'temporaries'],
    ['radio one.key', KEY_FILE, 'warning', 'unmanageable_name'],
  ])('names what is wrong with the file %j', async (name, text, severity, code) => {
    const found = await troubles(await install({ [`keys/${name}`]: text }));
    const message = expect.stringContaining(name.replace(/\.key$/, ''));
    expect(found).toEqual([expect.objectContaining({ about: 'keys', severity, code, message })]);
  });

  test('passes over files that have nothing to do with keys', async () => {
    expect(await troubles(await install({ 'keys/readme.txt': 'hello', 'keys/.gitignore': '*' }))).toEqual([]);
  });

  test('warns of a link in place of a key file', async () => {
    const packager = await install({ 'elsewhere.txt': KEY_FILE });
    await fs.symlink(join(packager, 'elsewhere.txt'), join(packager, 'keys/radio.key'));
    const found = await troubles(packager);
    expect(found.map(({ code }) => code)).toContain('link');
  });

  test('finds a fault in a key folder that is not there', async () => {
    const found = await troubles(await install(reading('/no/such/folder')));
    expect(found.map(lineOf)).toEqual([
      'fault key_folder: The key folder is not there → make it, or correct KeyDir: /no/such/folder',
    ]);
  });

  test('reports a folder or a pipe in the place of a key file', async () => {
    const packager = await install({ 'keys/film.key/.keep': '' });
    execFileSync('mkfifo', [join(packager, 'keys/fifo.key')]);
    const sidecar = () =>
      sidecarOn(join(packager, 'keys'), { list: async () => ({ keyfiles: [], cursor: null }) });
    expect((await troubles(packager, ['--streams', 'film,fifo'], { sidecar })).map(lineOf)).toEqual([
      'warning not_a_file: A folder or a pipe is in the place of a key file, so the sidecar refuses to write there: fifo.key, film.key → remove it, or give it another name',
      expect.stringContaining('fault key_file_missing: No key file for film, fifo'),
    ]);
  });

  test('finds a fault in a file that is too large for a key file', async () => {
    const packager = await install({ 'keys/camera.stream.key': '#'.repeat(64 * 1024 + 1) });
    expect((await troubles(packager)).map(({ code, message }) => `${code} ${message}`)).toEqual([
      'key_file_faulty camera.stream: The file is too large for a key file.',
    ]);
  });
});
