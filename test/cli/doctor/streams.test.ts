import { applicationXml, install, KEY_FILE, smil } from './installation';
import { lineOf, runDoctor, troubles } from './run-doctor';

const DEFECTS: Readonly<Record<string, Record<string, string | undefined>>> = {
  'one rendition of a group has no key file': { 'keys/news_720p.key': undefined },
  'no rendition of a group has one': { 'content/film.smil': smil('mp4:film.mp4') },
  'the ending of the name is left out': {
    'content/film.smil': smil('mp4:film_lo.mp4'),
    'keys/film_lo.key': KEY_FILE,
  },
  'a .stream file names streams without one': {
    'conf/live/gate.stream': 'udp://127.0.0.1:1',
    'applications/vod/door.stream': 'udp://127.0.0.1:2',
  },
  'a SMIL document can’t be read': { 'content/bad.smil': '<smil>' },
  'key files are faulty': {
    'keys/camera.stream.key': KEY_FILE.replaceAll('\n', '\r\n'),
    'keys/news_720p.key': KEY_FILE.replace('pcTs6CEp98A=', 'AAAAAAAAAAA=').replace(/^.*-algorithm.*\n/m, ''),
  },
};

test('says exactly what is wrong, and what to do', async () => {
  const told: string[] = [];
  for (const [defect, changes] of Object.entries(DEFECTS))
    for (const finding of await troubles(await install(changes)))
      told.push(`${defect}:\n  ${lineOf(finding)}`);
  expect(told.join('\n')).toMatchInlineSnapshot(`
"one rendition of a group has no key file:
  fault group_partly_keyed: content/news.smil: no key file for news_720p, so part of the group plays in the clear → provision these streams: each rendition needs its own file
no rendition of a group has one:
  warning group_without_keys: content/film.smil: no stream of it has a key file (film.mp4) → provision them, if this content should be protected
the ending of the name is left out:
  warning group_without_keys: content/film.smil: no stream of it has a key file (film_lo.mp4 (there is film_lo.key, but the name keeps its ending: film_lo.mp4.key)) → provision them, if this content should be protected
a .stream file names streams without one:
  warning stream_without_key: No key file for gate.stream, door.stream, which a .stream file names → provision them, if these streams should be protected
a SMIL document can’t be read:
  warning unreadable_smil: content/bad.smil is not well-formed XML: see line 1 → correct the file: its streams are not checked
key files are faulty:
  fault key_file_faulty: news_720p: mpegdashstreaming-cenc-algorithm is missing; add it, the other mpegdashstreaming-cenc lines need it. And 1 more fault. → packager-drm check shows all of it; correct the values and provision news_720p again
key files are faulty:
  warning key_file_doubtful: camera.stream: The file has Windows line ends (CR LF); save it with line feeds (LF)."
`);
});

test('checks the streams that the user names, by their stream ids and by their names in the key folder', async () => {
  const own = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys/\${com.wowza.wms.context.Application}</KeyDir>`;
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', { keyDir: own, storageDir: '/no/content' }),
    'keys/live/a.key': KEY_FILE,
  });
  const args = ['--application', 'live', '--streams', 'live/a,a', '--streams'];
  expect(await troubles(packager, [...args, 'a'])).toEqual([]);
  expect((await troubles(packager, [...args, 'b'])).map(lineOf)).toEqual([
    'fault key_file_missing: No key file for b → provision them with packager-drm put, or a manifest with packager-drm apply',
  ]);
});

test('shows no more than 50 faulty key files, errors before all', async () => {
  const many = Array.from({ length: 51 }, (_one, index) => [`keys/a${index}.key`, `${KEY_FILE}\r\n`]);
  const found = await troubles(await install({ ...Object.fromEntries(many), 'keys/z.key': '' }));
  expect(found).toHaveLength(51);
  expect(found[0]).toMatchObject({ severity: 'fault', code: 'key_file_faulty' });
  expect(found[50]).toEqual({
    about: 'keys',
    severity: 'warning',
    code: 'more',
    message: '2 more key files have a fault or could not be read',
    todo: 'packager-drm list --faulty shows all',
  });
});

const CMAF_FILE = KEY_FILE.replaceAll('mpegdashstreaming-', 'cmafstreaming-');

test.each([
  [0, 'fault', '3 of 3 key files have none (camera.stream, news_360p, news_720p)'],
  [2, 'warning', '1 of 3 key files has none (news_720p)'],
  [3, undefined, ''],
])(
  'checks that %i of 3 key files have the lines of the CMAF packetizer where it alone is used',
  async (number, severity, text) => {
    const names = ['keys/camera.stream.key', 'keys/news_360p.key', 'keys/news_720p.key'];
    const packager = await install({
      'conf/live/Application.xml': applicationXml('live', { packetizers: 'cmafstreamingpacketizer' }),
      ...Object.fromEntries(names.slice(0, number).map((name) => [name, CMAF_FILE])),
    });
    expect(await troubles(packager)).toEqual(
      severity === undefined
        ? []
        : [expect.objectContaining({ severity, code: 'cmaf_lines', message: expect.stringContaining(text) })],
    );
  },
);

test.each([
  ['manifest.csv', 'streamid,contentId\nnews_360p,n\nradio,r\n'],
  ['ids.csv', 'streamid\nnews_360p\nradio\n'],
  [
    'manifest.yaml',
    'defaults: { client: acme, clientApiKeyEnv: NOT_SET_HERE }\nstreams: [news_360p, { streamid: radio, clientApiKeyFile: none.txt }]\n',
  ],
])(
  'takes %s as apply does, without the client, the contents and the keys that are told elsewhere',
  async (name, text) => {
    const packager = await install({ [name]: text });
    const found = await troubles(packager, ['--manifest', name]);
    expect(found.map(({ code, message }) => [code, message])).toEqual([
      ['key_file_missing', 'No key file for radio'],
    ]);
  },
);

test('takes --manifest by its former name, too, but not by both', async () => {
  const packager = await install({ 'ids.csv': 'streamid\nradio\n' });
  const found = await troubles(packager, ['--lineup', 'ids.csv']);
  expect(found.map(({ message }) => message)).toEqual(['No key file for radio']);
  const { code, problems } = await runDoctor(packager, ['--lineup', 'ids.csv', '--manifest', 'ids.csv']);
  expect([code, problems]).toEqual([2, [expect.stringContaining('cannot be used with')]]);
});
