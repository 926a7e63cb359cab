import { join } from 'node:path';
import fs from 'fs-extra';
import { parse } from 'yaml';
import type { Manifest } from '../../../src/cli/manifest/entries';
import { readManifest } from '../../../src/cli/manifest/read-manifest';
import { readYaml } from '../../../src/cli/yaml-fields';
import { CMAF_CBCS_REFUSED } from '../../../src/drm/cmaf-cbcs';
import { folderOfEachTest } from '../../support/after-test';
import { problemsOf } from '../problems-of';

const cwd = folderOfEachTest();

const ALL = { variable: () => true, file: () => true };

async function read(name: string, text: string, given = {}): Promise<Manifest> {
  await fs.writeFile(join(cwd, name), text);
  return readManifest({ cwd, env: { ACME_KEY: 'key-of-the-variable' } }, name, { given, allowed: ALL });
}

async function bodies(name: string, text: string, given = {}) {
  const items = await read(name, text, given);
  const of = (wanted: string) => items.filter(({ kind }) => kind === wanted).map(({ body }) => body);
  return { streams: of('streams'), groups: of('groups') };
}

const faults = (name: string, text: string) => problemsOf(() => read(name, text));

const CENC = { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' };
const FAIRPLAY = { key: 'CBF76BB43B9A54254A5FC20074A3A53B', iv: '1A3F2AA76D84742DD123E3E50E7BC681' };

const ACME = { client: 'acme', clientApiKey: 'key-of-the-variable' };
const NEWS = { streamid: 'live/news', contentId: '0123', ...ACME };
const OTHER = { client: 'other', clientApiKey: 'key-of-the-file' };
const SPORT = { streamid: 'live/sport', contentId: 's-1', ...OTHER, cmaf: false };
const EXPECTED = [
  { ...NEWS, cmaf: 'cenc' },
  SPORT,
  {
    streamid: 'film',
    contentId: 'f-1',
    cmaf: 'cenc',
    cenc: CENC,
    playready: { laurl: 'https://pr.example.com/f-1' },
    widevine: {},
    fairplay: { ...FAIRPLAY, laurl: 'skd://fp.example.com/film/f-1' },
  },
];

const YAML = `\
# a comment
defaults:
  client: acme
  clientApiKeyEnv: ACME_KEY
  cmaf: cenc
  playready: { laurl: "https://pr.example.com/{contentId}" }
  widevine: {}
  fairplay: { laurl: "skd://fp.example.com/{streamid}/{contentId}" }
streams:
  - { streamid: live/news, contentId: 0123 }
  - streamid: live/sport
    contentId: s-1
    client: other
    clientApiKeyFile: keys/other.txt
    cmaf: false
  - streamid: film
    contentId: f-1
    cenc: &keys { keyid: ${CENC.keyid}, contentkey: ${CENC.contentkey} }
    fairplay: { key: ${FAIRPLAY.key}, iv: ${FAIRPLAY.iv} }
`;

const JSON_TEXT = JSON.stringify(parse(YAML.replace('0123', '"0123"')), null, '\t');

test.each([
  ['manifest.yaml', YAML],
  ['manifest.yml', YAML.replaceAll('\n', '\r\n')],
  ['manifest.json', JSON_TEXT],
  ['manifest.JSON', `\u{feff}${JSON_TEXT}`],
])('reads streams with their defaults from %s', async (name, text) => {
  await fs.outputFile(join(cwd, 'keys', 'other.txt'), 'key-of-the-file\n');
  expect(await bodies(name, text)).toEqual({ streams: EXPECTED, groups: [] });
});

test.each([
  ['commas', ','],
  ['semicolons', ';'],
  ['tabs', '\t'],
])(
  'reads streams from a CSV file divided by %s, with defaults from the options',
  async (_name, delimiter) => {
    await fs.writeFile(join(cwd, 'other.txt'), 'key-of-the-file');
    const rows = [
      'streamid contentId client clientApiKeyFile cmaf cenc.keyid cenc.contentkey playready.laurl'.split(' '),
      ['live/news', '0123', '', '', '', '', '', ''],
      [' live/sport ', 's-1', 'other', 'other.txt', 'FALSE', '', '', ''],
      ['film', 'f-1', '', '', 'true', CENC.keyid, CENC.contentkey, '"https://pr.example.com/a,b;c"'],
    ];
    const text = `\u{feff}${rows.map((row) => row.join(delimiter)).join('\r\n')}\r\n\r\n`;
    const given = { ...ACME, cmaf: true };
    expect(await bodies('manifest.csv', text, given)).toEqual({
      streams: [
        { ...NEWS, cmaf: true },
        SPORT,
        {
          streamid: 'film',
          contentId: 'f-1',
          cmaf: true,
          cenc: CENC,
          playready: { laurl: 'https://pr.example.com/a,b;c' },
        },
      ],
      groups: [],
    });
  },
);

test('names the content after the stream where the defaults say so', async () => {
  const defaults = 'defaults: { client: acme, clientApiKey: k, contentId: "show-{name}" }\n';
  const text = `${defaults}streams: [live/news, { streamid: film, contentId: own }]
groups:
  - { members: [a, { streamid: b, contentId: own-b }], folder: live, keys: each }
  - { members: [c], contentId: of-the-group }
  - { members: [d] }
`;
  const common = { client: 'acme', clientApiKey: 'k' };
  expect(await bodies('manifest.yaml', text)).toEqual({
    streams: [
      { streamid: 'live/news', contentId: 'show-news', ...common },
      { streamid: 'film', contentId: 'own', ...common },
    ],
    groups: [
      {
        members: [
          { streamid: 'a', contentId: 'show-a' },
          { streamid: 'b', contentId: 'own-b' },
        ],
        folder: 'live',
        keys: 'each',
        ...common,
      },
      { members: ['c'], contentId: 'of-the-group', ...common },
      { members: ['d'], ...common },
    ],
  });
});

const SMIL = '<smil><body><video src="mp4:hi"/><video src="mp4:lo"/></body></smil>';

test('names the content after each stream of a SMIL file where the defaults say so', async () => {
  await fs.writeFile(join(cwd, 'event.smil'), SMIL);
  const defaults = 'defaults: { client: c, clientApiKey: k, contentId: "show-{name}" }\n';
  const group = 'groups: [{ smil: event.smil, folder: live, keys: each }]\n';
  const members = ['hi', 'lo'].map((streamid) => ({ streamid, contentId: `show-${streamid}` }));
  expect((await bodies('manifest.yaml', defaults + group)).groups).toEqual([
    { members, folder: 'live', keys: 'each', client: 'c', clientApiKey: 'k' },
  ]);
});

test('sends a SMIL file next to the manifest', async () => {
  const text = 'smil,folder,keys,contentId,client,clientApiKey\n../smil/event.smil,live,same,e,c,k\n';
  await fs.outputFile(join(cwd, 'smil', 'event.smil'), SMIL);
  await fs.outputFile(join(cwd, 'sub', 'manifest.csv'), text);
  const items = readManifest({ cwd, env: {} }, 'sub/manifest.csv', { given: {}, allowed: ALL });
  expect(items).toEqual([
    {
      kind: 'groups',
      name: 'the group of ../smil/event.smil',
      line: 2,
      streamIds: ['live/hi', 'live/lo'],
      body: { smil: SMIL, folder: 'live', keys: 'same', contentId: 'e', client: 'c', clientApiKey: 'k' },
    },
  ]);
});

test('lets the options win over the defaults of the file, and a stream over both', async () => {
  const text = `defaults: { client: acme, clientApiKeyEnv: ACME_KEY }
streams: [{ streamid: a, contentId: a }, { streamid: b, contentId: b, client: own, clientApiKey: own-key }]
`;
  const { streams } = await bodies('manifest.yaml', text, { client: 'given', clientApiKey: 'given-key' });
  expect(streams).toEqual([
    { streamid: 'a', contentId: 'a', client: 'given', clientApiKey: 'given-key' },
    { streamid: 'b', contentId: 'b', client: 'own', clientApiKey: 'own-key' },
  ]);
});

test('names every fault of a file with its line', async () => {
  const text = `\
defaults:
  client: acme
  clientApiKeyFle: x
streams:
  - streamid: live/a
    contentid: a
  - live/b
  - streamid: live/a
    contentId: { a: 1 }
    cmaf: maybe
  - contentId: c
groups:
  - members: []
    keys: some
`;
  expect(await faults('manifest.yaml', text)).toEqual([
    'manifest.yaml:3: clientApiKeyFle is not a field of defaults; did you mean clientApiKeyFile?',
    'manifest.yaml:6: contentid is not a field of streams; did you mean contentId?',
    'manifest.yaml:9: streams.contentId must be text; put it in quotes.',
    'manifest.yaml:10: streams.cmaf must be true, false or cenc.',
    'manifest.yaml:11: streams.streamid is missing.',
    'manifest.yaml:13: groups.members is empty.',
    'manifest.yaml:14: groups.keys must be same, each, quality, or the keys of each quality.',
  ]);
});

test('names the missing fields of streams and groups together', async () => {
  const text = `\
streams:
  - live/a
  - streamid: live/b
    contentId: b
    clientApiKeyEnv: NOT_SET
  - { streamid: live/a, cenc: { keyid: ${CENC.keyid}, contentkey: ${CENC.contentkey} } }
groups:
  - { members: [b, c], folder: live/, clientApiKey: k, clientApiKeyFile: none.txt }
  - { client: acme, clientApiKeyFile: none.txt }
  - { client: acme, clientApiKey: k, smil: none.smil }
`;
  expect(await faults('manifest.yaml', text)).toEqual([
    'manifest.yaml:2: live/a: client, clientApiKey and contentId missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.',
    'manifest.yaml:3: live/b: client missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.',
    'manifest.yaml:5: clientApiKeyEnv names a variable that is not set.',
    'manifest.yaml:6: live/a is already on line 2; give each stream once.',
    'manifest.yaml:8: live/b is already on line 3; give each stream once.',
    'manifest.yaml:8: clientApiKey and clientApiKeyFile: give one of them.',
    'manifest.yaml:8: the group of b: client missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.',
    'manifest.yaml:9: a group has either members or smil, or with cpix tracks.',
    "manifest.yaml:9: clientApiKeyFile names a file that is empty, is not UTF-8 or can't be read.",
    "manifest.yaml:10: smil names a file that can't be read, or is not UTF-8.",
  ]);
});

const TWICE = 'streams: []\nstreams: []';
const NAMELESS =
  'an unknown field of streams (is a space missing after a colon?); the fields are streamid, client, clientApiKey, clientApiKeyFile, clientApiKeyEnv, contentId, cmaf, cenc, playready, widevine, fairplay, aes, cpix, track, kid, period, systems.';

const WRONG: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a.yaml': {
    'streams: [\n  {': ':2: is indented wrongly, or a bracket is not closed.',
    'streams:\n\t- x': ':2: is indented by a tab; indent with spaces.',
    [TWICE]: ':2: streams is given twice; give it once.',
    'streams: "x" "SECRETSECRET"': ':1: is neither YAML nor JSON from here on.',
    'streams: *none': ': uses an anchor (*name) that is not set before, or too many of them.',
    '': ': the file must hold defaults, streams and groups.',
    'streams: []': ': the file names no streams and no groups.',
    'streams: []\n---\nstreams: [a]\n': ':2: begins a second document (---); put it in its own file.',
    [`streams: [{ streamid: a, cenc: { keyid: ${CENC.keyid}, contentkey:SECRETSECRETSECRET } }]`]:
      ':1: cenc.contentkey is missing.',
    'streams: [{ streamid: a, clientApiKey:SECRET }]': `:1: ${NAMELESS}`,
    'streams: !secret [a]\n': ':1: has an unknown tag (!name); leave it out.',
    'streams: [true]\n':
      ':1: streams must be a stream id or its fields, and true is neither; put it in quotes.',
    'defaults: { cmaf: cbcs }\nstreams: [{ streamid: a }]\n': `:1: defaults.cmaf ${CMAF_CBCS_REFUSED}.`,
    'groups: [{ members: [a], folder: /live }]':
      ':1: groups.folder must be the first parts of a stream id, without a slash before it.',
  },
  'a.csv': {
    '': ': the file is empty; its first row names the fields.',
    'stream,contentId\na,b\n': ':1: the first row must name the columns, streamid among them.',
    'streamid,cenc.keyId\na,b\n': ':1: cenc.keyId is not a field; did you mean cenc.keyid?',
    'streamid,streamid\na,b\n': ':1: streamid appears twice.',
    'streamid,contentId\na,"b\nSECRETSECRET': ':3: a quote is opened here or above, and never closed.',
    'sep=;\r\nstreamid;cmaf\r\na;maybe\r\n': ':3: cmaf must be true, false or cenc.',
    'streamid,cmaf\na,CBCS\n': `:2: cmaf ${CMAF_CBCS_REFUSED}.`,
  },
};

