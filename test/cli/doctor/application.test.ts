import { join } from 'node:path';
import fs from 'fs-extra';
import {
  type ApplicationParts,
  applicationXml,
  EXT_X_VERSION,
  install,
  KEY_FILE,
  property,
  SESSION_ID,
  smil,
} from './installation';
import { lineOf, runDoctor, troubles } from './run-doctor';

const properties = (...settings: string[]) => ({
  httpStreamer: `<Properties>${settings.join('')}</Properties>`,
});

/** The doctor's findings for the application `live` with this configuration, one a line. */
async function troublesOf(parts: ApplicationParts, others: Record<string, string> = {}) {
  const found = await troubles(
    await install({ 'conf/live/Application.xml': applicationXml('live', parts), ...others }),
  );
  return found.filter(({ about }) => about === 'live').map(lineOf);
}

const sessionId = (value: string, type = 'Boolean', name = 'cupertinoAppendQueryParamsToEncUrl') =>
  properties(property(name, value, type), EXT_X_VERSION);
const version = (value: string) => properties(SESSION_ID, property('cupertinoExtXVersion', value, 'Integer'));

const DEFECTS: Readonly<Record<string, ApplicationParts>> = {
  'the session id setting is not there': properties(EXT_X_VERSION),
  'there is no Properties': { httpStreamer: '' },
  'it is true': sessionId('true'),
  'it has no value': sessionId(''),
  'it has another type': sessionId('false', 'String'),
  'it is there twice': properties(
    SESSION_ID,
    property('cupertinoAppendQueryParamsToEncUrl', 'true'),
    EXT_X_VERSION,
  ),
  'it is in the application': { ...properties(EXT_X_VERSION), properties: SESSION_ID },
  'its name is misspelt': sessionId('false', 'Boolean', 'cupertinoAppendQueryParamsToEncURL'),
  'the version is not there': properties(SESSION_ID),
  'the version is 4': version('4'),
  'the version is none': version('-5'),
  'the version is higher': version('7'),
  'HLS is not served': { streamers: 'smoothstreaming, mpegdashstreaming' },
  'HLS is not packaged': { packetizers: 'mpegdashstreamingpacketizer' },
  'MPEG-DASH is not packaged': { packetizers: 'cupertinostreamingpacketizer' },
  'a module gives the keys': { properties: property('cupertinoEncryptionAPIBased', 'true', 'Boolean') },
  'the key folder has an unknown variable': { keyDir: `<KeyDir>\${SourceStreamName}/keys</KeyDir>` },
  'the key folder is a relative path': { keyDir: '<KeyDir>keys</KeyDir>' },
};

