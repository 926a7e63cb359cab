import { join } from 'node:path';
import fs from 'fs-extra';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { POST_MANUAL } from '../../support/post-manual';
import { startSidecar } from '../../support/start-sidecar';
import { applicationXml, EXT_X_VERSION, install, property, SESSION_ID, smil } from './installation';
import { asOtherUser, clientOf, lineOf, runDoctor, sectionsOf, sidecarOn, troubles } from './run-doctor';

const NO_KEYS = {
  'keys/news_360p.key': undefined,
  'keys/news_720p.key': undefined,
  'keys/camera.stream.key': undefined,
};

test("proves with a real sidecar that its folder is the packager's, before and after the first key file", async () => {
  const packager = await install({
    ...NO_KEYS,
    'keys/.keep': '',
    'content/news.smil': undefined,
    'content/camera.stream': undefined,
  });
  const { api, url } = await startSidecar({ keyFilesPath: join(packager, 'keys') });
  const messages = async () => {
    const sections = await sectionsOf(packager, [], { sidecar: clientOf(url) });
    const folders = sections.filter(({ kind }) => kind === 'key_folder');
    return folders.flatMap(({ findings }) => findings.map(({ message }) => message));
  };
  const same = "This is the sidecar's folder, by device and inode";
  expect((await messages())[0]).toBe(same);
  await api.post('/api/keyfile/live%2Fnews').send(POST_MANUAL).expect(200);
  expect(await messages()).toEqual([
    `${same}, and the list agrees (1 key file)`,
    expect.stringMatching(/and read 1 key file$/),
    'The key file has no fault',
  ]);
});

test("checks the packager's part when no sidecar answers, which is a fault of its own", async () => {
  const packager = await install();
  const description = 'No sidecar answers at http://127.0.0.1:9000.';
  const away = () =>
    Promise.reject(new CliError(EXIT.unreachable, { code: 'sidecar_unreachable', description }));
  const found = await troubles(packager, [], { sidecar: () => sidecarOn('/', { ready: away, list: away }) });
  expect(found.map(({ about, code, message }) => [about, code, message])).toEqual([
    ['http://127.0.0.1:9000', 'sidecar_unreachable', description],
    ['keys', 'same_folder_unknown', 'Whether the sidecar writes here is not known'],
  ]);
});

test.each([
  ['sidecar_unreachable', 'start the sidecar, or correct its address'],
  ['usage', 'give the address and the API key of the sidecar'],
  [
    'not_a_sidecar',
    'correct the address with --url or PACKAGERDRM_URL, or the proxy in front of the sidecar',
  ],
  ['unauthorized', 'give an API key of this sidecar with --key-file or PACKAGERDRM_APIKEY'],
  ['forbidden', 'give an API key that may list key files, with --key-file or PACKAGERDRM_APIKEY'],
  ['too_many_attempts', 'wait, give the right API key'],
  ['something_new', 'correct this'],
])('says what to do about the sidecar when the problem is %s', async (code, todo) => {
  const list = () => Promise.reject(new CliError(EXIT.unreachable, { code, description: 'A sentence.' }));
  const packager = await install();
  const sidecar = () => sidecarOn(join(packager, 'keys'), { list });
  const [found] = await troubles(packager, [], { sidecar });
  const shown = `sidecar_${code}`.replace('sidecar_sidecar', 'sidecar');
  expect(found && lineOf(found)).toBe(
    `fault ${shown}: A sentence. → ${todo}, and run this again; the packager's part is checked anyway`,
  );
});

test('shows what was unusual at the start of the sidecar', async () => {
  const packager = await install();
  const ready = async () => ({
    ...(await sidecarOn(join(packager, 'keys')).ready()),
    warnings: [{ code: 'short_api_key', description: 'A sentence.' }],
  });
  const sidecar = () => sidecarOn(join(packager, 'keys'), { ready });
  expect((await troubles(packager, [], { sidecar })).map(lineOf)).toEqual([
    'warning sidecar_short_api_key: A sentence. → correct this, and restart the sidecar',
  ]);
});

/** A sound installation in which a path is closed to another user, and what the doctor says then. */
async function asOtherUserWithout<Result>(
  path: string,
  run: (packager: string) => Promise<Result>,
): Promise<[packager: string, result: Result]> {
  const packager = await install({ 'content/film.smil': smil('film') });
  // Loads all that is loaded on first use.
  await runDoctor(packager);
  await fs.chmod(join(packager, path), 0);
  const result = await asOtherUser(() => run(packager));
  await fs.chmod(join(packager, path), 0o755);
  return [packager, result];
}

async function troublesWithout(path: string) {
  const sidecar = () =>
    sidecarOn('', {
      ready: async () => ({ status: 'ready' }),
      list: async () => ({ keyfiles: [], cursor: null }),
    });
  const [, found] = await asOtherUserWithout(path, (packager) => troubles(packager, [], { sidecar }));
  return found;
}

test('does not blame a configuration that may not be read', async () => {
  const found = await troublesWithout('conf/live/Application.xml');
  expect(found.filter(({ about }) => about === 'live').map(lineOf)).toEqual([
    'fault unreadable_configuration: conf/live/Application.xml may not be read by you (EACCES) → run this as root',
  ]);
});

test('says that settings for all applications may have been passed over', async () => {
  const packager = await install({
    'conf/HTTPStreamers.xml': '<Root>',
    'conf/live/Application.xml': applicationXml('live', {
      httpStreamer: `<Properties>${SESSION_ID}</Properties>`,
    }),
  });
  expect((await troubles(packager)).map(lineOf)).toEqual([
    expect.stringMatching(/^fault ext_x_version: /),
    'warning unreadable_defaults: conf/HTTPStreamers.xml is not well-formed XML: see line 1, so its defaults are not checked → make it readable, or run this as root',
  ]);
});