test.each(
  Object.entries(WRONG).flatMap(([name, texts]) =>
    Object.entries(texts).map(([text, sentence]) => [name, text, sentence] as const),
  ),
)('says what is wrong with %s %j', async (name, text, sentence) => {
  const found = await faults(name, text);
  expect(found).toContain(name + sentence);
  expect(found.join()).not.toContain('SECRET');
});

test('takes as many anchors as there may be, and says that there are more', () => {
  const found = (count: number) => readYaml(`x: [${'&a x, '.repeat(count)}]`, 3).faults;
  const description = 'sets more than 3 anchors (&name); divide the file, or write their values out';
  expect([found(3), found(4)]).toEqual([[], [{ description }]]);
});

test('takes no file of another ending for a manifest', async () => {
  expect(await faults('a.txt', 'streams: []')).toEqual([
    'A manifest is a .yaml, .json or .csv file; a.txt has another ending.',
  ]);
});

test('reports unknown columns, and the known ones once', async () => {
  expect(await faults('manifest.csv', 'streamid,contentID,foo,bar,\na,b,,,\n')).toEqual([
    'manifest.csv:1: contentID is not a field; did you mean contentId?',
    expect.stringMatching(
      /^manifest\.csv:1: 3 columns with an unknown name or none; the columns are streamid, .*$/,
    ),
  ]);
});