test('says exactly what is wrong, and what to do', async () => {
  const reported: string[] = [];
  for (const [defect, parts] of Object.entries(DEFECTS))
    reported.push(`${defect}:`, ...(await troublesOf(parts)).map((line) => `  ${line}`));
  expect(reported.join('\n')).toMatchInlineSnapshot(`
"the session id setting is not there:
  fault session_id: The session id is appended to the license address, which is the default of the packager → add in Root/Application/HTTPStreamer/Properties: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
there is no Properties:
  fault session_id: The session id is appended to the license address, which is the default of the packager → add in Root/Application: <HTTPStreamer><Properties><Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property></Properties></HTTPStreamer>
  fault ext_x_version: EXT-X-VERSION is the packager's default, 3: SAMPLE-AES needs 5 → add in Root/Application: <HTTPStreamer><Properties><Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property></Properties></HTTPStreamer>
it is true:
  fault session_id: The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is "true" → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
it has no value:
  fault session_id: The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is empty → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
it has another type:
  warning session_id_type: The session id is not appended to the license address, but its Type is "String" where the packager's documentation has Boolean → write <Type>Boolean</Type>
it is there twice:
  fault session_id_twice: cupertinoAppendQueryParamsToEncUrl is set more than once, to "false" and "true" → in Root/Application/HTTPStreamer/Properties leave only: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
it is in the application:
  fault session_id_misplaced: cupertinoAppendQueryParamsToEncUrl is in Root/Application/Properties, where the packager does not look for it → remove it there and add in Root/Application/HTTPStreamer/Properties: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
its name is misspelt:
  fault session_id_misspelt: cupertinoAppendQueryParamsToEncURL in Root/Application/HTTPStreamer/Properties is not a setting of the packager; the name is cupertinoAppendQueryParamsToEncUrl → remove it and add in Root/Application/HTTPStreamer/Properties: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
the version is not there:
  fault ext_x_version: EXT-X-VERSION is the packager's default, 3: SAMPLE-AES needs 5 → add in Root/Application/HTTPStreamer/Properties: <Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property>
the version is 4:
  fault ext_x_version: SAMPLE-AES needs EXT-X-VERSION 5; it is "4" → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property>
the version is none:
  fault ext_x_version: SAMPLE-AES needs EXT-X-VERSION 5; it is "-5" → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property>
the version is higher:
  warning ext_x_version: EXT-X-VERSION is 7: enough for SAMPLE-AES, but key files are documented with 5 → set it to 5 unless a higher version is intended
HLS is not served:
  fault hls_not_served: HLS is not served: HTTPStreamers has no cupertinostreaming → change Root/Application/HTTPStreamers to: <HTTPStreamers>smoothstreaming, mpegdashstreaming, cupertinostreaming</HTTPStreamers>
HLS is not packaged:
  fault hls_not_packaged: HLS is not packaged: LiveStreamPacketizers has neither cupertinostreamingpacketizer nor cmafstreamingpacketizer → change Root/Application/Streams/LiveStreamPacketizers to: <LiveStreamPacketizers>mpegdashstreamingpacketizer, cupertinostreamingpacketizer</LiveStreamPacketizers>
MPEG-DASH is not packaged:
  fault dash_not_packaged: MPEG-DASH is not packaged: LiveStreamPacketizers has neither mpegdashstreamingpacketizer nor cmafstreamingpacketizer → change Root/Application/Streams/LiveStreamPacketizers to: <LiveStreamPacketizers>cupertinostreamingpacketizer, mpegdashstreamingpacketizer</LiveStreamPacketizers>
a module gives the keys:
  warning keys_from_module: The HLS keys come from a module, not from key files: cupertinoEncryptionAPIBased is true → remove it from Root/Application/Properties if the key files are to be used
the key folder has an unknown variable:
  fault key_dir: KeyDir holds \${SourceStreamName}, which is not a variable of an Application.xml → change Root/Application/Streams/KeyDir to: <KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys</KeyDir>
the key folder is a relative path:
  fault key_dir: KeyDir is a relative path, which depends on the folder the packager was started in → change Root/Application/Streams/KeyDir to: <KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys</KeyDir>"
`);
});

test('takes a setting from the defaults of all applications', async () => {
  const defaults = (name: string, version = EXT_X_VERSION) =>
    `<Root><HTTPStreamers><HTTPStreamer><Name>${name}</Name><Properties>${SESSION_ID}${version}</Properties></HTTPStreamer></HTTPStreamers></Root>`;
  const parts = properties();
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('cupertinostreaming') })).toEqual([]);
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('sanjosestreaming') })).toHaveLength(2);
  const ofVersion = async (version: string) => {
    const text = defaults('cupertinostreaming', property('cupertinoExtXVersion', version, 'Integer'));
    const [found = ''] = await troublesOf(parts, { 'conf/HTTPStreamers.xml': text });
    return found.split(' → ')[0];
  };
  expect(await ofVersion('4')).toBe(
    'fault ext_x_version: SAMPLE-AES needs EXT-X-VERSION 5; it is "4" by conf/HTTPStreamers.xml',
  );
  expect(await ofVersion('6')).toBe(
    'warning ext_x_version: EXT-X-VERSION is 6 by conf/HTTPStreamers.xml: enough for SAMPLE-AES, but key files are documented with 5',
  );
});

test('finds nothing wrong with other ways to write it, and other kinds of application', async () => {
  const sound: readonly ApplicationParts[] = [
    sessionId(' FALSE\n'),
    { appType: 'LiveEdge', streamType: 'liverepeater-edge', packetizers: 'cupertinostreamingrepeater' },
    { appType: 'VOD', streamType: 'default', packetizers: '' },
    { appType: '', keyDir: '' },
    { streamers: '\n cupertinostreaming,\n\n ,mpegdashstreaming , \n' },
  ];
  for (const parts of sound) expect(await troublesOf(parts)).toEqual([]);
});

