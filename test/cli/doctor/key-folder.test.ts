import { join } from 'node:path';
import fs from 'fs-extra';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { compareFolders } from '../../../src/cli/doctor/sidecar';
import { findTouchedFolder } from '../../../src/cli/doctor/watch-folder';
import { applicationXml, install, KEY_FILE } from './installation';
import { type DoctorSetting, listed, sectionsOf, sidecarOn, troubles } from './run-doctor';

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

/** What is said of whose folder it is. */
async function verdicts(packager: string, setting: DoctorSetting) {
  const sections = await sectionsOf(packager, [], setting);
  const [first] = sections.filter(({ kind }) => kind === 'key_folder').map(({ findings }) => findings[0]);
  return JSON.parse(JSON.stringify(first).replaceAll(`${packager}/`, ''));
}

const unready = async () => {
  throw new CliError(EXIT.failed, { code: 'insufficient_storage', description: 'The disk is full.' });
};

test('knows the sidecar’s folder by the trace of its readiness check, without a single key file', async () => {
  const packager = await install({
    'keys/news_360p.key': undefined,
    'keys/news_720p.key': undefined,
    'keys/camera.stream.key': undefined,
    'keys/.keep': '',
  });
  expect(await verdicts(packager, {})).toEqual({
    severity: 'ok',
    code: 'same_folder',
    message: 'This is the sidecar’s folder: the trace of its readiness check shows here',
  });
});

test('knows that stream ids begin with a folder when the sidecar’s is above', async () => {
  const packager = await install({
    ...reading(`${HOME}/keys/\${com.wowza.wms.context.Application}`),
    'keys/live/a.key': KEY_FILE,
    'keys/vod/b.key': KEY_FILE,
  });
  expect(await verdicts(packager, {})).toEqual({
    severity: 'ok',
    code: 'same_folder',
    message:
      'This is the sidecar’s folder: the trace of its readiness check shows here; stream ids begin with live/, and the list agrees (1 key file)',
  });
});

test('finds a fault when the sidecar writes in a folder below', async () => {
  const packager = await install({ 'keys/live/a.key': KEY_FILE });
  const sidecar = () => sidecarOn(join(packager, 'keys/live'));
  expect(await verdicts(packager, { sidecar })).toEqual({
    severity: 'fault',
    code: 'sidecar_below',
    message: 'The sidecar writes in keys/live, and the packager reads the folder above it',
    todo: 'set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write',
    xml: '<KeyDir>keys/live</KeyDir>',
  });
});

test('sees through a link to the folder', async () => {
  const packager = await install({ ...reading(`${HOME}/linked`) });
  await fs.ensureSymlink(join(packager, 'keys'), join(packager, 'linked'));
  expect(await verdicts(packager, {})).toMatchObject({ severity: 'ok', code: 'same_folder' });
});

test('finds a fault when none of the sidecar’s key files is in the folder', async () => {
  const packager = await install({ 'other/a.key': KEY_FILE });
  const sidecar = () => sidecarOn(join(packager, 'other'));
  expect(await verdicts(packager, { sidecar })).toEqual({
    severity: 'fault',
    code: 'other_folder',
    message: 'The sidecar writes in another folder: it lists 1 key file, none of which is here',
    todo: 'set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar’s',
    xml: '<KeyDir>/the/folder/of/the/sidecar</KeyDir>',
  });
});

test('takes no copy for the sidecar’s folder, though names, sizes and times agree', async () => {
  const packager = await install();
  await fs.copy(join(packager, 'keys'), join(packager, 'copy'), { preserveTimestamps: true });
  const sidecar = () => sidecarOn(join(packager, 'copy'));
  expect(await verdicts(packager, { sidecar })).toMatchObject({
    severity: 'warning',
    code: 'perhaps_a_copy',
  });
});

test('goes by names, sizes and times when the sidecar is not ready to write', async () => {
  const packager = await install();
  const sidecar = () => sidecarOn(join(packager, 'keys'), { ready: unready });
  expect(await verdicts(packager, { sidecar })).toEqual({
    severity: 'ok',
    code: 'same_folder',
    message: '3 key files here and of the sidecar agree in name, size and time',
  });
});