test.each(['', '# news, sport\n'])('passes over rows of delimiters, behind %j', async (comment) => {
  const text = `${comment};;\nstreamid;contentId;cmaf\n;;\na;b;\n;;\n`;
  expect((await bodies('manifest.csv', text, ACME)).streams).toEqual([
    { streamid: 'a', contentId: 'b', ...ACME },
  ]);
});

test('reports values that no sidecar would take, with their lines, and sends nothing', async () => {
  await fs.writeFile(join(cwd, 'passwd'), 'root:x:0:0\nSECRET\n');
  const text = `\
defaults:
  client: a client
  clientApiKey: k
  contentId: "{nam}-1"
  playready: { laurl: "https://pr.example.com/{streamId}" }
streams:
  - live//a
  - streamid: b
    cenc: { keyid: 44da52ef4523098e6854777ee322681d, contentkey: ${CENC.contentkey} }
  - { streamid: c, contentId: "SECRET SECRET" }
groups:
  - { smil: passwd, clientApiKeyFile: passwd, contentId: g }
  - { members: [a, b], folder: live, contentId: g }
  - { members: [a+b], keys: each, contentId: g, folder: x }
`;
  expect(await faults('manifest.yaml', text)).toEqual([
    'manifest.yaml:2: client must be 1 to 200 letters, digits and _ - . (and not a dot or two alone).',
    'manifest.yaml:4: contentId has {nam}, which has no value here.',
    'manifest.yaml:5: playready.laurl has {streamId}, which has no value here.',
    'manifest.yaml:7: A part of the stream id is empty.',
    'manifest.yaml:9: cenc.keyid looks like hex; send the base64 of the 16 bytes.',
    'manifest.yaml:10: contentId must be 1 to 200 letters, digits and _ - . (and not a dot or two alone).',
    'manifest.yaml:12: smil is not well-formed XML: see line 1.',
    'manifest.yaml:12: clientApiKey must be 1 to 1000 characters of printable ASCII without spaces.',
  ]);
});

