import {
  type ApplicationParts,
  applicationXml,
  EXT_X_VERSION,
  install,
  property,
  SESSION_ID,
} from './installation';
import { lineOf, troubles } from './run-doctor';

const properties = (...settings: string[]) => ({
  httpStreamer: `<Properties>${settings.join('')}</Properties>`,
});

/** What the doctor says of the application `live` when its configuration is this, a line for each finding. */
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
  'it stands in a comment': properties(`<!-- ${SESSION_ID} -->`, EXT_X_VERSION),
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
  'MPEG-DASH is misspelt': { streamers: 'cupertinostreaming, mpeg-dashstreaming' },
  'HLS is not packaged': { packetizers: 'mpegdashstreamingpacketizer' },
  'MPEG-DASH is not packaged': { packetizers: 'cupertinostreamingpacketizer' },
  'a module gives the keys': { properties: property('cupertinoEncryptionAPIBased', 'true', 'Boolean') },
  'the key folder has an unknown variable': { keyDir: `<KeyDir>\${SourceStreamName}/keys</KeyDir>` },
  'the key folder is a relative path': { keyDir: '<KeyDir>keys</KeyDir>' },
};

test('says exactly what is wrong, and what to do', async () => {
  const told: string[] = [];
  for (const [defect, parts] of Object.entries(DEFECTS))
    told.push(`${defect}:`, ...(await troublesOf(parts)).map((line) => `  ${line}`));
  expect(told.join('\n')).toMatchInlineSnapshot(`
"the session id setting is not there:
  fault session_id: The session id is appended to the license address, which is the default of the packager → add in Root/Application/HTTPStreamer/Properties: <Property><Name>cupertinoAppendQueryParamsToEncUrl</Name><Value>false</Value><Type>Boolean</Type></Property>
it stands in a comment:
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
  fault ext_x_version: EXT-X-VERSION is "4": SAMPLE-AES needs 5 → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property>
the version is none:
  fault ext_x_version: EXT-X-VERSION is "-5": SAMPLE-AES needs 5 → change the Value in Root/Application/HTTPStreamer/Properties to: <Property><Name>cupertinoExtXVersion</Name><Value>5</Value><Type>Integer</Type></Property>
the version is higher:
  warning ext_x_version: EXT-X-VERSION is 7: enough for SAMPLE-AES, but key files are documented with 5 → set it to 5 unless a higher version is intended
HLS is not served:
  fault hls_not_served: HLS is not served: HTTPStreamers has no cupertinostreaming → change Root/Application/HTTPStreamers to: <HTTPStreamers>smoothstreaming, mpegdashstreaming, cupertinostreaming</HTTPStreamers>
MPEG-DASH is misspelt:
  fault dash_not_served: MPEG-DASH is not served: HTTPStreamers has no mpegdashstreaming (mpeg-dashstreaming is none) → change Root/Application/HTTPStreamers to: <HTTPStreamers>cupertinostreaming, mpegdashstreaming</HTTPStreamers>
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
  const defaults = (name: string) =>
    `<Root><HTTPStreamers><HTTPStreamer><Name>${name}</Name><Properties>${SESSION_ID}${EXT_X_VERSION}</Properties></HTTPStreamer></HTTPStreamers></Root>`;
  const parts = properties();
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('cupertinostreaming') })).toEqual([]);
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('sanjosestreaming') })).toHaveLength(2);
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
  ['has a DOCTYPE', '<!DOCTYPE Root [<!ENTITY a "b">]><Root/>', 'has a DOCTYPE; leave it out'],
  ['is another document', '<Server></Server>', 'has no Root/Application'],
  ['is empty', '', 'is empty'],
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