test('warns when a file changed in one of the two', async () => {
  const packager = await install();
  const keyfiles = await listed(join(packager, 'keys'));
  const list = async () => ({
    keyfiles: keyfiles.map((file, index) => ({ ...file, size: file.size + index })),
    cursor: null,
  });
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  expect(await verdicts(packager, { sidecar })).toMatchObject({
    severity: 'warning',
    code: 'lists_differ',
    message:
      'This is the sidecar’s folder: the trace of its readiness check shows here. But its list and the folder differ on news_360p, news_720p',
  });
  expect(await verdicts(packager, { sidecar: () => sidecarOn('/', { list, ready: unready }) })).toMatchObject(
    {
      code: 'lists_differ',
      message:
        '1 key file here and of the sidecar agree in name, size and time, but not news_360p, news_720p',
    },
  );
});

test('says how to find out when neither has a key file and no trace shows', async () => {
  const packager = await install({
    'keys/news_360p.key': undefined,
    'keys/news_720p.key': undefined,
    'keys/camera.stream.key': undefined,
    'keys/.keep': '',
    'other/.keep': '',
  });
  expect(await verdicts(packager, { sidecar: () => sidecarOn(join(packager, 'other')) })).toEqual({
    severity: 'warning',
    code: 'same_folder_unknown',
    message:
      'Whether the sidecar writes here is not known: neither has a key file yet; what it writes to check its readiness does not show here',
    todo: 'provision one stream, and run this again',
  });
});

test('reads every page of the sidecar’s list', async () => {
  const packager = await install();
  const [first, ...others] = await listed(join(packager, 'keys'));
  const list = async ({ cursor }: { cursor?: string }) =>
    cursor === undefined
      ? { keyfiles: first ? [first] : [], cursor: 'next' }
      : { keyfiles: others, cursor: null };
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  expect((await verdicts(packager, { sidecar })).message).toContain('the list agrees (3 key files)');
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
  expect(found).toEqual([
    expect.objectContaining({
      about: 'keys',
      severity,
      code,
      message: expect.stringContaining(name.replace(/\.key$/, '')),
    }),
  ]);
});

test('passes over files that have nothing to do with keys', async () => {
  expect(await troubles(await install({ 'keys/readme.txt': 'hello', 'keys/.gitignore': '*' }))).toEqual([]);
});

test('warns of a link in place of a key file', async () => {
  const packager = await install({ 'elsewhere.txt': KEY_FILE });
  await fs.symlink(join(packager, 'elsewhere.txt'), join(packager, 'keys/radio.key'));
  const found = await troubles(packager, [], {
    sidecar: () =>
      sidecarOn(join(packager, 'keys'), {
        list: async () => ({
          keyfiles: (await listed(join(packager, 'keys'))).filter(({ streamid }) => streamid !== 'radio'),
          cursor: null,
        }),
      }),
  });
  expect(found).toEqual([expect.objectContaining({ severity: 'warning', code: 'link' })]);
});

test('finds a fault in a key folder that is not there', async () => {
  const found = await troubles(await install(reading('/no/such/folder')));
  expect(found).toEqual([
    {
      about: '/no/such/folder',
      severity: 'fault',
      code: 'key_folder',
      message: 'The key folder is not there',
      todo: 'make it, or correct KeyDir: /no/such/folder',
    },
  ]);
});

test.each([
  ['size and time', 'same_folder', {}],
  ['size and time, told in whole seconds', 'same_folder', { modified: '2026-01-02T03:04:05Z' }],
  ['another time', 'other_folder', { modified: '2026-01-02T03:04:05.640Z' }],
  ['another size', 'other_folder', { size: 8 }],
  ['another name', 'other_folder', { streamid: 'b' }],
])('goes by the list alone when a key file of the same name has %s', (_what, code, listedOtherwise) => {
  const mtimeMs = Date.parse('2026-01-02T03:04:05.678Z') + 0.4;
  const listedFile = { streamid: 'a', size: 7, modified: '2026-01-02T03:04:05.678Z', ...listedOtherwise };
  const files = [{ id: 'a', size: 7, mtimeMs }];
  const { finding } = compareFolders({ folder: '/keys', files, listed: [listedFile], probed: 'unknown' });
  expect(finding.code).toBe(code);
});

test('takes no folder for the sidecar’s that changes without it, too', async () => {
  const packager = await install();
  const [busy, quiet] = [join(packager, 'keys'), join(packager, 'content')];
  let count = 0;
  const touch = async (folder: string) => {
    count += 1;
    await fs.utimes(folder, count, count);
  };
  const findWith = (probe: () => Promise<void>) => findTouchedFolder([busy, quiet], probe, () => touch(busy));
  expect(await findWith(() => touch(busy))).toBeUndefined();
  expect(await findWith(async () => void (await Promise.all([touch(busy), touch(quiet)])))).toBe(quiet);
});