test.each([
  ['is cut off', '<Root version="1"><Application><Name>live</Name>', 'is not well-formed XML: see line 1'],
  ['is another document', '<Server></Server>', 'has no Root/Application'],
])('goes on with the others when a configuration %s', async (_kind, text, fault) => {
  const vod = { appType: 'VOD', streamType: 'default', streamers: 'mpegdashstreaming' };
  const files = { 'conf/live/Application.xml': text, 'conf/vod/Application.xml': applicationXml('vod', vod) };
  expect((await troubles(await install(files))).map(lineOf)).toEqual([
    `fault unreadable_configuration: conf/live/Application.xml ${fault} → change the file so that it can be checked; it is not known whether the packager can read it`,
    expect.stringMatching(/^fault hls_not_served: /),
  ]);
});

test('checks an application without a configuration of its own by the one that all share', async () => {
  const packager = await install({
    'applications/event/.keep': '',
    'conf/Application.xml': applicationXml('', { streamers: 'cupertinostreaming' }),
  });
  const found = await troubles(packager, ['--application', 'event']);
  expect(found).toEqual([expect.objectContaining({ about: 'event', code: 'dash_not_served' })]);
});

test('warns of an application that the packager does not start', async () => {
  const found = await troubles(await install({ 'applications/vod/.keep': undefined }));
  expect(found.map(lineOf)).toEqual([
    'warning no_application_folder: applications/vod does not exist, so the packager does not start this application → make the folder applications/vod, or delete conf/vod',
  ]);
});

describe('the streams', () => {
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
    "a SMIL document can't be read": { 'content/bad.smil': '<smil>' },
    'key files are faulty': {
      'keys/camera.stream.key': KEY_FILE.replaceAll('\n', '\r\n'),
      'keys/news_720p.key': KEY_FILE.replace('pcTs6CEp98A=', 'AAAAAAAAAAA=').replace(
        /^.*-algorithm.*\n/m,
        '',
      ),
    },
  };

  test('says exactly what is wrong, and what to do', async () => {
    const reported: string[] = [];
    for (const [defect, changes] of Object.entries(DEFECTS))
      for (const finding of await troubles(await install(changes)))
        reported.push(`${defect}:\n  ${lineOf(finding)}`);
    expect(reported.join('\n')).toMatchInlineSnapshot(`
"one rendition of a group has no key file:
  fault group_partly_keyed: content/news.smil: no key file for news_720p, so part of the group plays in the clear → provision these streams: each rendition needs its own file
no rendition of a group has one:
  warning group_without_keys: content/film.smil: no stream of it has a key file (film.mp4) → provision them, if this content should be protected
the ending of the name is left out:
  warning group_without_keys: content/film.smil: no stream of it has a key file (film_lo.mp4 (there is film_lo.key, but the name keeps its ending: film_lo.mp4.key)) → provision them, if this content should be protected
a .stream file names streams without one:
  warning stream_without_key: No key file for gate.stream, door.stream, which a .stream file names → provision them, if these streams should be protected
a SMIL document can't be read:
  warning unreadable_smil: content/bad.smil is not well-formed XML: see line 1 → correct the file: its streams are not checked
key files are faulty:
  fault key_file_faulty: news_720p: mpegdashstreaming-cenc-algorithm is missing; add it, the other mpegdashstreaming-cenc lines need it. And 1 more fault. → packager-drm check shows all of it; correct the values and provision news_720p again
key files are faulty:
  warning key_file_doubtful: camera.stream: The file has Windows line ends; save it with line feeds (LF)."
`);
  });

  test('finds the documents that links in a content folder lead to, and passes over links to folders and devices', async () => {
    const packager = await install({ 'shared/film.smil': smil('film'), 'shared/gate.stream': 'udp://x:1' });
    await fs.symlink(join('..', 'shared'), join(packager, 'content', 'folder.smil'));
    for (const name of ['film.smil', 'gate.stream'])
      await fs.symlink(join('..', 'shared', name), join(packager, 'content', name));
    expect((await troubles(packager)).map(({ code }) => code)).toEqual([
      'group_without_keys',
      'stream_without_key',
    ]);
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
      const finding = { severity, code: 'cmaf_lines', message: expect.stringContaining(text) };
      expect(await troubles(packager)).toEqual(severity ? [expect.objectContaining(finding)] : []);
    },
  );

  test.each([
    ['ids.csv', 'streamid\nnews_360p\nradio\n'],
    [
      'manifest.yaml',
      'defaults: { client: acme, clientApiKeyEnv: NOT_SET_HERE }\nstreams: [news_360p, { streamid: radio, clientApiKeyFile: none.txt }]\n',
    ],
  ])(
    'takes %s as apply does, without the client, the contents and the keys that are reported elsewhere',
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
});