test('reports a wrong default of the options by the option', async () => {
  const text = 'streams: [{ streamid: a, contentId: b }]';
  const given = { client: 'a client', clientApiKey: 'k' };
  expect(await problemsOf(() => read('manifest.yaml', text, given))).toEqual([
    'The options give a wrong value: client must be 1 to 200 letters, digits and _ - . (and not a dot or two alone).',
  ]);
});

test('reports 50 faults, and how many more there are', async () => {
  const text = `streams:\n${'  - { streamid: a, contentId: b }\n'.repeat(60)}`;
  const found = await faults('manifest.yaml', text);
  expect(found).toHaveLength(51);
  expect(found.at(-1)).toMatch(/^manifest\.yaml: \d+ more faults\.$/);
});

test('finds the line of a value behind an anchor and a merged map', async () => {
  const text = `\
streams:
  - &first { streamid: a, client: c, clientApiKey: k, contentId: x }
  - <<: *first
    streamid: b
    contentId: [1]
`;
  expect(await faults('manifest.yaml', text)).toEqual([
    'manifest.yaml:5: streams.contentId must be text; put it in quotes.',
  ]);
  // As programs write it that give each stream the same keys.
  const others = Array.from({ length: 1200 }, (_, at) => `  - { streamid: s${at}, cenc: *id001 }\n`);
  const keys = `{ keyid: ${CENC.keyid}, contentkey: ${CENC.contentkey} }`;
  const many = `streams:\n  - { streamid: s, cenc: &id001 ${keys} }\n${others.join('')}`;
  expect(await read('manifest.yaml', many)).toHaveLength(1201);
});
