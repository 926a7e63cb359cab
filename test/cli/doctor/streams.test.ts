import { CENC_ONLY } from '../../support/post-manual';
import { applicationXml, install, KEY_FILE, smil } from './installation';
import { runDoctor, troubles } from './run-doctor';

test.each<[kind: string, changes: Record<string, string | undefined>, finding: Record<string, string>]>([
  [
    'one rendition of a group has no key file',
    { 'keys/news_720p.key': undefined },
    {
      severity: 'fault',
      code: 'group_partly_keyed',
      message: 'content/news.smil: no key file for news_720p, so part of the group plays in the clear',
      todo: 'provision these streams: each rendition needs its own file',
    },
  ],
  [
    'no rendition of a group has one',
    { 'content/film.smil': smil('mp4:film.mp4') },
    {
      severity: 'warning',
      code: 'group_without_keys',
      message: 'content/film.smil: no stream of it has a key file (film.mp4)',
      todo: 'provision them, if this content is to be protected',
    },
  ],
  [
    'the key file of an on-demand stream lacks the ending of its name',
    { 'content/film.smil': smil('mp4:film_lo.mp4'), 'keys/film_lo.key': KEY_FILE },
    {
      severity: 'warning',
      code: 'group_without_keys',
      message:
        'content/film.smil: no stream of it has a key file (film_lo.mp4 (there is film_lo.key, but the name keeps its ending: film_lo.mp4.key))',
      todo: 'provision them, if this content is to be protected',
    },
  ],
  [
    'a .stream file names a stream without one',
    { 'conf/live/gate.stream': 'udp://127.0.0.1:1', 'applications/vod/door.stream': 'udp://127.0.0.1:2' },
    {
      severity: 'warning',
      code: 'stream_without_key',
      message: 'No key file for gate.stream, door.stream, which a .stream file names',
      todo: 'provision them, if these streams are to be protected',
    },
  ],
  [
    'a SMIL document can’t be read',
    { 'content/bad.smil': '<smil>' },
    {
      severity: 'warning',
      code: 'unreadable_smil',
      message: 'content/bad.smil is not well-formed XML: see line 1',
      todo: 'correct the file: its streams are not checked',
    },
  ],
])('says exactly what is wrong when %s', async (_kind, changes, finding) => {
  expect(await troubles(await install(changes))).toEqual([{ about: 'keys', ...finding }]);
});

test('checks the streams that the user names, by their stream ids and by their names in the key folder', async () => {
  const own = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys/\${com.wowza.wms.context.Application}</KeyDir>`;
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', { keyDir: own, storageDir: '/no/content' }),
    'keys/live/a.key': KEY_FILE,
  });
  const args = ['--application', 'live', '--streams', 'live/a,a', '--streams'];
  expect(await troubles(packager, [...args, 'a'])).toEqual([]);
  expect(await troubles(packager, [...args, 'b'])).toEqual([
    {
      about: '3 streams',
      severity: 'fault',
      code: 'key_file_missing',
      message: 'No key file for b',
      todo: 'provision them with packager-drm put, or a manifest with packager-drm apply',
    },
  ]);
});

test('tells the faults of key files, errors first, each with its first and how many more', async () => {
  const packager = await install({
    'keys/camera.stream.key': KEY_FILE.replaceAll('\n', '\r\n'),
    'keys/news_720p.key': KEY_FILE.replace('pcTs6CEp98A=', 'AAAAAAAAAAA=').replace(/^.*-algorithm.*\n/m, ''),
  });
  expect(await troubles(packager)).toEqual([
    {
      about: 'keys',
      severity: 'fault',
      code: 'key_file_faulty',
      message:
        'news_720p: mpegdashstreaming-cenc-algorithm is missing; add it, the other mpegdashstreaming-cenc lines need it. And 1 more fault.',
      todo: 'packager-drm check shows all of it; correct the values and provision news_720p again',
    },
    {
      about: 'keys',
      severity: 'warning',
      code: 'key_file_doubtful',
      message: 'camera.stream: The file has line ends of Windows (CR LF); save it with line feeds.',
    },
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
        : [
            expect.objectContaining({
              about: 'live',
              severity,
              code: 'cmaf_lines',
              message: expect.stringContaining(text),
            }),
          ],
    );
  },
);

test('asks for all streams of a manifest', async () => {
  const streams = ['news_360p', 'radio'].map((streamid) => ({ streamid, ...CENC_ONLY }));
  const packager = await install({ 'manifest.json': JSON.stringify({ streams }) });
  const found = await troubles(packager, ['--manifest', 'manifest.json']);
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['key_file_missing', 'No key file for radio'],
  ]);
});

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
