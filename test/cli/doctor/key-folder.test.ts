import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { applicationXml, install, KEY_FILE } from './installation';
import { type DoctorSetting, lineOf, listed, sectionsOf, sidecarOn, troubles } from './run-doctor';

const HOME = `\${com.wowza.wms.context.VHostConfigHome}`;

/** Two applications that read the same key folder of their own. */
function reading(keyDir: string): Record<string, string> {
  const parts = { keyDir: `<KeyDir>${keyDir}</KeyDir>` };
  return {
    'conf/live/Application.xml': applicationXml('live', parts),
    'conf/vod/Application.xml': applicationXml('vod', {
      ...parts,
      appType: 'VOD',
      streamType: 'default',
      packetizers: '',
    }),
  };
}

/** The line on whose folder it is. */
async function verdicts(packager: string, setting: DoctorSetting) {
  const sections = await sectionsOf(packager, [], setting);
  const [first] = sections.filter(({ kind }) => kind === 'key_folder').map(({ findings }) => findings[0]);
  return first && lineOf(first).replaceAll(`${packager}/`, '');
}

const unready = async () => {
  throw new CliError(EXIT.failed, { code: 'insufficient_storage', description: 'The disk is full.' });
};

test('knows that stream ids begin with a folder when the sidecar’s is above', async () => {
  const packager = await install({
    ...reading(`${HOME}/keys/\${com.wowza.wms.context.Application}`),
    'keys/live/a.key': KEY_FILE,
    'keys/vod/b.key': KEY_FILE,
  });
  expect(await verdicts(packager, {})).toBe(
    'ok same_folder: This is the sidecar’s folder, by device and inode; the prefix of the stream ids is live/, and the list agrees (1 key file)',
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
async function identityOf(...path: string[]) {
  const { dev, ino } = await fs.stat(join(...path), { bigint: true });
  return { device: String(dev), inode: String(ino) };
}

test.each([
  ['other', 'other/a.key'],
  ['a copy, though names, sizes and times agree', 'copy/news_360p.key'],
])('finds a fault when the sidecar writes in another folder: %s', async (_kind, file) => {
  const packager = await install({ [file]: KEY_FILE });
  const [folder = ''] = file.split('/');
  if (folder === 'copy')
    await fs.copy(join(packager, 'keys'), join(packager, 'copy'), { preserveTimestamps: true });
  const [there, here] = [await identityOf(packager, folder), await identityOf(packager, 'keys')];
  expect(await verdicts(packager, { sidecar: () => sidecarOn(join(packager, folder)) })).toBe(
    `fault other_folder: The sidecar writes in another folder: device ${there.device}, inode ${there.inode}; this one is device ${here.device}, inode ${here.inode} → set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar’s: <KeyDir>/the/folder/of/the/sidecar</KeyDir>`,
  );
});

const OTHER_MOUNT = 'as this one has through another mount (in a container, or over the network)';
const FROM_HERE = 'Whether the sidecar writes here can’t be known from here:';
const LOOK_THERE = 'run this on the sidecar’s host, or provision one stream: its key file must appear here';

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
])('says that it can’t know whose folder it is when %s answers %j', async (address, folder, line) => {
  const packager = await install();
  const here = await identityOf(packager, 'keys');
  const ready =
    typeof folder === 'string'
      ? unready
      : async () => ({ status: 'ready' as const, folder: folder && { ...here, ...folder } });
  const sidecar = () => sidecarOn(join(packager, 'keys'), { address, ready });
  expect(await verdicts(packager, { sidecar })).toBe(`warning same_folder_unknown: ${line}`);
});

test.each([
  ['size', { size: 1 }],
  ['time', { modified: '2001-01-01T00:00:00.000Z' }],
  ['name', { streamid: 'another' }],
])('warns when the list and the folder differ by the %s of a file', async (_what, otherwise) => {
  const packager = await install();
  const keyfiles = await listed(join(packager, 'keys'));
  const list = async () => ({
    keyfiles: keyfiles.map((file, index) => (index === 1 ? { ...file, ...otherwise } : file)),
    cursor: null,
  });
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  const name = 'streamid' in otherwise ? 'another' : 'news_360p';
  expect(await verdicts(packager, { sidecar })).toBe(
    `warning lists_differ: This is the sidecar’s folder, by device and inode. But its list and the folder differ on ${name} → run this again; if nothing changes, a second folder is mounted over one of the two, or the sidecar is on another host`,
  );
});

test('takes times that are told in whole seconds for the same', async () => {
  const packager = await install();
  const keyfiles = await listed(join(packager, 'keys'));
  const list = async () => ({
    keyfiles: keyfiles.map((file) => ({ ...file, modified: file.modified.replace(/\.\d+Z/, 'Z') })),
    cursor: null,
  });
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  expect(await verdicts(packager, { sidecar })).toMatch(/^ok same_folder: /);
});

test('reads every page of the sidecar’s list', async () => {
  const packager = await install();
  const [first, ...others] = await listed(join(packager, 'keys'));
  const list = async ({ cursor }: { cursor?: string | undefined }) =>
    cursor === undefined
      ? { keyfiles: first ? [first] : [], cursor: 'next' }
      : { keyfiles: others, cursor: null };
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  expect(await verdicts(packager, { sidecar })).toContain('the list agrees (3 key files)');
});

test.each([
  ['news_360p.key', '', 'fault', 'key_file_faulty'],
  ['news_360p.key', `\ufeff${KEY_FILE}`, 'warning', 'key_file_doubtful'],
  ['news_360p.key', KEY_FILE.replaceAll('\n', '\r\n'), 'warning', 'key_file_doubtful'],
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

test('says that no key file can stand where a folder or a pipe does', async () => {
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