test.each([
  [
    'content/film.smil',
    'warning unreadable_smil: content/film.smil may',
    'run this as root: its streams are not checked',
  ],
  ['content', 'warning unreadable_smil: content may', 'run this as root: its streams are not checked'],
  ['keys', 'fault key_folder: The key folder may', 'run this as root'],
])('says what is not checked when %s may not be read', async (path, what, todo) => {
  const found = await troublesWithout(path);
  expect(found.map(lineOf)).toContain(`${what} not be read by you (EACCES) → ${todo}`);
});

test('does not take an installation whose conf folder may not be read for none', async () => {
  const [packager, { code, problems }] = await asOtherUserWithout('conf', (path) => runDoctor(path));
  expect([code, problems]).toEqual([
    2,
    [`${packager}/conf may not be read by you (EACCES): run this as root.`],
  ]);
});

test.each([
  ['UTF-16, the low byte first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16, the high byte first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ['UTF-8 with a mark', (text: string) => Buffer.from(`\ufeff${text}`)],
])('reads a configuration in %s', async (_encoding, encode) => {
  const packager = await install();
  const text = applicationXml('live').replace('encoding="UTF-8"', 'encoding="UTF-16"');
  await fs.writeFile(join(packager, 'conf/live/Application.xml'), encode(text));
  expect(await troubles(packager)).toEqual([]);
});

const WITHOUT_SESSION_ID = { httpStreamer: `<Properties>${EXT_X_VERSION}</Properties>` };
const OF_NAME = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys/\${com.wowza.wms.context.Application}</KeyDir>`;

const CHANNELS = Array.from({ length: 27 }, (_item, index) => `channel${String(index + 1).padStart(2, '0')}`);

/** 29 applications, most without the same setting; two have no folder, three a key folder of their own. */
function installMany(): Promise<string> {
  const files = CHANNELS.flatMap((name, index): [string, string | undefined][] => [
    [
      `conf/${name}/Application.xml`,
      applicationXml(name, {
        ...(name !== 'channel03' && WITHOUT_SESSION_ID),
        ...(index > 23 && { keyDir: OF_NAME }),
        ...(name === 'channel05' && {
          httpStreamer: `<Properties>${SESSION_ID}${property('cupertinoExtXVersion', '3', 'Integer')}</Properties>`,
        }),
      }),
    ],
    ...(index < 2 ? [] : [[`applications/${name}/.keep`, ''] as [string, string]]),
  ]);
  return install(Object.fromEntries(files));
}

test('reports the same fault of many applications once, with their names', async () => {
  const packager = await installMany();
  const { code, stdout } = await runDoctor(packager);
  const text = stdout.replaceAll(packager, '/wowza');
  expect(code).toBe(1);
  for (const lines of [
    `\
29 applications  conf/NAME/Application.xml
  FAULT    The session id is appended to the license address, which is the default of the packager
           in 25 of 29: channel01, channel02, channel04, channel06, channel07, channel08, channel09, channel10, channel11, channel12, channel13, channel14, channel15, channel16, channel17, channel18, channel19, channel20, channel21, channel22 and 5 more
           to do: add in Root/Application/HTTPStreamer/Properties:
`,
    '           in 1 of 29: channel05\n           to do: change the Value in Root',
    '           in 2 of 29: channel01, channel02\n           to do: make the folder applications/NAME',
    '  ok       EXT-X-VERSION is 5 (28 of 29)\n',
    '  ok       Key files are read from /wowza/keys/NAME (3 of 29)\n',
    '/wowza/keys  the key folder of channel01, channel02, channel03, channel04, channel05 and 21 more\n',
    '3 key folders\n  /wowza/keys/channel25\n  /wowza/keys/channel26\n  /wowza/keys/channel27\n  FAULT    The key folder is not there\n           to do: make it, or correct KeyDir: FOLDER\n\n29 faults, 2 warnings.\n',
  ])
    expect(text).toContain(lines);
});

test('shows each command that corrects the same fault of several key folders', async () => {
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', { keyDir: OF_NAME }),
    'conf/vod/Application.xml': applicationXml('vod', { keyDir: OF_NAME }),
    'keys/live/a.key': '',
    'keys/vod/a.key': '',
    'content/news.smil': undefined,
    'content/camera.stream': undefined,
  });
  for (const name of ['live', 'vod']) await fs.chmod(join(packager, 'keys', name, 'a.key'), 0o600);
  const { stdout } = await runDoctor(packager, ['--user', 'other'], {
    accounts: [{ name: 'other', uid: 4321, gids: [4321] }],
  });
  const remedy = (name: string) => {
    const folder = `/wowza/keys/${name}`;
    return `find ${folder} -type d -exec chgrp 4321 {} + -exec chmod ug+x,g+s {} + && find ${folder} -type f -name '*.key' -exec chgrp 4321 {} + -exec chmod ug+r {} +`;
  };
  const text = stdout.replaceAll(packager, '/wowza');
  expect(text).toContain('2 key folders\n  /wowza/keys/live\n  /wowza/keys/vod\n');
  expect(text).toContain(`\
           to do: run as root (new files get the group, too; keep PACKAGERDRMAPI_KEYFILEMODE at 0640):
             ${remedy('live')}
             ${remedy('vod')}
`);
});
