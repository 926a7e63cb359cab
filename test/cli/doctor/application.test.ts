import {
  type ApplicationParts,
  applicationXml,
  EXT_X_VERSION,
  install,
  property,
  SESSION_ID,
} from './installation';
import { troubles } from './run-doctor';

const PLACE = 'Root/Application/HTTPStreamer/Properties';
const SESSION_ID_XML =
  '<Property>\n  <Name>cupertinoAppendQueryParamsToEncUrl</Name>\n  <Value>false</Value>\n  <Type>Boolean</Type>\n</Property>';
const EXT_X_VERSION_XML =
  '<Property>\n  <Name>cupertinoExtXVersion</Name>\n  <Value>5</Value>\n  <Type>Integer</Type>\n</Property>';
const KEY_DIR_XML = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys</KeyDir>`;
const UNSET = 'The session id is appended to the license address, which is the default of the packager';

const properties = (...settings: string[]) => ({
  httpStreamer: `<Properties>${settings.join('')}</Properties>`,
});

/** What the doctor says of the application `live` when its configuration is this. */
async function troublesOf(parts: ApplicationParts, others: Record<string, string> = {}) {
  const found = await troubles(
    await install({ 'conf/live/Application.xml': applicationXml('live', parts), ...others }),
  );
  return found.filter(({ about }) => about === 'live').map(({ about: _about, ...finding }) => finding);
}

type Row = [defect: string, parts: ApplicationParts, finding: Record<string, string>];

test.each<Row>([
  [
    'the session id setting is not there',
    properties(EXT_X_VERSION),
    { severity: 'fault', code: 'session_id', message: UNSET, todo: `add in ${PLACE}`, xml: SESSION_ID_XML },
  ],
  [
    'it stands in a comment',
    properties(`<!-- ${SESSION_ID} -->`, EXT_X_VERSION),
    { severity: 'fault', code: 'session_id', message: UNSET, todo: `add in ${PLACE}`, xml: SESSION_ID_XML },
  ],
  [
    'it is true',
    properties(property('cupertinoAppendQueryParamsToEncUrl', 'true', 'Boolean'), EXT_X_VERSION),
    {
      severity: 'fault',
      code: 'session_id',
      message:
        'The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is "true"',
      todo: `change the Value in ${PLACE} to`,
      xml: SESSION_ID_XML,
    },
  ],
  [
    'it has no value',
    properties(property('cupertinoAppendQueryParamsToEncUrl', '', 'Boolean'), EXT_X_VERSION),
    {
      severity: 'fault',
      code: 'session_id',
      message:
        'The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is empty',
      todo: `change the Value in ${PLACE} to`,
      xml: SESSION_ID_XML,
    },
  ],
  [
    'it has another type',
    properties(property('cupertinoAppendQueryParamsToEncUrl', 'false', 'String'), EXT_X_VERSION),
    {
      severity: 'warning',
      code: 'session_id_type',
      message:
        'The session id is not appended to the license address, but its Type is "String" where the packager\'s documentation has Boolean',
      todo: 'write <Type>Boolean</Type>',
    },
  ],
  [
    'it is there twice with other values',
    properties(SESSION_ID, property('cupertinoAppendQueryParamsToEncUrl', 'true', 'Boolean'), EXT_X_VERSION),
    {
      severity: 'fault',
      code: 'session_id_twice',
      message: 'cupertinoAppendQueryParamsToEncUrl is set more than once, to "false" and "true"',
      todo: `in ${PLACE} leave only`,
      xml: SESSION_ID_XML,
    },
  ],
  [
    'it stands among the properties of the application',
    { ...properties(EXT_X_VERSION), properties: SESSION_ID },
    {
      severity: 'fault',
      code: 'session_id_misplaced',
      message:
        'cupertinoAppendQueryParamsToEncUrl is in Root/Application/Properties, where the packager does not look for it',
      todo: `remove it there and add in ${PLACE}`,
      xml: SESSION_ID_XML,
    },
  ],
  [
    'its name is misspelt',
    properties(property('cupertinoAppendQueryParamsToEncURL', 'false', 'Boolean'), EXT_X_VERSION),
    {
      severity: 'fault',
      code: 'session_id_misspelt',
      message: `cupertinoAppendQueryParamsToEncURL in ${PLACE} is not a setting of the packager: cupertinoAppendQueryParamsToEncUrl is meant`,
      todo: `remove it and add in ${PLACE}`,
      xml: SESSION_ID_XML,
    },
  ],
  [
    'the version is not there',
    properties(SESSION_ID),
    {
      severity: 'fault',
      code: 'ext_x_version',
      message: "EXT-X-VERSION is the packager's default, 3: SAMPLE-AES needs 5",
      todo: `add in ${PLACE}`,
      xml: EXT_X_VERSION_XML,
    },
  ],
  ...(['3', '4', 'five', '-5'] as const).map(
    (version): Row => [
      `the version is ${version}`,
      properties(SESSION_ID, property('cupertinoExtXVersion', version, 'Integer')),
      {
        severity: 'fault',
        code: 'ext_x_version',
        message: `EXT-X-VERSION is "${version}": SAMPLE-AES needs 5`,
        todo: `change the Value in ${PLACE} to`,
        xml: EXT_X_VERSION_XML,
      },
    ],
  ),
  [
    'the version is higher',
    properties(SESSION_ID, property('cupertinoExtXVersion', '7', 'Integer')),
    {
      severity: 'warning',
      code: 'ext_x_version',
      message: 'EXT-X-VERSION is 7: enough for SAMPLE-AES, but key files are documented with 5',
      todo: 'set it to 5 unless a higher version is meant',
    },
  ],
  [
    'HLS is not served',
    { streamers: 'smoothstreaming, mpegdashstreaming' },
    {
      severity: 'fault',
      code: 'hls_not_served',
      message: 'HLS is not served: HTTPStreamers has no cupertinostreaming',
      todo: 'change Root/Application/HTTPStreamers to',
      xml: '<HTTPStreamers>smoothstreaming, mpegdashstreaming, cupertinostreaming</HTTPStreamers>',
    },
  ],
  [
    'MPEG-DASH is misspelt',
    { streamers: 'cupertinostreaming, mpeg-dashstreaming' },
    {
      severity: 'fault',
      code: 'dash_not_served',
      message: 'MPEG-DASH is not served: HTTPStreamers has no mpegdashstreaming (mpeg-dashstreaming is none)',
      todo: 'change Root/Application/HTTPStreamers to',
      xml: '<HTTPStreamers>cupertinostreaming, mpegdashstreaming</HTTPStreamers>',
    },
  ],
  [
    'HLS is not packaged',
    { packetizers: 'mpegdashstreamingpacketizer' },
    {
      severity: 'fault',
      code: 'hls_not_packaged',
      message:
        'HLS is not packaged: LiveStreamPacketizers has neither cupertinostreamingpacketizer nor cmafstreamingpacketizer',
      todo: 'change Root/Application/Streams/LiveStreamPacketizers to',
      xml: '<LiveStreamPacketizers>mpegdashstreamingpacketizer, cupertinostreamingpacketizer</LiveStreamPacketizers>',
    },
  ],
  [
    'MPEG-DASH is not packaged',
    { packetizers: 'cupertinostreamingpacketizer' },
    {
      severity: 'fault',
      code: 'dash_not_packaged',
      message:
        'MPEG-DASH is not packaged: LiveStreamPacketizers has neither mpegdashstreamingpacketizer nor cmafstreamingpacketizer',
      todo: 'change Root/Application/Streams/LiveStreamPacketizers to',
      xml: '<LiveStreamPacketizers>cupertinostreamingpacketizer, mpegdashstreamingpacketizer</LiveStreamPacketizers>',
    },
  ],
  [
    'a module gives the keys',
    { properties: property('cupertinoEncryptionAPIBased', 'true', 'Boolean') },
    {
      severity: 'warning',
      code: 'keys_from_module',
      message: 'The HLS keys come from a module, not from key files: cupertinoEncryptionAPIBased is true',
      todo: 'remove it from Root/Application/Properties if the key files are to be used',
    },
  ],
  [
    'the key folder holds a variable that the packager does not have',
    { keyDir: `<KeyDir>\${SourceStreamName}/keys</KeyDir>` },
    {
      severity: 'fault',
      code: 'key_dir',
      message: `KeyDir holds \${SourceStreamName}, which is not a variable of an Application.xml`,
      todo: 'change Root/Application/Streams/KeyDir to',
      xml: KEY_DIR_XML,
    },
  ],
  [
    'the key folder is a relative path',
    { keyDir: '<KeyDir>keys</KeyDir>' },
    {
      severity: 'fault',
      code: 'key_dir',
      message: 'KeyDir is a relative path, which depends on the folder the packager was started in',
      todo: 'change Root/Application/Streams/KeyDir to',
      xml: KEY_DIR_XML,
    },
  ],
])('says exactly what is wrong when %s', async (_defect, parts, finding) => {
  expect(await troublesOf(parts)).toEqual([finding]);
});

test('gives the whole element when HTTPStreamer has no Properties', async () => {
  expect(await troublesOf({ httpStreamer: '' })).toEqual([
    {
      severity: 'fault',
      code: 'session_id',
      message: UNSET,
      todo: 'add in Root/Application',
      xml: '<HTTPStreamer>\n  <Properties>\n    <Property>\n      <Name>cupertinoAppendQueryParamsToEncUrl</Name>\n      <Value>false</Value>\n      <Type>Boolean</Type>\n    </Property>\n  </Properties>\n</HTTPStreamer>',
    },
    expect.objectContaining({ code: 'ext_x_version', todo: 'add in Root/Application' }),
  ]);
});

test('takes a setting from the defaults of all applications', async () => {
  const defaults = (name: string) =>
    `<Root><HTTPStreamers><HTTPStreamer><Name>${name}</Name><Properties>${SESSION_ID}${EXT_X_VERSION}</Properties></HTTPStreamer></HTTPStreamers></Root>`;
  const parts = properties();
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('cupertinostreaming') })).toEqual([]);
  expect(await troublesOf(parts, { 'conf/HTTPStreamers.xml': defaults('sanjosestreaming') })).toHaveLength(2);
});

test.each<[kind: string, parts: ApplicationParts]>([
  [
    'a value in capitals and white space',
    properties(property('cupertinoAppendQueryParamsToEncUrl', ' FALSE\n', 'Boolean'), EXT_X_VERSION),
  ],
  [
    'an edge, which passes on what its origin packages',
    { appType: 'LiveEdge', streamType: 'liverepeater-edge', packetizers: 'cupertinostreamingrepeater' },
  ],
  [
    'an on-demand application without packetizers',
    { appType: 'VOD', streamType: 'default', packetizers: '' },
  ],
  ['an application of an old version, without type and key folder', { appType: '', keyDir: '' }],
  [
    'lists with line breaks and empty places',
    { streamers: '\n cupertinostreaming,\n\n ,mpegdashstreaming , \n' },
  ],
])('finds nothing wrong with %s', async (_kind, parts) => {
  expect(await troublesOf(parts)).toEqual([]);
});

test.each([
  ['is cut off', '<Root version="1"><Application><Name>live</Name>', 'is not well-formed XML: see line 1'],
  ['has a DOCTYPE', '<!DOCTYPE Root [<!ENTITY a "b">]><Root/>', 'has a DOCTYPE; leave it out'],
  ['is another document', '<Server></Server>', 'has no Root/Application'],
  ['is empty', '', 'is empty'],
])('goes on with the others when a configuration %s', async (_kind, text, fault) => {
  const found = await troubles(
    await install({
      'conf/live/Application.xml': text,
      'conf/vod/Application.xml': applicationXml('vod', {
        appType: 'VOD',
        streamType: 'default',
        streamers: 'mpegdashstreaming',
      }),
    }),
  );
  expect(found).toEqual([
    {
      about: 'live',
      severity: 'fault',
      code: 'unreadable_configuration',
      message: `conf/live/Application.xml ${fault}`,
      todo: 'change the file so that it can be checked; whether the packager reads it as it is, is not known here',
    },
    expect.objectContaining({ about: 'vod', code: 'hls_not_served' }),
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
  expect(await troubles(await install({ 'applications/vod/.keep': undefined }))).toEqual([
    {
      about: 'vod',
      severity: 'warning',
      code: 'no_application_folder',
      message: 'applications/vod is not there, so the packager does not start this application',
      todo: 'make the folder applications/vod, or delete conf/vod',
    },
  ]);
});
